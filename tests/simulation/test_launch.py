"""Many runs on a device: a fake one runs the same functions in plain Python."""

from __future__ import annotations

import sys
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import (
    Distribution,
    InputError,
    System,
    load,
)
from gridwright.policies import PULL, PUSH, PerClass, View, find
from gridwright.policies.policy import policy_of
from gridwright.simulation import Job, Replication, launch, replicate
from gridwright.simulation.launch import Fleet, ready, share_out
from gridwright.simulation.on_device import ROOM, OnDevice

from .fake_device import Interpreter

FAILING = System(
    name="failing",
    arrivals=[3, 4],
    rates=[[4, 1, 2], [2, 3, 0]],
    counts=[1, 2, 1],
    availability=[1, 0.5, {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}],
    failures={"mean_uptime": 10, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}},
    execution=[{"kind": "hyperexponential", "scv": 2}, "exponential"],
    assumed={"inaccuracy": {"availability": 0.3, "rates": 0.1, "arrivals": 0.1}},
)
KEEPING = FAILING.replace(
    failures={"mean_uptime": 2, "mean_repair": 1, "same_work": True}, name="keeping"
)
SEEDS = [np.random.SeedSequence(5, spawn_key=(number,)) for number in range(3)]


def run(fake: Interpreter, *jobs: Job, **options: Any) -> dict[tuple[int, int], Replication]:
    found: dict[tuple[int, int], Replication] = {}

    def on_done(job: int, number: int, replication: Replication) -> None:
        assert (job, number) not in found
        found[job, number] = replication

    launch(fake, jobs, on_done, **options)
    return found


def as_on_a_cpu(job: Job, number: int) -> Replication:
    return replicate(
        job.system,
        job.policy,
        horizon=job.horizon,
        warmup=job.warmup,
        tails=job.tails,
        seed=job.seeds[number],
        rng="philox",
        interpreted=True,
    )


def check(found: dict[tuple[int, int], Replication], *jobs: Job, rtol: float = 0.0) -> None:
    assert found.keys() == {(k, n) for k, job in enumerate(jobs) for n in range(len(job.seeds))}
    for (k, number), one in found.items():
        other = as_on_a_cpu(jobs[k], number)
        for name in set(Replication._fields) - {"seconds", "trace", "more"}:
            mine, theirs = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(mine, theirs, rtol, err_msg=f"{k}, {number}: {name}")


def test_systems_and_policies_run_together_as_on_a_cpu() -> None:
    small, jobs = load("2.B"), []
    for system, name in [
        (small, "lpas"),
        (load("2.D"), "lpas"),
        (small, "guided_lpas"),
        (FAILING, "lpas_dg"),
        (FAILING, "mct"),
        (KEEPING, "mct"),
        (KEEPING, "cmu:preempt=true"),
        (FAILING, "kpb:k=2"),
        (FAILING, "kpb:k=3"),
        (small, "fcfs"),
        (FAILING, "cmu:preempt=true"),
    ]:
        jobs.append(Job(system, find(name), SEEDS[:2], 4.0, 1.0))
    fake = Interpreter()
    check(run(fake, *jobs), *jobs)
    assert max(fake.counts) == 4, "two systems under lpas, and two values of k, are one launch each"


def dearest(machine: int, view: View, weight: PerClass = 1.0) -> int:
    """Take the waiting class with the largest weight."""
    best = -1
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and (best < 0 or weight[i] > weight[best]):
            best = i
    return best


def rotating(task_class: int, view: View) -> int:
    """Send tasks to the machines in turn, and count them in a table of its own size."""
    view.memory[6, 1] += 1.0
    turn = int(view.memory[6, 1]) % len(view.machines)
    return turn if view.rate[task_class, turn] > 0.0 else task_class % len(view.machines)


ROTATING = policy_of(rotating, PUSH, memory=(7, 2))


