"""Twins: experiments in virtual time agree with the simulator, and take a gap apart."""

from pathlib import Path

import numpy as np
import pytest

from gridwright import System, simulate
from gridwright.grid.event import Entry
from gridwright.testbed import Experiment, new_run, virtually
from gridwright.testbed.conduct import Action
from gridwright.testbed.evaluation import expect
from gridwright.testbed.twin import Causes, Gap, causes_of
from gridwright.testbed.workload import Fault, JobList


@pytest.mark.slow
def test_virtual_runs_have_the_mean_of_the_simulator() -> None:
    """The mean of two runs of 60 time units is about the simulated mean of such runs.

    That single jobs are sent where and when the simulator sends them, tests/grid/test_virtual.py
    shows.
    """
    experiment = Experiment(system="MGST.HiHi:1", policy="lpas_dg", duration=60, corrections=False)
    own = [virtually(experiment.replace(seed=seed)).overall.response for seed in range(2)]
    theirs = simulate("MGST.HiHi:1", "lpas_dg", 60, 60, seed=9).mean_response
    assert np.mean(own) == pytest.approx(theirs.mean, rel=0.2)  # four times the standard error


FAILURES = {"mean_uptime": 5, "mean_repair": 0.5}
LONG_AND_SHORT = {"kind": "pmf", "values": [0.25, 4], "probabilities": [0.8, 0.2]}


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "mct"])
def test_virtual_runs_lose_as_much_work_as_the_simulator(policy: str) -> None:
    """A job that is lost has the same work again, so the long ones are lost more often.

    The mean of eight runs is within 4.5 standard errors of the simulated one; that of tasks which
    get a new execution time is not.
    """
    length, runs, many = 800.0, 8, 200
    system = System(arrivals=[0.3], rates=[[1, 1]], execution=LONG_AND_SHORT, failures=FAILURES)
    experiment = Experiment(system=system, policy=policy, duration=length, corrections=False)
    own = [virtually(experiment.replace(seed=seed)).overall.response for seed in range(runs)]
    same, anew = (
        simulate(each, policy, length, many, seed=9).values("mean_response")
        for each in (system.replace(failures={**FAILURES, "same_work": True}), system)
    )
    most = 4.5 * same.std(ddof=1) * np.sqrt(1 / runs + 1 / many)
    assert np.mean(own) == pytest.approx(same.mean(), abs=most)
    assert same.mean() - anew.mean() > most


def test_the_expectation_of_a_run_keeps_the_work_of_lost_jobs() -> None:
    system = System(arrivals=[0.3], rates=[[1, 1]], execution=LONG_AND_SHORT, failures=FAILURES)
    kept = system.replace(failures={**FAILURES, "same_work": True})
    one, other = (
        expect(Experiment(system=each, policy="fcfs", duration=50), 50.0) for each in (system, kept)
    )
    assert one == other
    assert one.low < one.long_run < one.high
    long = simulate(system, "fcfs", 20_000, 10).mean_response
    assert one.long_run > 1.3 * long.mean


@pytest.mark.slow
def test_a_virtual_run_is_the_same_again() -> None:
    experiment = Experiment(system="MGST.HiHi:4", policy="pas_dg", duration=10)
    assert repr(virtually(experiment)) == repr(virtually(experiment))


@pytest.mark.slow
def test_every_cause_lengthens_the_response() -> None:
    experiment = Experiment(
        system="MGST.HiHi:3",
        policy="gcmu",
        duration=20,
        timeout=6,
        detection="timeout",
        corrections=False,
    )
    faults = experiment.faults()
    plain = virtually(experiment).overall.response
    slower = virtually(experiment, causes=Causes(execution=np.full((4, 6), 1.2))).overall
    assert slower.response > 1.15 * plain
    late = virtually(experiment, causes=Causes(overhead=(0.02, 0.02))).overall
    assert late.communication == pytest.approx(0.02)
    assert late.notification == pytest.approx(0.02)
    assert late.response > plain + 0.02
    silent = virtually(experiment, causes=Causes(failures=faults)).overall
    assert silent.timed_out > 0


