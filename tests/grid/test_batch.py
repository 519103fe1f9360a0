"""Batch policies on a grid: the simulator's decisions, deadlines, and what is learnt."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from gridwright import System, simulate
from gridwright.grid import Corrections, Journal, Mapper, Settings
from gridwright.grid.batch import ENOUGH, ExecutionTimes, times_of
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.grid.job import Options
from gridwright.grid.journal import IN_MEMORY
from gridwright.grid.turn import Submission
from gridwright.policies import find
from gridwright.simulation import KINDS

OFF = Corrections(availability=False, arrivals=False, rates=False, overhead=False)
GAMMA = {"kind": "gamma", "shape": 4}
LIMIT, WIDTH, TASKS = 3, 0.0625, 150
ALLOWED = (3.0, 5.0, 9.0)


def overloaded(discard: str) -> System:
    """Return a system that gets a quarter more than it can do."""
    return System(
        classes=["a", "b", "c"],
        arrivals=[1.0, 0.8, 0.6],
        rates=[[1.0, 0.5, 0.7], [0.5, 0.9, 0.4], [0.4, 0.3, 1.1]],
        execution=GAMMA,
        pmf={"width": WIDTH},
        deadlines={"allowance": list(ALLOWED), "discard": discard},
        batch={"queue_limit": LIMIT, "tasks": TASKS},
    )


class Traced:
    """What a traced simulation did."""

    def __init__(self, system: System, policy: str) -> None:
        run = simulate(system, policy, replications=1, seed=5, trace=True).replications[0]
        self.starts: dict[int, tuple[float, int]] = {}
        self.ends: dict[int, float] = {}
        self.assigned: dict[int, tuple[float, str]] = {}
        self.arrivals: list[tuple[float, int, int]] = []
        self.discarded: set[int] = set()
        for e in run.trace[np.argsort(run.trace["time"], kind="stable")]:
            kind, task = KINDS[e.kind], int(e.task)
            match kind:
                case "arrival":
                    self.arrivals.append((float(e.time), task, int(e.task_class)))
                case "assignment":
                    self.assigned[task] = float(e.time), system.machines[int(e.machine)]
                case "start":
                    self.starts[task] = float(e.time), int(e.machine)
                case "finish":
                    self.ends[task] = float(e.time)
                case "discard":
                    self.discarded.add(task)

    @property
    def due(self) -> list[tuple[float, float]]:
        """The end and the deadline of every task that was finished."""
        deadline = {task: when + ALLOWED[i] for when, task, i in self.arrivals}
        return [(end, deadline[task]) for task, end in self.ends.items()]

    def length(self, job: int, machine: int, attempt: int) -> float:
        start, where = self.starts[job]
        assert (machine, attempt) == (where, 1)
        assert asyncio.get_running_loop().time() == pytest.approx(start, rel=1e-12)
        return self.ends[job] - start


def times(system: System, policy: str, discard: str) -> ExecutionTimes | None:
    options = {"execution": GAMMA, "pmf": {"width": WIDTH}, "queue_limit": LIMIT}
    about = (system.classes, np.array(system.rates), system.machines)
    return times_of(find(policy), options | {"discard": discard}, *about, learns=False)


def in_virtual_time(
    policy: str,
    known: ExecutionTimes | None,
    length: Callable[[int, int, int], float],
    jobs: list[tuple[float, int, int]],
    *,
    machines: list[str],
    classes: list[str],
    deadlines: Any = ALLOWED,
    until: float = 1e4,
) -> tuple[Mapper, Journal]:
    """Run jobs (time, number, class) on a grid of a fake executor."""
    journal, executor = Journal(IN_MEMORY), FakeExecutor(machines, length)
    assert known is not None

    async def run() -> Mapper:
        loop = asyncio.get_running_loop()
        settings = Settings(corrections=OFF, times=known)
        about = (find(policy), executor, journal, classes, known.rates(), np.ones(len(classes)))
        mapper = Mapper(*about, settings, clock=loop.time, zero=0.0)
        await mapper.open()
        for when, number, i in jobs:
            options = Options(deadline=deadlines[i])
            word = Submission(number, i, b"", Future(), options=options)
            loop.call_at(when, mapper.hear, word)
        await asyncio.sleep(until)
        await mapper.close()
        return mapper

    return run_virtually(run()), journal


@pytest.mark.parametrize(
    ("policy", "discard"),
    [
        ("mm", "both"),
        ("mmu", "both"),
        ("msd", "batch"),
        ("moc", "both"),
        ("mect", "never"),
        ("sufferage", "both"),
        ("max_min:full=counts", "never"),
    ],
)
def test_the_two_worlds_are_one(policy: str, discard: str) -> None:
    """A grid on the fake executor assigns the jobs of a simulation where, and when, that did."""
    system = overloaded(discard)
    world = Traced(system, policy)
    mapper, journal = in_virtual_time(
        policy,
        times(system, policy, discard),
        world.length,
        world.arrivals,
        machines=list(system.machines),
        classes=list(system.classes),
    )
    assert not mapper.broken
    jobs = {kept.job.number: kept for kept in journal.jobs()}
    assert set(jobs) == set(range(TASKS))
    assert all(kept.job.stage.is_final for kept in jobs.values())
    assigned = {
        number: (kept.job.assigned, kept.machine)
        for number, kept in jobs.items()
        if not np.isnan(kept.job.assigned)
    }
    assert assigned == world.assigned
    failed = {number for number, kept in jobs.items() if kept.job.stage == "failed"}
    assert failed == world.discarded
    assert bool(failed) == (discard != "never"), "it gets more than it can do"
    assert mapper.deadlines["discarded"] == len(failed)
    assert mapper.book.refusals == 0
    late = sum(end > deadline + 1e-9 for end, deadline in world.due)
    assert mapper.deadlines["late"] == late
    assert mapper.deadlines["on time"] == TASKS - len(failed) - late


def test_waiting_jobs_are_discarded_when_their_deadline_passes() -> None:
    """Nothing else happens then: the only machine is busy for long."""
    known = times_of(find("mm"), {"queue_limit": 1}, ["a"], [[1.0]], ["one"], learns=False)
    jobs = [(0.0, 0, 0), (1.0, 1, 0), (2.0, 2, 0)]
    about = {"machines": ["one"], "classes": ["a"], "deadlines": [5.0]}
    mapper, journal = in_virtual_time("mm", known, lambda *_: 100.0, jobs, until=50.0, **about)
    found = [(e.time, e.job, e.detail) for e in journal.events("failed")]
    assert found == [(6.0, 1, "its deadline had passed"), (7.0, 2, "its deadline had passed")]
    assert journal.count() == {"sent": 1, "failed": 2}
    assert [kept.error for kept in journal.jobs()][1] == (
        "job 1 was discarded: its deadline, 5 s after it was submitted, had passed before it "
        "could start"
    )
    assert mapper.deadlines["discarded"] == 2


def test_times_are_learnt_from_finished_jobs() -> None:
    known = times_of(find("mm"), None, ["a"], [[1.0, 1.0]], ["one", "two"])
    assert known is not None
    both, shares = [0, 1], np.ones(2)
    first = known.tables(shares)
    assert first.mean[0] == pytest.approx([1.0, 1.0], rel=0.01), "exponential, as given"
    assert known.width == pytest.approx(0.05)
    for _ in range(ENOUGH - 1):
        known.ran(0, 1, 300.0)
    assert known.tables(shares).mean[0] == pytest.approx([1.0, 1.0], rel=0.01)
    for k in range(ENOUGH):
        for slot in both:
            known.ran(0, slot, (200.0, 400.0)[k % 2] if slot else 100.0)
    found = known.tables(shares)
    assert found.mean[0, 0] == pytest.approx(100.0, abs=found.width)
    seen = np.flatnonzero(found.mass[0, 1]) * found.width
    assert seen == pytest.approx([200.0, 300.0, 400.0], abs=found.width)
    assert found.mass[0, 1].max() == pytest.approx((ENOUGH - 1) / (2 * ENOUGH - 1), abs=0.01)
    assert found.width == pytest.approx(100.0 / 20), "the bins follow what was measured"
    half = known.tables(np.array([1.0, 0.5]))
    assert half.mean[0, 1] == pytest.approx(2 * found.mean[0, 1], rel=0.01)
    assert half.mean[0, 0] == found.mean[0, 0]