def test_parameters_by_class_and_memories_of_any_size_run_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(load("2.B"), policy_of(dearest, PULL)(weight=[1, 2]), SEEDS[:1], 4.0, 1.0)
    check(run(Interpreter(), job), job)
    apart = [Job(load(name), ROTATING, SEEDS, 4.0, 1.0) for name in ("2.B", "2.D")]
    check(run(Interpreter(), *apart), *apart)
    monkeypatch.setattr(sys.modules[OnDevice.__module__], "MANY_RUNS", 2)
    check(run(Interpreter(), *apart), *apart)


@pytest.mark.parametrize(("policy", "shares"), [("lpas_dg", (1, 0.5)), ("pas", (1, 1))])
def test_plans_that_many_runs_need_are_solved_before(
    policy: str, shares: tuple[float, float]
) -> None:
    system = System(
        arrivals=[2, 2],
        rates=[[4, 4, 1], [2, 2, 3]],
        availability=[*shares, 1],
        failures={"mean_uptime": 3, "mean_repair": 2},
    )
    job = Job(system, find(policy), SEEDS, 25.0)
    fake = Interpreter()
    found = run(fake, job)
    check(found, job)
    assert "solved" in fake.hooks
    assert min(each.replans for each in found.values()) > 8, "all situations were met"
    unlike = system.replace(availability=[0.3, 0.7, 1])  # a sum depends on which come first
    few, fake = Job(unlike, find(policy), SEEDS[:1], 5.0), Interpreter()
    check(run(fake, few), few)
    assert "solved" not in fake.hooks


def test_many_runs_lie_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[OnDevice.__module__], "MANY_RUNS", 2)
    seeds = [np.random.SeedSequence(5, spawn_key=(number,)) for number in range(34)]
    without = [
        Job(load("2.B"), find("pas"), seeds, 1.0, 0.5),
        Job(load("2.D"), find("pas"), SEEDS, 1.0),
    ]
    steady = FAILING.replace(availability=[1, 1, 0.5], assumed=None)
    crowded = System(arrivals=[120.0], rates=[[1.0]])
    more = [Job(steady, find("lpas_dg"), SEEDS, 4.0, 1.0), Job(crowded, find("fcfs"), SEEDS, 4.0)]
    for jobs in (without, more):
        fake = Interpreter()
        check(run(fake, *jobs), *jobs, rtol=1e-12)
        assert ("by_machine" in fake.hooks) == (jobs is without)
        assert "in_step" in fake.hooks


def test_delays_are_kept() -> None:
    delays = {"before": 0.1, "after": 0.05, "detection": 0.5, "reporting": 1.0}
    job = Job(FAILING.replace(delays=delays), find("lpas_dg"), SEEDS[:1], 6.0)
    check(run(Interpreter(), job), job)


def test_tails_are_measured_there_too() -> None:
    jobs = [Job(FAILING, find(name), SEEDS[:1], 4.0, tails=True) for name in ("mct", "lpas_dg")]
    found = run(Interpreter(), *jobs)
    check(found, *jobs)
    assert all(each.responses.sum() > 0 for each in found.values())


def test_a_run_that_needs_more_room_comes_back_and_goes_on() -> None:
    crowded = System(arrivals=[120.0], rates=[[1.0]])
    for name in ("mct", "fcfs"):
        job = Job(crowded, find(name), SEEDS, 5.0)
        found = run(Interpreter(), job)
        assert max(each.number.max() for each in found.values()) > 1.5 * ROOM
        check(found, job, rtol=1e-12)  # where a loop comes back, its sums are added up


def test_runs_that_outgrow_the_memory_start_again_in_smaller_parts() -> None:
    job = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS, 5.0)
    narrow = Interpreter(memory=90_000)
    check(run(narrow, job), job, rtol=1e-12)
    assert narrow.counts[1] == len(SEEDS)
    assert narrow.counts[-1] == 1
    with pytest.raises(InputError, match=r"more than 256 tasks .* the GPU has no memory for more"):
        run(Interpreter(memory=20_000), job._replace(seeds=SEEDS[:1]))