def test_what_operators_did_is_done_to_the_twin() -> None:
    """The same pause, kill and share of the CPU lengthen the response of the twin."""
    jobs = JobList(np.arange(0, 20, 0.5), np.zeros(40, int), np.full(40, 1.0))
    system = {"arrivals": [2.0], "rates": [[4.0, 4.0]], "availability": [0.5, 1]}
    experiment = Experiment(system=system, policy="fcfs", duration=40)
    plain = virtually(experiment, jobs, ()).overall.response
    responses = {}
    for kind, ended, share in (
        ("paused", "resumed", None),
        ("killed", "started again", None),
        ("availability imposed", "availability free", 0.25),
    ):
        actions = Action(0.1, kind, 1, share), Action(10.1, ended, 1)
        found = virtually(experiment, jobs, (), Causes(operators=actions)).overall
        assert found.finished == 40
        responses[kind] = found.response
    assert min(responses.values()) > 1.05 * plain
    same = Action(0.1, "availability imposed", 0, 0.5), Action(10.1, "availability free", 0)
    usual = virtually(experiment, jobs, (), Causes(operators=same)).overall.response
    assert usual == pytest.approx(plain), "the usual share changes nothing"


def test_a_failure_that_only_the_time_out_tells() -> None:
    """A machine goes silent with its job, which runs elsewhere once it has timed out."""
    experiment = Experiment(
        system={"arrivals": [1], "rates": [[1, 1]]},
        policy="fcfs",
        duration=20,
        timeout=4,
        detection="timeout",
        corrections=False,
    )
    jobs, faults = JobList([1.0], [0], [1.5]), (Fault(0, 2.0, 15.0),)
    found = virtually(experiment, jobs, faults, Causes(failures=faults))
    assert found.overall.timed_out == found.overall.lost == 1
    assert found.overall.response == pytest.approx(4 + 1.5), "sent at 1, given up at 5"
    at_once = virtually(experiment, jobs, faults)
    assert at_once.overall.response == pytest.approx(1 + 1.5), "lost at 2"
    short = (Fault(0, 2.0, 3.0),)
    found = virtually(experiment, jobs, short, Causes(failures=short))
    assert found.overall.response == pytest.approx(2 + 1.5), "it is back at 3, and has forgotten"


def test_a_job_that_is_long_everywhere_gets_through() -> None:
    experiment = Experiment(
        system={"arrivals": [1], "rates": [[1, 1]]},
        policy="fcfs",
        duration=100,
        timeout=2,
        corrections=False,
    )
    found = virtually(experiment, JobList([1.0], [0], [7.0]), ())
    assert found.overall.timed_out == 2, "after 2, and after 4 more; not after 8"
    assert found.overall.response == pytest.approx(14), "the first machine is back after 7"


def test_of_two_copies_the_first_answer_counts() -> None:
    experiment = Experiment(
        system={"arrivals": [1], "rates": [[1, 1]]},
        policy="fcfs",
        duration=100,
        timeout=2,
        on_timeout="duplicate",
        corrections=False,
    )
    found = virtually(experiment, JobList([1.0], [0], [7.0]), ())
    assert (found.overall.timed_out, found.overall.finished) == (2, 1)
    assert found.overall.response == pytest.approx(7), "the first copy was left where it was"


def test_shares_of_a_gap_add_up() -> None:
    gap = Gap(
        1.5, 1.0, {"arrivals": 1.1, "execution": 1.1, "overhead": 1.3, "failures": 1.25}, 1, 1
    )
    assert gap.relative == 0.5
    assert sum(gap.shares.values()) == pytest.approx(0.5)
    assert gap.shares["unexplained"] == pytest.approx(0.25)


def test_a_failure_of_a_machine_that_an_operator_has_taken_away(tmp_path: Path) -> None:
    experiment = Experiment(system="MGST.HiHi:1", policy="gcmu", duration=20)
    with new_run(experiment, path=tmp_path / "1.sqlite") as run:
        name, other = experiment.machine_names()[:2]
        told = [Entry(3.0, "failure", machine=name, fields={"period": 10.0})]
        told += [Entry(5.0, "failure", machine=name), Entry(8.0, "repair", machine=name)]
        told += [Entry(13.0, "up", machine=name), Entry(14.0, "failure", machine=other)]
        run.journal.write(told)
        assert causes_of(run).failures == (Fault(0, 3.0, 13.0), Fault(1, 14.0, run.until + 1))
