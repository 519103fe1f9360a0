"""Percentiles of the response: against theory, against the event log, and in words."""

import json
from math import exp, factorial, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize import brentq

from gridwright import Hyperexponential, InputError, System, load, simulate, size
from gridwright.cli.main import run
from gridwright.experiments import Result
from gridwright.statistics import BINS, bin_of, longer_than, quantile, share_within
from gridwright.statistics.estimate import student
from gridwright.statistics.histogram import LEAST, MOST, edges


@given(st.floats(2.0**LEAST, 2.0**MOST, exclude_max=True))
def test_a_bin_is_at_most_a_hundredth_wide(time: float) -> None:
    low, high = edges(bin_of(time))
    assert low <= time < high or bin_of(time) == 0
    assert high - edges(bin_of(time) - 1)[1] <= time / 100 or bin_of(time) == 0


@pytest.mark.parametrize("time", [0.0, -1.0, 2.0**LEAST / 2, 2.0**MOST, np.inf, np.nan])
def test_odd_times_have_a_bin(time: float) -> None:
    """A NaN, which no simulation has, would be seen at once among the longest times."""
    assert bin_of(time) == (0 if time < 1 else BINS - 1)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=50), st.floats(0.0, 1.0))
def test_percentiles_of_a_histogram(times: list[float], share: float) -> None:
    counts = np.zeros(BINS, np.int64)
    for time in times:
        counts[bin_of(time)] += 1
    rank = max(int(np.ceil(share * len(times) - 1e-9)), 1)
    assert quantile(counts, share) == pytest.approx(sorted(times)[rank - 1], rel=0.01)
    assert share_within(counts, max(times) * 1.01) == 1.0
    ends, left = longer_than(counts)
    assert left[-1] == pytest.approx(0.0, abs=1e-12)
    assert all(np.diff(ends) > 0)
    assert np.isnan(quantile(np.zeros(BINS, np.int64), share))


def check(result: Result, name: str, exact: float) -> None:
    """A figure lies within 4.5 standard errors of the exact one and 1 %, and is not vague."""
    found = result.figure(name)
    error = found.half_width / student(len(result.replications) - 1)
    assert found.mean == pytest.approx(exact, abs=4.5 * error + 0.01 * exact)
    assert found.half_width < 0.1 * exact


@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_one_machine(policy: str) -> None:
    """The response of an M/M/1 queue is exponential with rate 0.3."""
    system = System(arrivals=[0.7], rates=[[1.0]])
    result = simulate(system, policy, 20_000, 20, 7, warmup=500, tails=True, within=[5.0])
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        check(result, name, -log(1 - share) / 0.3)
    check(result, "within 5", 1 - exp(-0.3 * 5))


def constant(time: float) -> System:
    """Make a machine where all tasks take the same time, and none waits."""
    every: Any = {"execution": "deterministic", "interarrival": "deterministic"}
    return System(arrivals=[0.25 / time], rates=[[1 / time]], **every)


@pytest.mark.parametrize("time", [0.3, 1.0, 2.0, 1000 / 7])
def test_tasks_that_all_take_the_same_time(time: float) -> None:
    system = constant(time)
    limits = [0.99 * time, time, 1.01 * time]
    result = simulate(system, "fcfs", 1000 * time, 2, within=limits)
    assert [result.figure(f"within {limit:g}").mean for limit in limits] == [0, 1, 1]
    assert result.figure("p95").mean == pytest.approx(time, rel=0.01)
    assert result.figure("p95").mean <= time


def test_the_same_time_in_two_bins() -> None:
    """Rounding puts some of the tasks that take 1 below it, into another bin."""
    system = System(arrivals=[0.3], rates=[[1]], execution="deterministic")
    result = simulate(system, "fcfs", 2000, 4, within=[1.0])
    alone = 1 - 0.3  # of an M/D/1 queue, the share of tasks that do not wait
    check(result, "within 1", alone)


def test_a_sharp_end_is_not_taken_for_one_time() -> None:
    times = np.random.default_rng(1).uniform(1.003, 1.1, 1_000_000)
    counts = np.zeros(BINS, np.int64)
    np.add.at(counts, [bin_of(each) for each in times], 1)
    for share in (0.003, 0.5, 0.95, 0.999):
        exact = 1.003 + share * 0.097
        assert share_within(counts, exact) == pytest.approx(share, abs=0.035)
        assert quantile(counts, share) == pytest.approx(exact, abs=0.0035)


def test_a_percentile_that_is_just_held_needs_no_further_machine() -> None:
    found = size(constant(2.0), p95=2.0, policy="fcfs", horizon=1000).found
    assert found is not None
    assert found.fleet.counts == (1,)


