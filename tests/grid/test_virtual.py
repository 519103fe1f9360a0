"""Virtual time: a whole grid runs as the simulator does, and Ctrl-C stops what runs apart."""

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, Policy, System, View, load, simulate
from gridwright.grid import Corrections, Journal, Mapper, Settings, on_timeout_of, statistics
from gridwright.grid.event import Entry
from gridwright.grid.executors.virtual import FakeExecutor, Stop, run_apart, run_virtually
from gridwright.grid.journal import IN_MEMORY
from gridwright.grid.turn import Submission
from gridwright.policies import PULL, find, policies
from gridwright.policies.policy import policy_of
from gridwright.simulation import KINDS


def in_a_notebook(function: Callable[[], Any]) -> None:
    async def cell() -> None:
        function()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()


def press() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


async def long(ended: list[str]) -> None:
    try:
        for _ in range(10_000_000):
            await asyncio.sleep(1e-5)
        ended.append("by itself")
    except asyncio.CancelledError:
        ended.append("stopped")
        raise


def test_in_virtual_time() -> None:
    ended: list[str] = []

    async def run() -> None:
        press()
        await long(ended)

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(lambda: run_virtually(run()))
    assert ended == ["stopped"]


def test_before_the_loop_has_begun() -> None:
    ended: list[str] = []
    stop = Stop()

    async def until_stopped() -> None:
        stop.cancels(asyncio.current_task())
        await long(ended)

    def run() -> None:
        press()
        assert stop.wanted.wait(60)
        asyncio.run(until_stopped())

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(lambda: run_apart(run, stop))
    assert ended == ["stopped"]


def test_after_the_loop_has_ended() -> None:
    stop = Stop()

    async def short() -> str:
        stop.cancels(asyncio.current_task())
        return "ended"

    assert asyncio.run(short()) == "ended"
    stop()
    assert stop.wanted.is_set()


FAILING = load("3.A:alpha1:5").replace(
    counts=[1] * 6,
    availability=[0.5, 1, 1, 0.75, 1, 1],
    arrivals=load("3.A:alpha1:5").arrivals / 5,
    failures={"mean_uptime": 6, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}},
)
OFF = Corrections(availability=False, arrivals=False, rates=False, overhead=False)
LENGTH = 25.0


class World:
    """What a traced simulation did: arrivals, failures, and every spell of work on a machine."""

    def __init__(self, system: System, policy: str) -> None:
        run = simulate(system, policy, LENGTH, 1, seed=8, trace=True).replications[0]
        trace = run.trace[np.argsort(run.trace["time"], kind="stable")]
        begun: dict[int, tuple[float, int]] = {}
        self.spells: dict[int, list[tuple[float, int, float]]] = {}
        self.arrivals: list[tuple[float, int, int]] = []
        self.faults: list[tuple[float, str, int]] = []
        names = ("time", "kind", "task", "task_class", "machine")
        for time, number, task, task_class, machine in zip(
            *(trace[name].tolist() for name in names), strict=True
        ):
            kind = KINDS[number]
            if kind == "start":
                begun[task] = (time, machine)
            elif kind in ("finish", "loss"):
                start, where = begun.pop(task)
                # One that is lost would have taken longer: the failure ends it.
                length = time - start if kind == "finish" else np.inf
                self.spells.setdefault(task, []).append((start, where, length))
            elif kind == "arrival":
                self.arrivals.append((time, task, task_class))
            elif kind in ("failure", "repair"):
                self.faults.append((time, kind, machine))
        for task, (start, where) in begun.items():
            self.spells.setdefault(task, []).append((start, where, 1e9))

    def duration(self, job: int, machine: int, attempt: int) -> float:
        start, where, length = self.spells[job][attempt - 1]
        assert machine == where
        assert asyncio.get_running_loop().time() == pytest.approx(start, rel=1e-9)
        return min(length, 1e9)