def test_what_is_read_back_is_read_in_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Fleet.__module__], "HERE", 8 * 3000)
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0, 1.0) for name in ("lpas", "fcfs")]
    check(run(Interpreter(), *jobs), *jobs)


def patient(task_class: int, view: View) -> int:
    """Hold a task back while the first machine has two."""
    return 0 if view.machines[0].backlog < 2 else -1


def test_a_policy_that_holds_tasks_back_gets_an_event_list() -> None:
    system = System(arrivals=[2.0], rates=[[3.0]])
    policies = [policy_of(patient, PUSH), find("mct")]
    jobs = [Job(system, each, SEEDS, 10.0) for each in policies]
    found = run(Interpreter(), *jobs)
    check(found, *jobs)
    assert any(each.held for each in found.values())


def test_what_does_not_fit_is_run_in_parts() -> None:
    job = Job(load("2.B"), find("lpas"), SEEDS, 3.0)
    whole, narrow = Interpreter(), Interpreter(memory=10_000)
    assert run(whole, job).keys() == run(narrow, job).keys()
    assert (whole.linked, narrow.linked) == (1, 3)
    check(run(narrow, job), job)


def test_programs_run_side_by_side_until_they_fill_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0) for name in ("mct", "fcfs", "jsq")]
    together, in_turn = Interpreter(), Interpreter()
    check(run(together, *jobs), *jobs)
    assert together.starts[:6] == [1, 2, 3, 1, 2, 3]
    assert max(together.side_by_side) == len(jobs) * len(SEEDS)
    monkeypatch.setattr(sys.modules[Fleet.__module__], "ENOUGH", len(SEEDS))
    check(run(in_turn, *jobs), *jobs)
    assert in_turn.starts == sorted(in_turn.starts)
    assert set(in_turn.side_by_side) == {len(SEEDS)}