def test_whole_ticks(tmp_path: Path) -> None:
    """Responses of chains are whole numbers; 7 are required."""
    path = tmp_path / "chain.toml"
    path.write_text('[[template]]\nname = "one"\nrate = 0.15\nlatency = 7\ntimes = [[3], [2]]')
    result = simulate(load(path), "chain_mct", 20_000, 2, within=[7])
    assert result.figure("within 7").mean == pytest.approx(result.figure("performance").mean)


def test_several_machines() -> None:
    """An M/M/3 queue: a task waits with Erlang's probability, then exponentially."""
    arrivals, machines = 2.4, 3
    below = sum(arrivals**k / factorial(k) for k in range(machines))
    full = arrivals**machines / factorial(machines) * machines / (machines - arrivals)
    waits, free = full / (below + full), machines - 1 - arrivals

    def longer(t: float) -> float:
        return exp(-t) * (1 + waits * (1 - exp(-free * t)) / free)

    system = System(arrivals=[arrivals], rates=[[1.0]], counts=[machines])
    result = simulate(system, "fcfs", 20_000, 10, 7, warmup=500, tails=True, within=[5.0])
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        check(result, name, brentq(lambda t, share=share: longer(t) - (1 - share), 1e-3, 200))
    check(result, "within 5", 1 - longer(5.0))


def test_other_execution_times() -> None:
    """The response of an M/H₂/1 queue is phase-type: a wait (Pollaczek, Khinchine) and a run."""
    load_, times = 0.6, Hyperexponential(scv=3)
    odds, means = (np.array(each) for each in times.phases)
    ends = 1 / means
    left = load_ * odds * means / (odds @ means)  # in which phase those in service are found
    size = len(odds)
    moves = np.zeros((2 * size, 2 * size))
    moves[:size, :size] = -np.diag(ends) + np.outer(ends, left)  # the wait goes on, or is over:
    moves[:size, size:] = np.outer(ends, (1 - load_) * odds)  # then the task itself runs
    moves[size:, size:] = -np.diag(ends)
    start = np.append(left, (1 - load_) * odds)

    def longer(t: float) -> float:
        return float((start @ expm(moves * t)).sum())

    system = System(arrivals=[load_], rates=[[1.0]], execution=times)
    result = simulate(system, "fcfs", 20_000, 32, 3, warmup=500, tails=True)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        check(result, name, brentq(lambda t, share=share: longer(t) - (1 - share), 1e-3, 500))


@pytest.mark.parametrize(
    ("name", "policy", "horizon"),
    [
        ("2.B", "lpas", 300),
        ("3.A:alpha1:1", "gcmu", 20),
        ("4.A", "mct_dec", 20),
        ("Smith", "min_min", 400),
        ("Wisnesky:16", "chain_mct", 1500),
    ],
)
def test_every_response_is_counted(name: str, policy: str, horizon: float) -> None:
    """In each kind of system, the histogram has the responses of the mean, class by class."""
    result = simulate(name, policy, horizon, 1, warmup=horizon / 10, tails=True)
    (one,) = result.replications
    assert one.responses.sum(axis=1).tolist() == one.responded.tolist()
    assert one.responded.sum() > 50
    middles = np.array([np.mean(edges(k)) for k in range(BINS)])
    for counts, mean in zip(one.responses, one.response, strict=True):
        if counts.sum():
            assert counts @ middles / counts.sum() == pytest.approx(mean, rel=0.01)
    without = simulate(name, policy, horizon, 1, warmup=horizon / 10)
    assert without.mean_response == result.mean_response
    assert without.tails == ()


def test_tails_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "2.B", "--policy", "lpas", "--horizon", "500", "--replications", "4"]
    assert run([*words, "--within", "1,2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = ["p50", "p95", "p99", "p99.9", "within 1", "within 2"]
    for of in (found, *found["classes"]):
        means = [of[name]["mean"] for name in names]
        assert means == sorted(means[:4]) + sorted(means[4:])
    assert run([*words, "--tails"]) == 0
    assert "p99.9" in capsys.readouterr().out
    assert run([*words, "--within", "soon"]) == 2
    assert "expected times, as 2 or 2,5" in capsys.readouterr().err
    with pytest.raises(InputError, match="within is -1; expected a positive"):
        simulate("2.B", "lpas", 10, within=[-1])


def test_tails_of_an_unstable_policy_have_no_interval() -> None:
    overloaded = load("2.B").replace(arrivals=[20.0, 20.0])
    result = simulate(overloaded, "mct", 200, 3, tails=True)
    assert result.stable is False
    assert "±" not in result.written("p99")
