"""The simulator: tasks per CPU second, as ratios against three baselines in the same run.

Floors (goals): push on 2.B and 2.C1 30 × (60 ×) the heapq loop, 50 × (90 ×) SimPy, at most 5 and 12
(3.5 and 8) times the bare draws; pull with failures and re-plans (3.A case 5, LPAS_DG) 15 × (30 ×)
the heapq loop on 2.C1; a policy from a file at least 0.9 of the built-in; 3,000 machines (3.F) at
least 1/4 (1/2) of 30 (3.A); a re-plan inside the loop at most 20 µs (5 µs).
"""

import tempfile
from pathlib import Path

from gridwright import load, simulate

from .baseline import bare_draws, heapq_loop, simpy_callbacks

OWN = """
from gridwright import push
from gridwright.policies.choice import Tie, least_completion


@push
def own(task_class, view, tie=Tie.lowest):
    "The same as mct."
    return least_completion(task_class, view, tie)
"""


def speed(system: str, policy: str, horizon: float) -> float:
    """Return simulated tasks per CPU second, the best of three runs on one thread."""
    runs = [simulate(system, policy, horizon, 1, seed, threads=1) for seed in (1, 2, 3)]
    return max(run.tasks / run.seconds for run in runs)


def main() -> None:
    draws = bare_draws()
    print(f"{'':10}{'tasks/s':>12}{'× heapq':>10}{'× SimPy':>10}{'draws /':>10}")
    slow = 0.0
    for name, horizon in (("2.B", 20_000.0), ("2.C1", 4_000.0)):
        system = load(name)
        slow = heapq_loop(system)
        callbacks = simpy_callbacks(system)
        ours = speed(name, "mct", horizon)
        ratios = f"{ours / slow:10.0f}{ours / callbacks:10.0f}{draws / ours:10.1f}"
        print(f"{name + ' mct':10}{ours / 1e6:10.2f} M{ratios}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.py"
        file.write_text(OWN)
        own = speed("2.C1", str(file), 4_000.0) / speed("2.C1", "mct", 4_000.0)
    print(f"\na policy from a file against the built-in of the same text: {own:.2f}")

    still = speed("3.A:alpha1:1", "lpas_dg", 4_000.0)
    failing = simulate("3.A:alpha1:5", "lpas_dg", 4_000.0, 1, threads=1)
    fast = speed("3.A:alpha1:5", "lpas_dg", 4_000.0)
    replans = failing.replications[0].replans
    each = (1 / fast - 1 / still) * failing.tasks / replans
    large = speed("3.F:alpha:1", "lpas_dg", 40.0)
    small = speed("3.A:alpha1:3", "lpas_dg", 4_000.0)
    print(f"pull, 3.A without failures: {still / 1e6:.2f} M tasks/s")
    print(f"pull, 3.A case 5 with failures: {fast / 1e6:.2f} M, {fast / slow:.0f} × heapq on 2.C1")
    print(f"a re-plan inside the loop, failures and all: {1e6 * each:.1f} µs")
    print(f"3,000 machines (3.F) against 30 (3.A case 3): {large / 1e6:.2f} M, {large / small:.2f}")
