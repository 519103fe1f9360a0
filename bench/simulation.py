"""The simulator: tasks per CPU second, as ratios against three baselines in the same run.

Floors (goals): push on 2.B and 2.C1 30 × (60 ×) the heapq loop, 50 × (90 ×) SimPy, at most 5 and 12
(3.5 and 8) times the bare draws; pull with failures and re-plans (3.A case 5, LPAS_DG) 15 × (30 ×)
the heapq loop on 2.C1; a policy from a file at least 0.9 of the built-in; 3,000 machines (3.F) at
least 1/4 (1/2) of 30 (3.A); a re-plan inside the loop at most 20 µs (5 µs); the histogram of
percentiles at most 5 % slower; a profile of constant rates beside it, without a floor.
"""

import tempfile
from pathlib import Path

from gridwright import System, load, simulate

from .baseline import Run, bare_draws, best_of, heapq_loop, simpy_callbacks

OWN = """
from gridwright import push
from gridwright.policies.choice import Tie, least_completion


@push
def own(task_class, view, tie=Tie.lowest):
    "The same as mct."
    return least_completion(task_class, view, tie)
"""


def ours(system: str | System, policy: str, horizon: float, *, tails: bool = False) -> Run:
    """Measure simulated tasks per CPU second on one thread."""

    def run() -> float:
        result = simulate(system, policy, horizon, 1, threads=1, tails=tails)
        return result.tasks / result.seconds

    run()  # compiles
    return run


def main() -> None:
    print(f"{'':10}{'tasks/s':>12}{'× heapq':>10}{'× SimPy':>10}{'draws /':>16}")
    slowest, fastest = bare_draws()
    for name, horizon in (("2.B", 200_000.0), ("2.C1", 20_000.0)):  # 2.6 million tasks each
        system = load(name)
        best = best_of(
            8,
            heapq=heapq_loop(system),
            ours=ours(name, "mct", horizon),
            simpy=simpy_callbacks(system),
        )
        speed = best["ours"]
        ratios = [speed / best["heapq"], speed / best["simpy"]]
        against = f"{slowest / speed:.1f} to {fastest / speed:.1f}"
        shown = "".join(f"{ratio:10.1f}" for ratio in ratios)
        print(f"{name + ' mct':10}{speed / 1e6:10.2f} M{shown}{against:>16}")

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "own.py"
        file.write_text(OWN)
        best = best_of(
            6, built_in=ours("2.C1", "mct", 3_000.0), own=ours("2.C1", str(file), 3_000.0)
        )
    own = best["own"] / best["built_in"]
    print(f"\na policy from a file against the built-in of the same text: {own:.2f}")

    flat = {"durations": [10.0, 10.0], "factors": [1.0, 1.0]}
    for name, horizon in (("2.B", 50_000.0), ("2.C1", 5_000.0)):
        best = best_of(
            6,
            plain=ours(name, "mct", horizon),
            histogram=ours(name, "mct", horizon, tails=True),
            profile=ours(load(name).replace(profile=flat), "mct", horizon),
        )
        shares = {key: 1 - best[key] / best["plain"] for key in ("histogram", "profile")}
        print(f"{name}: " + ", ".join(f"{key} {100 * x:.1f} % slower" for key, x in shares.items()))

    best = best_of(
        6,
        heapq=heapq_loop(load("2.C1")),
        still=ours("3.A:alpha1:1", "lpas_dg", 2_000.0),
        failing=ours("3.A:alpha1:5", "lpas_dg", 2_000.0),
        small=ours("3.A:alpha1:3", "lpas_dg", 2_000.0),
        large=ours("3.F:alpha:1", "lpas_dg", 20.0),
    )
    run = simulate("3.A:alpha1:5", "lpas_dg", 2_000.0, 1, threads=1)
    each = (1 / best["failing"] - 1 / best["still"]) * run.tasks / run.replications[0].replans
    print(f"pull, 3.A without failures: {best['still'] / 1e6:.2f} M tasks/s")
    times = best["failing"] / best["heapq"]
    print(f"pull, 3.A case 5: {best['failing'] / 1e6:.2f} M, {times:.1f} × heapq on 2.C1")
    print(f"a re-plan inside the loop, failures and all: {1e6 * each:.1f} µs")
    share = best["large"] / best["small"]
    print(f"3,000 machines (3.F) against 30 (3.A case 3): {best['large'] / 1e6:.2f} M, {share:.2f}")
