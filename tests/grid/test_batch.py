"""Batch policies on a grid: the simulator's decisions, deadlines, and what is learnt."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from gridwright import DeadlineError, InputError, System, simulate
from gridwright.compiler.link import _LINKING
from gridwright.grid import Corrections, Grid, Journal, Mapper, Settings, connect, service
from gridwright.grid.execution_times import ENOUGH, ExecutionTimes, times_of
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.grid.job import Options
from gridwright.grid.journal import IN_MEMORY
from gridwright.grid.mapper import MANY
from gridwright.grid.turn import Submission
from gridwright.policies import BATCH, BatchView, Policy, assign, find
from gridwright.policies.policy import policy_of
from gridwright.simulation import KINDS

from .conftest import WAIT, events, journalled, where

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
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
    policy: Policy | str,
    known: ExecutionTimes | None,
    length: Callable[[int, int, int], float],
    jobs: list[tuple[float, int, int]],
    *,
    machines: list[str],
    classes: list[str],
    deadlines: Any = ALLOWED,
    until: float = 1e4,
    many: float = np.inf,
) -> tuple[Mapper, Journal]:
    """Run jobs (time, number, class) on a grid of a fake executor."""
    journal, executor = Journal(IN_MEMORY), FakeExecutor(machines, length)
    assert known is not None

    async def run() -> Mapper:
        loop = asyncio.get_running_loop()
        settings = Settings(corrections=OFF, times=known)
        about = (find(policy), executor, journal, classes, known.rates(), np.ones(len(classes)))
        mapper = Mapper(*about, settings, clock=loop.time, zero=0.0)
        mapper.book.many = many
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
        many=3 if policy == "moc" else np.inf,
    )
    assert not mapper.broken
    is_compiled = mapper.book.decide is not find(policy).decide
    assert is_compiled == (policy == "moc"), "it would take long in plain Python"
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
    about: Any = {"machines": ["one"], "classes": ["a"], "deadlines": [5.0]}
    mapper, journal = in_virtual_time("mm", known, lambda *_: 100.0, jobs, until=50.0, **about)
    found = [(e.time, e.job, e.detail) for e in journal.events("failed")]
    assert found == [(6.0, 1, "its deadline had passed"), (7.0, 2, "its deadline had passed")]
    assert journal.count() == {"sent": 1, "failed": 2}
    assert [kept.error for kept in journal.jobs()][1] == (
        "job 1 was discarded: its deadline, 5 s after it was submitted, had passed before it "
        "could start"
    )
    assert mapper.deadlines["discarded"] == 2


def test_a_policy_that_cannot_be_compiled_decides_in_plain_python() -> None:
    def odd(waiting: Any, view: BatchView) -> int:
        known = locals()  # which compiled code does not have
        return assign(waiting, view, 0, 0, 0) if known and view.machines[0].free else 0

    mine = policy_of(odd, BATCH)
    known = times_of(mine, None, ["a"], [[1.0]], ["one"], learns=False)
    jobs = [(float(k), k, 0) for k in range(9)]
    about: Any = {"machines": ["one"], "classes": ["a"], "deadlines": [None], "many": 1}
    mapper, journal = in_virtual_time(mine, known, lambda *_: 3.0, jobs, **about)
    assert not mapper.broken
    assert mapper.book.decide is odd
    assert journal.count() == {"finished": 9}


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


# real processes


RATES = [[1.0, 1.0], [50.0, 50.0]]
NAMES = ["hold", "quick"]


def hold(gate: Path) -> str:
    """Run until there is a file."""
    while not gate.exists():
        time.sleep(0.01)
    return "held"


def quick(number: int) -> int:
    return number * number


def open_grid(path: Path, policy: str = "mm") -> Grid:
    machines, batch = ["one", "two"], {"queue_limit": 1}
    return Grid(policy, machines, journal=path, classes=NAMES, rates=RATES, batch=batch)


@pytest.mark.usefixtures("no_process_stays_behind")
def test_your_own_functions_with_deadlines(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with open_grid(tmp_path / "j.sqlite", "moc") as grid:
        blockers = [grid.submit(hold, gate) for _ in range(2)]
        for each in blockers:
            where(grid, each.number)
        early = grid.options(deadline=0.2).submit(quick, 3)
        needs = grid.submit(quick, early)
        later = grid.options(deadline=600).submit(quick, 5)
        with pytest.raises(DeadlineError, match=f"job {early.number} was discarded: its deadline"):
            early.result(WAIT)
        with pytest.raises(DeadlineError):
            needs.result(WAIT)
        assert grid.status()["deadlines"] == {"on time": 0, "late": 0, "discarded": 1}
        gate.touch()
        assert later.result(WAIT) == 25
        assert [each.result(WAIT) for each in blockers] == ["held"] * 2
        assert list(grid.map(quick, range(30))) == [k * k for k in range(30)]
        with pytest.raises(DeadlineError, match=r"0\.2 s after it was submitted"):
            grid.result(early.number)
        status = grid.status()
    assert status["ended"] == {"finished": 33, "failed": 2, "cancelled": 0}
    assert status["deadlines"] == {"on time": 1, "late": 0, "discarded": 1}
    assert "1 discarded" in str(status)
    whys = {e.job: e.detail for e in events(tmp_path / "j.sqlite") if e.kind == "failed"}
    assert whys == {early.number: "its deadline had passed", needs.number: f"job {early.number}"}


@pytest.mark.usefixtures("no_process_stays_behind")
def test_the_grid_answers_while_its_policy_is_compiled(tmp_path: Path) -> None:
    """The compiler waits for this test; a large batch waits for the compiler."""
    gate, count = tmp_path / "gate", MANY + 3
    with open_grid(tmp_path / "j.sqlite") as grid:
        with _LINKING:
            blockers = [grid.submit(hold, gate) for _ in range(2)]
            futures = [grid.submit(quick, k) for k in range(count + 1)]
            assert futures.pop().cancel()
            gate.touch()
            assert [each.result(WAIT) for each in blockers] == ["held"] * 2
            assert not any(each.done() for each in futures)
        assert [each.result(WAIT) for each in futures] == [k * k for k in range(count)]
        assert grid.status()["ended"] == {"finished": count + 2, "failed": 0, "cancelled": 1}


KILLED = f"""
import sys
import time
from pathlib import Path
from gridwright.grid import Grid

