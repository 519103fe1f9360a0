"""Arrival rates that change: against exact chains, and where they do not apply."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

import gridwright as gw
from gridwright.allocation import Situation, grouped
from gridwright.allocation.long_run import long_run_of
from gridwright.model import Profile
from gridwright.policies.policy import policy_of
from gridwright.simulation import replicate
from gridwright.simulation.decisions import Decisions
from gridwright.simulation.event_log import ARRIVE
from gridwright.testbed import Experiment, JobList
from gridwright.traces import replay

SERVED = 2.0
"""The rate of the only machine."""


def single(**profile: Any) -> gw.System:
    return gw.System(arrivals=[1.0], rates=[[SERVED]], profile=profile)


def birth_and_death(arrival: float, states: int) -> Any:
    """Return the generator of the number in an M/M/1 system."""
    up = np.full(states - 1, arrival)
    generator = np.diag(up, 1) + np.diag(np.full(states - 1, SERVED), -1)
    return generator - np.diag(generator.sum(axis=1))


def exact_in_cycle(
    durations: list[float], factors: list[float], states: int = 100, steps: int = 200
) -> Any:
    """Return the mean number in each period of a cycle, when all cycles are alike."""
    each = [
        expm(birth_and_death(factor, states) * duration / steps)
        for duration, factor in zip(durations, factors, strict=True)
    ]
    share, numbers = np.eye(states)[0], np.arange(states)
    means: list[float] = []
    for cycle in range(50):
        means.clear()
        for step in each:
            seen = [share @ numbers]
            for _ in range(steps):
                share = share @ step
                seen.append(share @ numbers)
            means.append(float(np.trapezoid(seen, dx=1 / steps)))
        assert share[-1] < 1e-9, cycle
    return np.array(means)


def exact_in_bursts(durations: list[float], factors: list[float], states: int = 1000) -> float:
    """Return the mean number if exponential periods follow each other in a cycle."""
    rows, columns, values = [], [], []
    periods = len(durations)
    for k in range(periods):
        for n in range(states):
            moves = [((k + 1) % periods * states + n, 1 / durations[k])]
            moves += [(k * states + n + 1, factors[k])] * (n + 1 < states)
            moves += [(k * states + n - 1, SERVED)] * (n > 0)
            for to, rate in moves:
                rows += [to, k * states + n]
                columns += [k * states + n] * 2
                values += [rate, -rate]
    balance = coo_matrix((values, (rows, columns))).tolil()
    balance[0, :] = 1.0
    share = spsolve(balance.tocsc(), np.eye(periods * states)[0])
    return float(share @ np.tile(np.arange(states), periods))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_a_cycle_against_the_exact_chain(policy: str) -> None:
    durations, factors = [6.0, 4.0], [0.4, 2.4]
    system = single(durations=durations, factors=factors)
    found = gw.simulate(system, policy, horizon=50_000, warmup=100, replications=20, seed=1)
    exact = np.average(exact_in_cycle(durations, factors), weights=durations)
    assert abs(found.mean_number.mean - exact) < 2.5 * found.mean_number.half_width
    assert found.mean_number.half_width < 0.02 * exact
    assert found.peak_load == pytest.approx(1.2)
    assert found.long_run_load == pytest.approx(0.6)


@pytest.mark.slow
def test_a_sweep_over_time_against_the_exact_chain() -> None:
    """Who arrives at an M/M/1 system with n tasks responds after n + 1 services, on average."""
    lengths, factors = [3.0, 3.0, 1.0, 1.0, 2.0], [0.4, 0.4, 2.4, 2.4, 2.4]
    system = single(durations=[6, 4], factors=[0.4, 2.4])
    found = gw.sweep_over_time(
        system, ["mct", "fcfs"], [0, 3, 6, 7, 8], horizon=20_005, warmup=95, replications=20
    )
    number = exact_in_cycle(lengths, factors, steps=100)
    assert np.ptp(number) > 2, "it differs much between the intervals"
    exact = {"mean_number": number, "mean_response": (number + 1) / SERVED}
    rows = found.rows()
    assert found.arrival_rates == pytest.approx(factors)
    for name, wanted in exact.items():
        for k, row in enumerate(rows):
            at, measured = wanted[k // 2], row[name]
            # of 20 replications: beyond 3.2 half widths in one of 20 figures once in 20,000 runs
            assert abs(measured.mean - at) < 3.2 * measured.half_width, (name, row)
            assert measured.half_width < 0.05 * at


def test_intervals_add_up_to_the_whole() -> None:
    """Over whole cycles the mean of the intervals is that of the run, also by class."""
    day = {"durations": [2, 3, 5], "factors": [[1, 0, 2], [0.5, 2, 1]]}
    system = gw.System(arrivals=[2, 1], rates=[[4, 1], [1, 3]], profile=day)
    found = gw.sweep_over_time(system, ["mct", "fcfs"], horizon=200, replications=3)
    assert len(found.edges) == 13
    for result, runs in zip(found.results, found.measured, strict=True):
        for replication, own in zip(result.replications, runs, strict=True):
            lengths = np.diff(found.edges)
            by_class = np.average(own.number, axis=0, weights=lengths)
            assert by_class == pytest.approx(replication.class_number)
            assert by_class.sum() == pytest.approx(replication.mean_number)
            assert (own.responded[4:8, 0] == 0).all(), "no task of class 1 arrives then"
            done = own.responded.sum(axis=0)
            total = np.nansum(own.response * own.responded, axis=0)
            if result.policy.kind is not gw.policies.PUSH:  # push counts tasks when it sends them
                assert (done == replication.responded).all()
                assert total / done == pytest.approx(replication.response)
    assert found.as_json()["intervals"][0]["policies"][1]["classes"][1]["name"] == "2"


@pytest.mark.parametrize(
    ("system", "given", "said"),
    [
        (gw.System(arrivals=[1], rates=[[2]]), {}, r"the system has no \[profile\]"),
        (single(durations=[1, 2], factors=[1, 2], random=True), {}, "is random"),
        (single(durations=[6, 4], factors=[1, 2]), {"times": [1, 3]}, "rising times from 0 on"),
        (single(durations=[6, 4], factors=[1, 2]), {"times": [0, 11]}, "less than 10, the length"),
        (single(durations=[6, 4], factors=[1, 2]), {"horizon": 9}, "no cycle of 10 time units"),
        (single(durations=[6, 4], factors=[1, 2]), {"horizon": 1e9}, "use a shorter horizon"),
    ],
)
def test_sweeps_over_time_that_are_refused(system: Any, given: Any, said: str) -> None:
    with pytest.raises(gw.InputError, match=said):
        gw.sweep_over_time(system, ["mct"], **given)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mct", "fcfs"])
def test_bursts_against_the_exact_chain(policy: str) -> None:
    durations, factors = [20.0, 5.0], [0.5, 3.0]
    system = single(durations=durations, factors=factors, random=True)
    found = gw.simulate(system, policy, horizon=100_000, warmup=500, replications=20, seed=1)
    exact = exact_in_bursts(durations, factors)
    assert abs(found.mean_number.mean - exact) < 2.5 * found.mean_number.half_width
    assert found.mean_number.half_width < 0.04 * exact
    assert found.peak_load == pytest.approx(1.5)


def test_what_a_profile_adds_to_the_variance() -> None:
    # two exponential periods: 2 × variance × d1 d2 / (d1 + d2)
    bursts = single(durations=[20, 5], factors=[0.5, 3], random=True)
    still = gw.System(arrivals=[1.0], rates=[[SERVED]])
    more = long_run_of(bursts).variance - long_run_of(still).variance
    assert more == pytest.approx(2 * (0.8 * 0.5**2 + 0.2 * 2**2) * 4)
    assert long_run_of(single(durations=[20, 5], factors=[0.5, 3])).variance == 2.0


def test_nothing_arrives_in_a_period_without_arrivals() -> None:
    system = gw.System(
        arrivals=[5, 0.001],
        rates=[[8, 3], [4, 10]],
        profile={"durations": [1, 3], "factors": [[4, 0], [2, 2 / 3]]},
    )
    assert system.arrival_rates.tolist() == pytest.approx([5, 0.001])
    jobs = JobList.drawn(system, 400, seed=2)
    times = jobs.times[jobs.task_classes == 0]
    assert (times % 4 < 1).all()
    assert abs(len(times) - 2000) < 4.5 * 2000**0.5
    seed = np.random.SeedSequence(3)
    trace = replicate(system, gw.policies.find("mct"), horizon=400, seed=seed, trace=True).trace
    times = trace.time[(trace.kind == ARRIVE) & (trace.task_class == 0)]
    assert len(times) > 1000
    assert (times % 4 < 1).all()


def test_beliefs_are_the_mean_rates() -> None:
    system = single(durations=[1, 1], factors=[1, 2])
    assert system.believed.arrivals.tolist() == [1.5]
    told = system.replace(assumed={"arrivals": [0.7]})
    assert told.believed.arrival_rates.tolist() == [0.7]
    assert gw.allocate(system).capacity == pytest.approx(SERVED / 1.5)
    assert gw.System.model_validate(system.parts()) == system


SEEN: list[tuple[float, Any, Any, Any]] = []
"""What ``pushed`` and ``pulled`` have seen: the time, arrival rates, the plan, who is up."""


def note(view: gw.View) -> None:
    present = view.machines.up * view.machines.availability
    SEEN.append((view.now, view.classes.arrival.copy(), view.plan.copy(), present))


def pushed(task_class: int, view: gw.View) -> int:
    note(view)
    return int(np.argmax(view.plan[task_class])) if view.plan[task_class].any() else -1


def pulled(machine: int, view: gw.View) -> int:
    note(view)
    wanted = (view.classes.waiting > 0) * view.plan[:, machine]
    return int(np.argmax(wanted)) if wanted.any() else -1


DAY: dict[str, Any] = {"durations": [3, 2, 5], "factors": [[2.0, 0.5, 1.0], [0.4, 1.3, 1.0]]}
BUSY = gw.System(arrivals=[3.0, 3.0], rates=[[6, 3, 1], [2, 4, 6]], profile=DAY)


@pytest.mark.parametrize("kind", [gw.policies.PUSH, gw.policies.PULL])
@pytest.mark.parametrize("failures", [None, {"mean_uptime": 9, "mean_repair": 1}])
def test_the_present_rates_are_believed(kind: Any, failures: Any) -> None:
    """At every decision the policy sees the arrival rates of the period, and a plan for them."""
    SEEN.clear()
    policy = policy_of(pulled if kind.pulls else pushed, kind, plan=grouped)
    system = BUSY.replace(assumed={"arrivals": "present"}, failures=failures)
    seed = np.random.SeedSequence(2)
    found = replicate(system, policy, horizon=60, seed=seed, interpreted=True)
    assert len(SEEN) > 200
    ends = np.cumsum(DAY["durations"])
    for now, arrival, plan, present in SEEN:
        period = int(np.searchsorted(ends, now % 10, side="right"))
        wanted = BUSY.arrivals * np.array(DAY["factors"])[:, period]
        assert arrival == pytest.approx(wanted)
        now_best = Situation(BUSY.rates, wanted, present, np.arange(3))
        assert plan == pytest.approx(policy.plan(now_best))
    assert found.replans >= 17, "three changes a cycle, none at the end"


BURSTS = {"durations": [20, 5], "factors": [0.3, 3.0], "random": True}


@pytest.mark.parametrize("kind", [gw.policies.PUSH, gw.policies.PULL])
@pytest.mark.parametrize("profile", [None, BURSTS])
def test_measured_rates_are_believed(kind: Any, profile: Any) -> None:
    """At every decision the policy sees what came in the last window, and a plan for it."""
    SEEN.clear()
    policy = policy_of(pulled if kind.pulls else pushed, kind, plan=grouped)
    system = BUSY.replace(profile=profile, assumed={"arrivals": {"measured_over": 0.5}})
    seed = np.random.SeedSequence(2)
    found = replicate(system, policy, horizon=50, seed=seed, interpreted=True, trace=True)
    came = found.trace[found.trace.kind == ARRIVE]
    edges = np.arange(0, 50.5, 0.5)
    counts = [np.histogram(came.time[came.task_class == i], edges)[0] for i in range(2)]
    assert len(SEEN) > 100
    assert min(map(min, counts)) == 0, "a class may not come at all"
    for now, arrival, plan, present in SEEN:
        window = int(now / 0.5) - 1
        last = np.maximum([each[window] for each in counts], 0.5) / 0.5
        wanted = last if window >= 0 else system.arrival_rates
        assert arrival == pytest.approx(wanted)
        now_best = Situation(BUSY.rates, wanted, present, np.arange(3))
        assert plan == pytest.approx(policy.plan(now_best))
    assert found.replans == 99, "none at the end"


@pytest.mark.parametrize("policy", ["lpas", "lpas_dg"])
def test_measured_rates_give_compiled_what_they_give_interpreted(policy: str) -> None:
    system = BUSY.replace(assumed={"arrivals": {"measured_over": 2.5}})
    one, other = (
        replicate(
            system,
            gw.policies.find(policy),
            horizon=60,
            seed=np.random.SeedSequence(4),
            interpreted=interpreted,
        )
        for interpreted in (False, True)
    )
    assert one.replans == other.replans == 23
    assert one.response == pytest.approx(other.response, rel=1e-12)


def test_measured_rates_that_cannot_be(tmp_path: Path) -> None:
    system = BUSY.replace(assumed={"arrivals": {"measured_over": 2.5}})
    assert system.believed.arrival_rates == pytest.approx(BUSY.arrival_rates)
    assert gw.System.model_validate(system.parts()) == system
    (tmp_path / "measured.toml").write_text(system.to_toml())
    assert gw.load(tmp_path / "measured.toml").arrivals_window == 2.5
    for wrong, said in (
        ({"arrivals": {"measured_over": 0}}, "measured_over"),
        ({"arrivals": {"window": 3}}, "window"),
        ({"arrivals": "mean"}, "present"),
        ({"arrivals": {"measured_over": 1}, "inaccuracy": {"arrivals": 0.1}}, "expected one"),
    ):
        with pytest.raises(ValueError, match=said):
            BUSY.replace(assumed=wrong)
    only = gw.System(arrivals=[1.0], rates=[[2.0]], assumed=system.assumed)
    with pytest.raises(gw.InputError, match=r"arrivals that are measured, for push and pull"):
        gw.simulate(only, "min_min", horizon=10)
    with pytest.raises(gw.InputError, match=r"more than 10,000,000 of these"):
        gw.simulate(only.replace(assumed={"arrivals": {"measured_over": 1e-9}}), "mct", horizon=10)
    with pytest.raises(gw.InputError, match="for simulations, not for replays"):
        replay(only, JobList([0], [0], [1]), "mct")


@pytest.mark.parametrize("policy", ["lpas", "lpas_dg"])
def test_present_rates_that_never_change(policy: str) -> None:
    """Plans for the same rates change no response, and the number but for the order of its sum."""
    still = BUSY.replace(profile={"durations": [3, 7], "factors": [1.0, 1.0]})
    told = still.replace(assumed={"arrivals": "present"})
    mean, present = (gw.simulate(each, policy, 300, 2) for each in (still, told))
    assert present.replications[0].replans == 59
    assert present.values("mean_number") == pytest.approx(mean.values("mean_number"), rel=1e-12)
    assert (present.values("mean_response") == mean.values("mean_response")).all()


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (None, "expected a [profile] that is not random"),
        ({"durations": [1, 2], "factors": [1, 2], "random": True}, "that is not random"),
        ({"durations": [1, 2], "factors": [0, 2]}, "factors has a 0"),
    ],
)
def test_present_rates_that_cannot_be_known(profile: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        BUSY.replace(profile=profile, assumed={"arrivals": "present"})
    known = BUSY.replace(assumed={"arrivals": "present"})
    assert known.believed.arrival_rates == pytest.approx(BUSY.arrival_rates)
    assert gw.System.model_validate(known.parts()) == known
    with pytest.raises(gw.InputError, match="for policies, not for learners"):
        Decisions(known, "pull", 1, horizon=10)
    with pytest.raises(gw.InputError, match="for simulations, not for replays"):
        replay(known, JobList([0], [0], [1]), "mct")
    with pytest.raises(gw.InputError, match="measures them"):
        Experiment(system=known, policy="mct")


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({"durations": [], "factors": []}, "durations is empty"),
        ({"durations": [1, 2], "factors": [1]}, "factors has 1 columns; expected 2"),
        ({"durations": [1], "factors": [0]}, "all 0"),
        ({"durations": [1], "factors": [[1], [2]]}, "factors has 2 entries; expected 1"),
        ({"durations": [1], "factors": [1], "random": "yes"}, "random"),
    ],
)
def test_wrong_profiles(profile: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        single(**profile)


def test_who_refuses_a_profile() -> None:
    system = single(durations=[1, 1], factors=[1, 2])
    with pytest.raises(gw.InputError, match=r"\[profile\], for push and pull policies only"):
        gw.simulate(system, "min_min", horizon=10)
    with pytest.raises(gw.InputError, match="constant arrival rates"):
        gw.optimum(system)
    assert Profile(durations=[2, 2], factors=[1, 3]).means(2).tolist() == [2, 2]