DRAWS = {"lp_static", "lpas_2k", "guided_lpas_2k", "jfiq", "jsq", "jsq_d"}
"""Policies that draw random numbers: those of the simulator are not those of a grid."""
CENTRAL = [n for n, policy in policies().items() if policy.kind.is_central and policy.is_shipped]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*sorted(set(CENTRAL) - DRAWS), "jsq:tie=lowest"])
def test_the_two_worlds_are_one(policy: str) -> None:
    """A grid on the fake executor sends the jobs of a simulation where, and when, that did."""
    system = FAILING
    world, journal = World(system, policy), Journal(IN_MEMORY)
    executor = FakeExecutor(system.machines, world.duration)

    async def run() -> Mapper:
        loop = asyncio.get_running_loop()
        mapper = Mapper(
            find(policy),
            executor,
            journal,
            system.classes,
            system.nominal,
            system.arrival_rates,
            Settings(corrections=OFF),
            clock=loop.time,
            zero=0.0,
            availability=system.mean_availability,
        )
        await mapper.open()
        for when, task, task_class in world.arrivals:
            submission = Submission(task, task_class, b"", Future())
            loop.call_at(when, mapper.hear, submission)
        for when, kind, machine in world.faults:
            loop.call_at(when, executor.fail if kind == "failure" else executor.repair, machine)
        await asyncio.sleep(LENGTH)
        await mapper.close()
        return mapper

    mapper = run_virtually(run())
    assert not mapper.broken
    sent = sum(kept.job.attempt for kept in journal.jobs())
    assert sent == sum(start < LENGTH for each in world.spells.values() for start, *_ in each)
    assert sent > 300
    found = statistics(journal, LENGTH)
    ends = {task: each[-1][0] + each[-1][2] for task, each in world.spells.items()}
    responses = [
        ends[task] - when for when, task, _ in world.arrivals if ends.get(task, np.inf) < LENGTH
    ]
    assert found.overall.finished == len(responses)
    assert found.overall.response == pytest.approx(np.mean(responses))
    assert found.overall.communication == found.overall.notification == 0


def rates_learnt(corrections: Corrections, *, before: float = 0.0) -> Any:
    """Run two machines that are in truth half as fast as is said; return what is believed."""
    rng = np.random.default_rng(3)
    lengths = rng.exponential(2.0, 400)
    executor = FakeExecutor(["a", "b"], lambda job, *_: float(lengths[job]), before=before)
    journal = Journal(IN_MEMORY)

    async def run() -> Mapper:
        loop = asyncio.get_running_loop()
        mapper = Mapper(
            find("lpas_dg"),
            executor,
            journal,
            ["x"],
            [[1.0, 1.0]],
            [0.5],
            Settings(corrections=corrections),
            clock=loop.time,
            zero=0.0,
        )
        await mapper.open()
        for job in range(400):
            loop.call_at(job / 0.8, mapper.hear, Submission(job, 0, b"", Future()))
        await asyncio.sleep(600)
        await mapper.close()
        return mapper

    return run_virtually(run()), journal, lengths


def test_rates_and_arrivals_are_believed_as_they_are_measured() -> None:
    mapper, journal, _ = rates_learnt(Corrections(overhead=False, trust=20))
    assert mapper.book.nominal == pytest.approx(np.full((1, 2), 0.5), rel=0.25)
    assert mapper.book.classes["arrival"] == pytest.approx([0.8], rel=0.11)
    assert {entry.kind for entry in journal.events("rates", "arrivals")} == {"rates", "arrivals"}


@pytest.mark.parametrize("name", ["rates", "arrivals", "overhead"])
def test_every_correction_can_be_switched_off(name: str) -> None:
    mapper, journal, _ = rates_learnt(Corrections(trust=20, **{name: False}), before=0.5)
    if name == "arrivals":
        assert mapper.book.classes["arrival"] == [0.5]
    elif name == "rates":  # what is left of the rate of 1 is the overhead's doing
        assert mapper.book.nominal == pytest.approx(np.full((1, 2), 1 / 1.5), rel=0.12)
    else:
        assert mapper.book.nominal == pytest.approx(np.full((1, 2), 0.5), rel=0.25)
    mapper, journal, _ = rates_learnt(OFF, before=0.5)
    assert mapper.book.nominal.tolist() == [[1.0, 1.0]]
    assert journal.events("rates", "arrivals") == []


