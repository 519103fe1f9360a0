"""Which idle machine is asked first."""

from typing import Any

import numpy as np
import pytest

from gridwright import System, simulate
from gridwright.policies import IDLE, PULL, View, find, policy_of
from gridwright.simulation import KINDS, Replication, replicate

SEED = np.random.SeedSequence(3)
START = KINDS.index("start")


def run(system: System, policy: str, horizon: float = 200.0) -> Replication:
    return replicate(system, find(policy), horizon=horizon, seed=SEED, trace=True, interpreted=True)


def used(found: Replication) -> list[int]:
    """Return how often each machine starts a task."""
    starts = found.trace[found.trace["kind"] == START]
    return np.bincount(starts["machine"], minlength=3).tolist()


@pytest.mark.parametrize("idle", IDLE)
def test_machines_that_are_alike_serve_the_same_tasks_in_any_order(idle: str) -> None:
    alike = System(arrivals=[2.0], rates=[[1.0, 1.0, 1.0]])
    assert run(alike, f"fcfs:idle={idle}").mean_number == pytest.approx(
        run(alike, "fcfs").mean_number, rel=1e-12
    )


def test_the_fastest_is_asked_first() -> None:
    unequal = System(arrivals=[0.5], rates=[[1.0, 3.0, 2.0]])
    slow, fast, middle = used(run(unequal, "fcfs:idle=fastest"))
    assert fast > 3 * middle > 3 * slow
    slow, fast, middle = used(run(unequal, "fcfs:idle=longest"))
    assert max(slow, fast, middle) < 1.3 * min(slow, fast, middle)


def test_a_blocked_queue_of_machines_wastes_them() -> None:
    # machine 1 can only run class 1, of which there is little: it blocks the others
    system = System(arrivals=[0.1, 1.0], rates=[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    blocking, rotating, longest = (
        run(system, f"fcfs:idle={idle}", 400).mean_number
        for idle in ("blocking", "rotate", "longest")
    )
    assert rotating == longest  # it turns the queue until one can
    assert blocking > 3 * longest


def test_a_machine_that_can_run_nothing_loses_its_place() -> None:
    # all three are idle; class 2 comes first, which machine 1 cannot run
    system = System(arrivals=[1.0, 1.0], rates=[[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    patient, turned = (used(run(system, f"fcfs:idle={idle}")) for idle in ("longest", "rotate"))
    assert turned[0] < patient[0]


def only_one(machine: int, view: View) -> int:
    """Let machine 2 take a task only if no other waits."""
    return -1 if machine == 1 and view.classes[0].waiting > 1 else 0


def test_every_idle_machine_hears_of_every_event() -> None:
    system = System(arrivals=[0.9], rates=[[1.0, 1.0]])
    options: dict[str, Any] = {"horizon": 300.0, "seed": SEED}
    options |= {"trace": True, "interpreted": True}
    found = {
        idle: replicate(system, policy_of(only_one, PULL, idle=idle), **options)
        for idle in ("longest", "every")
    }
    # when machine 1 has taken the last task but one, machine 2 may take the last
    assert found["every"].mean_number < found["longest"].mean_number
    assert found["every"].asked > found["longest"].asked


def test_lpas_dg_is_better_off_with_the_fastest_machine() -> None:
    better = simulate("3.C:alpha1:1", "lpas_dg:idle=fastest", horizon=300, replications=4)
    assert (
        better.mean_number.high
        < simulate("3.C:alpha1:1", "lpas_dg", horizon=300, replications=4).mean_number.low
    )
