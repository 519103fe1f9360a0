"""Replays: the simulator's own events give the simulator's own ends, and nothing is lost."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import InputError, System, load
from gridwright.policies import find
from gridwright.simulation import KINDS, replicate
from gridwright.testbed import Experiment, Fault, JobList, virtually
from gridwright.traces import replay

FAILING = load("3.A:alpha1:5").replace(
    counts=[1] * 6,
    availability=[0.5, 1, 1, 0.75, 1, 1],
    arrivals=load("3.A:alpha1:5").arrivals / 5,
    failures={"mean_uptime": 6, "mean_repair": 2},
    execution="deterministic",  # the simulator draws anew for a task that was lost
)
HORIZON = 8.0


def happened(trace: Any, system: System) -> tuple[JobList, list[Fault], dict[int, float]]:
    """Take arrivals, work, failures and ends off the event log of a simulation."""
    begun: dict[int, tuple[float, int]] = {}
    down: dict[int, float] = {}
    arrived: list[tuple[float, int]] = []
    works: dict[int, float] = {}
    ends: dict[int, float] = {}
    faults = []
    for event in trace[np.argsort(trace["time"], kind="stable")]:
        kind, task, machine, at = KINDS[event.kind], int(event.task), int(event.machine), event.time
        if kind == "arrival":
            assert task == len(arrived)
            arrived.append((float(at), int(event.task_class)))
        elif kind == "start":
            begun[task] = (at, machine)
        elif kind == "finish":
            start, where = begun[task]
            works[task] = float((at - start) * system.effective[arrived[task][1], where])
            ends[task] = float(at)
        elif kind == "failure":
            down[machine] = float(at)
        elif kind == "repair":
            faults.append(Fault(machine, down.pop(machine), float(at)))
    faults += [Fault(machine, start, 1e9) for machine, start in down.items()]
    times, classes = zip(*arrived, strict=True)
    endless = [works.get(task, 1e6) for task in range(len(arrived))]  # ended after the horizon
    return JobList(times, classes, endless), faults, ends


@pytest.mark.parametrize("policy", ["fcfs", "gcmu", "lpas_dg", "pas_dg", "mct"])
def test_a_replay_of_a_simulation_is_that_simulation(policy: str) -> None:
    seed = np.random.SeedSequence(3)
    run = replicate(FAILING, find(policy), horizon=HORIZON, seed=seed, trace=True, interpreted=True)
    jobs, faults, ends = happened(run.trace, FAILING)
    again = replay(FAILING, jobs, policy, faults)
    own = {task: end for task, end in enumerate(again.ended.tolist()) if end < HORIZON}
    assert own.keys() == ends.keys()
    assert len(own) > 80
    assert own == pytest.approx(ends, rel=1e-9)
    assert again.lost > 0


@pytest.mark.parametrize("policy", ["fcfs", "mct"])
def test_a_replay_agrees_with_the_grid_in_virtual_time(policy: str) -> None:
    experiment = Experiment(system="MGST.HiHi:3", policy=policy, duration=15, corrections=False)
    jobs, faults = experiment.job_list(), experiment.faults()
    theirs = virtually(experiment, until=1000.0)
    ours = replay(experiment.system, jobs, policy, faults)
    assert ours.figures["mean_response"] == pytest.approx(theirs.overall.response, rel=1e-6)
    assert ours.lost == theirs.overall.lost
    machines = np.bincount(ours.machines, minlength=experiment.system.shape[1])
    assert machines.tolist() == theirs.executed.sum(axis=0).tolist()


TWO = System(arrivals=[1, 1], rates=[[2, 1], [0, 1]])


@settings(max_examples=40, deadline=None)
@given(
    policy=st.sampled_from(["fcfs", "gcmu", "lpas_dg", "mct", "lpas"]),
    rows=st.lists(
        st.tuples(st.floats(0, 20), st.integers(0, 1), st.floats(0.01, 5)), min_size=1, max_size=30
    ),
    outages=st.lists(
        st.tuples(st.integers(0, 1), st.floats(0.1, 3), st.floats(0.1, 3)), max_size=6
    ),
)
def test_every_job_is_done_once_and_no_machine_works_while_down(
    policy: str, rows: list[tuple[float, int, float]], outages: list[tuple[int, float, float]]
) -> None:
    at, faults = [0.0, 0.0], []
    for machine, up, down in outages:
        faults.append(Fault(machine, at[machine] + up, at[machine] + up + down))
        at[machine] = faults[-1].end
    jobs = JobList(*zip(*sorted(rows), strict=True))
    run = replay(TWO, jobs, policy, faults)
    assert run.done.all()
    spells = sorted(zip(run.machines.tolist(), run.started, run.ended, strict=True))
    for (one, _, end), (other, start, _) in pairwise(spells):
        assert one != other or start >= end - 1e-9, "one job at a time"
    for machine, start, end in spells:
        for fault in faults:
            assert fault.machine != machine or end <= fault.start or start >= fault.end
    assert (run.started >= jobs.times).all()
    taken = jobs.works / TWO.effective[jobs.task_classes, run.machines]
    assert run.ended - run.started == pytest.approx(taken)
    assert (run.busy <= run.figures["makespan"] + 1e-9).all()
    assert run.utilisation == pytest.approx(run.busy / run.figures["makespan"])
    assert run.figures["utilisation"] == pytest.approx(run.utilisation.mean())
    assert run.numbers[-1] == 0


def test_what_can_never_be_done_is_unfinished() -> None:
    run = replay(TWO, JobList([0, 1], [0, 1], [1, 1]), "fcfs", [Fault(1, 0, np.inf)])
    assert run.figures["finished"] == 1
    assert run.figures["unfinished"] == 1
    assert np.isnan(run.by_class[1])
    assert run.as_json()["unfinished"] == 1
    nothing = replay(TWO, JobList([0], [1], [1]), "fcfs", [Fault(1, 0, np.inf)])
    assert np.isnan(nothing.utilisation).all()
    assert nothing.as_json()["finished"] == 0


def test_percentiles_of_a_replay() -> None:
    """One job at a time: responses are the works, from 1 to 1,000."""
    works = np.arange(1.0, 1001.0)
    one = System(arrivals=[0.1], rates=[[1.0]])
    run = replay(
        one, JobList(1000.0 * np.arange(1000), [0] * 1000, works), "fcfs", within=[250, 2000]
    )
    for found in (run.figures, run.figures_of(0), run.as_json(), run.as_json()["classes"]["1"]):
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)):
            assert found[name] == pytest.approx(np.quantile(works, share))
        assert (found["within 250"], found["within 2000"]) == (0.25, 1)
    with pytest.raises(InputError, match="within is 0; expected a positive number of seconds"):
        replay(one, JobList([0], [0], [1]), "fcfs", within=[0])


def test_progress_is_told() -> None:
    told: list[float] = []
    replay(TWO, JobList([0, 1, 2], [0, 0, 0], [1, 1, 1]), "fcfs", progress=told.append)
    assert told == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


THREE = JobList([0, 1, 2], [0, 0, 0], [4, 4, 4])
ONE = System(arrivals=[0.1], rates=[[1]])


@pytest.mark.parametrize(
    ("faults", "back"),
    [
        ([Fault(0, 3, 5), Fault(0, 4, 8)], 8.0),
        ([Fault(0, 4, 5), Fault(0, 3, 10)], 10.0),
        ([Fault(0, 3, 5), Fault(0, 5, 7)], 7.0),
    ],
)
def test_a_machine_is_down_until_all_of_its_failures_are_over(
    faults: list[Fault], back: float
) -> None:
    assert replay(ONE, THREE, "fcfs", faults).ended.tolist() == [back + 4, back + 8, back + 12]


@pytest.mark.parametrize(
    ("jobs", "faults", "words"),
    [
        (THREE, [Fault(0, 3, 3)], "does not end after it has started"),
        (THREE, [Fault(0, 5, 3)], "does not end after it has started"),
        (THREE, [Fault(1, 3, 5)], "the machines are 0 to 0"),
        (JobList([-5, 1], [0, 0], [4, 4]), [], "the times of jobs have to be 0 or more"),
        (JobList([0, 1], [0, 1], [4, 4]), [], "the classes of jobs have to be from 0 to 0"),
    ],
)
def test_what_cannot_be_played_is_refused(jobs: JobList, faults: list[Fault], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replay(ONE, jobs, "fcfs", faults)


def test_policies_of_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="mm is a batch policy; traces are replayed under push"):
        replay(TWO, JobList([0], [0], [1]), "mm")