def test_overhead_is_taken_off_the_rates() -> None:
    mapper, journal, lengths = rates_learnt(Corrections(trust=20), before=0.5)
    assert mapper.book.nominal == pytest.approx(np.full((1, 2), 1 / 2.5), rel=0.25)
    found = statistics(journal)
    assert found.overall.communication == pytest.approx(0.5)
    assert found.overall.execution == pytest.approx(lengths[: found.overall.finished].mean())
    assert (found.overhead < 1).all()


def test_a_threshold_may_depend_on_the_load() -> None:
    curve = {"load": [0, 1], "threshold": [50, 60]}
    mapper, journal, _ = rates_learnt(
        Corrections(arrival_threshold=curve, rate_threshold=[curve], overhead=False)
    )
    assert 0.2 < mapper.beliefs.load() < 0.3, "arrivals of 0.5 on two machines of rate 1"
    assert journal.events("rates", "arrivals") == []


def test_the_timer_of_a_copy_that_went_with_its_machine_is_forgotten() -> None:
    executor, journal = FakeExecutor(["a", "b"], lambda *_: 1e9), Journal(IN_MEMORY)

    async def run() -> Mapper:
        loop = asyncio.get_running_loop()
        settings = Settings(seconds=5, on_timeout="duplicate", retries=9)
        about = (find("fcfs"), executor, journal, ["x"], [[1.0, 1.0]], [1.0], settings)
        mapper = Mapper(*about, clock=loop.time, zero=0.0)
        await mapper.open()
        mapper.hear(Submission(0, 0, b"", Future()))
        await asyncio.sleep(7)
        assert set(mapper.limits._timers) == {(0, 1), (0, 2)}
        executor.fail(executor.machines.index("a"))
        await asyncio.sleep(5)
        mapper.call(lambda now: mapper.withdraw(now, 0), Entry(mapper.now(), "cancelled", 0))
        await asyncio.sleep(20)
        await mapper.close()
        return mapper

    assert run_virtually(run()).limits._timers == {}


def timed_out(policy: Policy, given: str | None = None) -> list[str]:
    """Return what was done with a job whose first attempts take for ever."""
    lengths = {1: 1e9, 2: 1e9, 3: 1.0}
    executor = FakeExecutor(["a", "b"], lambda job, machine, attempt: lengths.get(attempt, 1e9))
    journal = Journal(IN_MEMORY)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        settings = Settings(seconds=5, on_timeout=on_timeout_of(given, policy, "fail"), retries=3)
        about = (policy, executor, journal, ["x"], [[1.0, 1.0]], [1.0], settings)
        mapper = Mapper(*about, clock=loop.time, zero=0.0)
        await mapper.open()
        future: Future[bytes] = Future()
        mapper.hear(Submission(0, 0, b"", future))
        await asyncio.sleep(60)
        await mapper.close()
        if isinstance(wrong := future.exception(timeout=0), InputError):
            raise wrong

    run_virtually(run())
    return [entry.kind for entry in journal.events("timed out", "finished")]


def test_a_policy_says_what_a_time_out_does() -> None:
    seen = []

    def later(task_class: int, machine: int, times: int, view: View) -> str:
        seen.append((task_class, machine, times, view.machines[machine].up))
        return "resubmit" if times < 2 else "fail"

    def first(machine: int, view: View) -> int:
        return 0 if view.classes[0].waiting > 0 else -1

    again = policy_of(first, PULL, on_timeout=later)
    assert timed_out(again) == ["timed out", "timed out", "finished"]
    assert [each[2] for each in seen] == [0, 1]
    assert all(each[3] for each in seen)
    assert timed_out(policy_of(first, PULL)) == ["timed out"]
    assert timed_out(policy_of(first, PULL, on_timeout="resubmit")) == timed_out(again)
    assert timed_out(again, given="fail") == ["timed out"], "whoever runs the grid comes first"


def test_a_policy_that_says_nonsense_about_a_time_out() -> None:
    def first(machine: int, view: View) -> int:
        return 0 if view.classes[0].waiting > 0 else -1

    with pytest.raises(InputError, match="first: on_timeout is 'pray'; expected resubmit"):
        policy_of(first, PULL, on_timeout="pray")
    with pytest.raises(InputError, match="on_timeout answered 'pray'"):
        timed_out(policy_of(first, PULL, on_timeout=lambda *_: "pray"))