class Lender(Interpreter):
    """A device that knows how much of its memory is in use, and what it said of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.lent: list[weakref.ref[Any]] = []
        self.said: list[int] = []

    def put(self, array: Any, times: int = 1) -> Any:
        there = super().put(array, times)
        self.lent.append(weakref.ref(there))
        return there

    def free(self) -> int:
        used = sum(there.nbytes for each in self.lent if (there := each()) is not None)
        self.said.append(self.memory - used)
        return self.said[-1]


def test_what_is_done_is_freed_before_the_next_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Fleet.__module__], "ENOUGH", len(SEEDS))
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0) for name in ("mct", "fcfs", "jsq")]
    lender = Lender()
    run(lender, *jobs)
    assert len(lender.said) == 1 + len(jobs)
    assert set(lender.said) == {lender.memory}


def test_a_run_that_outgrows_the_memory_waits_for_those_beside_it() -> None:
    crowded = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS[:1], 5.0)
    small = Job(load("2.B"), find("fcfs"), SEEDS[:1], 3.0)
    narrow = Interpreter(memory=20_000)  # alone, the first one is refused
    check(run(narrow, crowded, small), crowded, small, rtol=1e-12)
    assert narrow.linked == 3


def test_a_run_that_outgrows_the_memory_gets_that_of_one_that_has_just_ended() -> None:
    crowded = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS[:1], 5.2)
    beside = Job(load("2.B"), find("fcfs"), SEEDS[:2], 60.0)
    narrow = Lender()
    narrow.memory = 90_000
    check(run(narrow, beside, crowded), beside, crowded, rtol=1e-12)


def test_a_run_that_is_unstable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnDevice, "most", 512)
    crowded = Job(System(name="too full", arrivals=[120.0], rates=[[1.0]]), find("mct"), SEEDS, 8.0)
    others = [Job(load(name), find("mct"), SEEDS, 2.0) for name in ("2.B", "2.D")]
    with pytest.raises(InputError, match=r"^mct on too full: more than 512 tasks .* is unstable"):
        run(Interpreter(), others[0], crowded, others[1])


class Slow(Interpreter):
    """A device on which every launch of its first program takes as long as many of the others."""

    waits = 0

    def has_ended(self) -> bool:
        if self.starts and self.place == 1:
            self.waits += 1
            return self.waits % 50 == 0
        return True


def test_no_program_waits_for_a_slow_one() -> None:
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0) for name in ("mct", "fcfs", "jsq")]
    slow = Slow()
    check(run(slow, *jobs), *jobs)
    last = {place: len(slow.starts) - slow.starts[::-1].index(place) for place in (1, 2, 3)}
    assert last[1] > max(last[2], last[3])
    assert slow.starts.count(1) == slow.starts.count(2)


def test_what_ended_first_is_counted_first() -> None:
    """Time in which nothing ran is not shared out, however late a launch is seen to have ended."""
    early, late = (
        SimpleNamespace(is_ready=True, ended=end, began=begin, span=(begin, end), seconds=0.0)
        for begin, end in ((0.0, 1.0), (10.5, 10.75))
    )
    fleets: Any = [late, early]
    until = 0.0
    for fleet in ready(fleets):
        until = share_out(fleet, fleets, until)
        fleet.began = 11.0
    assert (early.seconds, late.seconds) == (1.0, 0.25)


LAUNCHES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=5)


@given(st.lists(LAUNCHES, min_size=1, max_size=4))
def test_time_that_programs_share_is_counted_once(given: list[list[tuple[int, int]]]) -> None:
    """Each program has pauses and launches, one after the other."""
    spans = []
    for number, launches in enumerate(given):
        end = 0
        for pause, long in launches:
            begin, end = end + pause, end + pause + long
            spans.append((begin, end, number))
    fleets: Any = [SimpleNamespace(seconds=0.0, began=np.inf) for _ in given]
    until = 0.0
    for begin, end, number in sorted(spans, key=lambda span: span[1]):
        for k, fleet in enumerate(fleets):
            begun = [a for a, b, own in spans if own == k and a < end <= b]
            fleet.began = begun[0] if begun else np.inf
        fleets[number].span = (begin, end)
        until = share_out(fleets[number], fleets, until)
    covered = {moment for begin, end, _ in spans for moment in range(begin, end)}
    assert sum(each.seconds for each in fleets) == pytest.approx(len(covered))
    for fleet, launches in zip(fleets, given, strict=True):
        assert fleet.seconds <= sum(long for _, long in launches) + 1e-9
        assert (fleet.seconds > 0.0) == bool(launches)


class Triangular(Distribution):
    """A user's own distribution, which is drawn in Python."""

    @property
    def mean(self) -> float:
        return 1.0

    @property
    def variance(self) -> float:
        return 1 / 6

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return rng.triangular(0, 1, 2, size)


def test_draws_of_a_users_distribution_come_from_here() -> None:
    job = Job(
        System(arrivals=[2.0], rates=[[3.0]], execution=Triangular()), find("mct"), SEEDS, 9.0
    )
    check(run(Interpreter(), job), job)


def test_progress_rises_to_one_and_a_stop_is_a_stop() -> None:
    shares: list[float] = []
    jobs = [Job(load("2.B"), find(name), SEEDS[:1], 5.0) for name in ("mct", "fcfs")]
    run(Interpreter(), *jobs, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    shares.clear()
    crowded = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS, 5.0)
    narrow = Interpreter(memory=90_000)
    run(narrow, crowded, on_progress=shares.append)
    assert narrow.linked > 1, "some started again"
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Interpreter(), *jobs, on_progress=stop)


def own_plan(situation: Any) -> Any:
    """Permit everything."""
    return np.ones(situation.rates.shape)


def first_class(machine: int, view: View) -> int:
    """Take the first class."""
    return 0 if view.classes[0].waiting > 0 else 1


def test_a_planner_in_python_is_refused_where_plans_change() -> None:
    mine = policy_of(first_class, PULL, own_plan)
    job = Job(load("2.B"), mine, SEEDS[:1], 2.0)
    check(run(Interpreter(), job), job)
    with pytest.raises(InputError, match="its planner is plain Python, which does not"):
        run(Interpreter(), Job(FAILING, mine, SEEDS[:1], 2.0))