NAMES, RATES = {NAMES}, {RATES}
{"".join(inspect.getsource(each) for each in (hold, quick, open_grid))}
gate = Path(sys.argv[2])
grid = open_grid(Path(sys.argv[1]))
early, passing, late = (grid.options(deadline=d) for d in (0.2, 60.0, 600.0))
for _ in range(2):
    grid.submit(hold, gate)
first = early.submit(quick, 1)
passing.submit(quick, 2)
late.submit(quick, 3)
assert first.exception(60) is not None
print(first.number, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("no_process_stays_behind")
def test_a_killed_grid_loses_no_job_and_no_deadline(tmp_path: Path) -> None:
    path, gate, pipe = tmp_path / "j.sqlite", tmp_path / "gate", subprocess.PIPE
    command = [sys.executable, "-c", KILLED, str(path), str(gate)]
    about: Any = {"stdin": pipe, "stdout": pipe, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **about) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "2"
        os.killpg(other.pid, signal.SIGKILL)
    kept = journalled(path)
    assert [kept[k].job.stage for k in (0, 1, 2)] == ["sent", "sent", "failed"]
    assert {kept[k].job.stage for k in (3, 4)} <= {"waiting", "queued"}
    assert [kept[k].job.options.deadline for k in (3, 4)] == [60.0, 600.0]
    journal = Journal(path)
    journal.describe(origin=journal.about["origin"] - 60)  # as if no grid had run for a minute
    journal.close()
    gate.touch()
    with open_grid(path) as grid:
        assert set(grid.unfinished) == {0, 1, 3, 4}
        with pytest.raises(DeadlineError, match="job 3 was discarded: its deadline, 60 s after"):
            grid.unfinished[3].result(WAIT)
        assert grid.unfinished[4].result(WAIT) == 9
        assert [grid.unfinished[k].result(WAIT) for k in (0, 1)] == ["held"] * 2
        with pytest.raises(DeadlineError, match=r"job 2 was discarded: its deadline, 0\.2 s"):
            grid.result(2)
    ends = Counter(e.job for e in events(path) if e.kind in ("finished", "failed"))
    assert ends == dict.fromkeys(range(5), 1)


TOLD: dict[str, Any] = {"classes": ["a"], "rates": [[1.0, 1.0]]}


@pytest.mark.parametrize(
    ("policy", "about", "words"),
    [
        ("mm", {}, "mm is a batch policy, which must know how long jobs take; give classes, and"),
        ("mm", {"classes": ["a"]}, "mm is a batch policy, which must know how long jobs take"),
        ("mm", TOLD | {"batch": {"pmf": {"samples": 9}}}, "samples is for simulations; give a"),
        ("mm", TOLD | {"batch": {"discard": "no"}}, "discard is 'no'"),
        ("mm", TOLD | {"batch": {"queue_limit": 0}}, "queue_limit is 0"),
        ("mm", TOLD | {"batch": {"queues": 2}}, "queues"),
        ("mm", TOLD | {"batch": 3}, "batch is 3; expected a table"),
        ("mm", TOLD | {"batch": {"pmf": {"times": [[GAMMA]]}}}, r"\[pmf\] times"),
        ("fcfs", {"batch": {}}, "batch is for batch policies; fcfs is a pull one"),
        ("lpas_dec", {}, "a grid runs push, pull, batch and chain policies: it has"),
    ],
)
def test_wrong_input(policy: str, about: dict[str, Any], words: str, tmp_path: Path) -> None:
    executor = FakeExecutor(["one", "two"], lambda *_: 0.0)
    with pytest.raises(InputError, match=words) as wrong:
        Grid(policy, on=executor, journal=tmp_path / "j.sqlite", **about)
    assert "\n" not in str(wrong.value)


def test_wrong_submissions(tmp_path: Path) -> None:
    executor = FakeExecutor(["one", "two"], lambda *_: 0.0)
    with Grid("fcfs", on=executor, journal=tmp_path / "fcfs.sqlite") as grid:
        with pytest.raises(InputError, match="deadline is for batch and chain policies; this"):
            grid.options(deadline=5).submit(abs, 1)
        for wrong in (-1, 0, float("inf"), float("nan"), "soon", True):
            with pytest.raises(InputError, match=r"deadline is .*; expected seconds, more than 0"):
                grid.options(deadline=wrong)  # type: ignore[arg-type]
    with Grid("mm", on=executor, journal=tmp_path / "mm.sqlite", **TOLD) as grid:
        with pytest.raises(InputError, match="how long jobs of class 'b' take; classes are a"):
            grid.options(task_class="b").submit(abs, 1)
        grid.close()


@pytest.mark.usefixtures("no_process_stays_behind")
def test_a_client_gives_deadlines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    gate = tmp_path / "gate"
    about: Any = {"classes": NAMES, "rates": [[1.0], [50.0]], "batch": {"queue_limit": 1}}
    farm = service.ServedGrid("mm", ["one"], journal=tmp_path / "j.sqlite", **about)
    served = service.serve(farm, "farm")
    try:
        with connect("farm") as grid:
            first = grid.submit(hold, gate)
            late = grid.options(deadline=0.2).submit(quick, 1)
            with pytest.raises(DeadlineError, match="was discarded: its deadline"):
                late.result(WAIT)
            gate.touch()
            assert first.result(WAIT) == "held"
            with pytest.raises(DeadlineError):
                grid.result(late.number)
    finally:
        served.close()
        farm.close()
