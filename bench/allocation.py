"""The allocation LP: ``allocate`` and the compiled simplex, against HiGHS in the same run.

Floors: 3,000 machines in 6 groups under 50 ms, 300 different machines and 4 classes under 0.5 s,
a compiled solve on 6 groups under 20 µs (goal: 5 µs), and a plan with tolls on them as well.
"""

import numpy as np
from numpy.typing import NDArray

from gridwright import System, allocate, load
from gridwright.allocation.allocation import situation
from gridwright.allocation.bottlenecks import optimum
from gridwright.allocation.highs import solve_highs
from gridwright.allocation.planner import charge
from gridwright.allocation.simplex import solve
from gridwright.allocation.workspace import Situation, Workspace, make_workspace, tableau, totals
from gridwright.compiler.link import link

from .measure import best_time


def weights_of(system: System) -> NDArray[np.float64]:
    now = situation(system)
    room = make_workspace(now)
    totals(now, room)
    classes, groups = room.tableau.size
    return room.tableau.given[:classes, :groups].copy()


def plan_with_tolls(now: Situation, room: Workspace, plan: NDArray[np.float64]) -> None:
    optimum(now, room)
    charge(now, room, plan, 1.0)


def main() -> None:
    rng = np.random.default_rng(1)
    different = System(arrivals=np.ones(4), rates=rng.gamma(2, 1, (4, 300)))
    systems = {
        "3.A, 30 machines in 6 groups": load("3.A:alpha1:1"),
        "3.F, 3,000 machines in 6 groups": load("3.F:alpha:1"),
        "300 different machines": different,
    }
    huge = System(arrivals=np.ones(400), rates=rng.gamma(2, 1, (400, 400)))
    print(f"{'':34}{'grouped':>12}{'vertex':>12}{'HiGHS':>12}{'vertex/HiGHS':>14}")
    for name, system in systems.items():
        weights = weights_of(system)
        highs = best_time(lambda: solve_highs(weights))  # noqa: B023
        times = [best_time(lambda: allocate(system, m)) for m in ("grouped", "vertex")]  # noqa: B023
        row = "".join(f"{1e3 * time:9.2f} ms" for time in [*times, highs])
        print(f"{name:34}{row}{times[1] / highs:14.2f}")

    alone = best_time(lambda: allocate(huge), 1)
    print(f"{'400 classes, 400 machines':34}{1e3 * alone:9.2f} ms")

    heads = "".join(f"{head:>12}" for head in ("solve", "optimum", "tolls"))
    print(f"\n{'compiled, called from Python':34}{heads}{'HiGHS/solve':>14}")
    for name, system in systems.items():
        now, weights = situation(system), weights_of(system)
        room, t = make_workspace(now), tableau(weights)
        alone = best_time(lambda: link(solve)(t))  # noqa: B023
        whole = best_time(lambda: link(optimum)(now, room))  # noqa: B023
        plan = np.empty(now.rates.shape)
        tolls = best_time(lambda: link(plan_with_tolls)(now, room, plan))  # noqa: B023
        highs = best_time(lambda: solve_highs(weights))  # noqa: B023
        times = [alone, whole, tolls]
        row = "".join(f"{1e6 * time:9.1f} µs" for time in times)
        print(f"{name:34}{row}{highs / alone:14.0f}")
