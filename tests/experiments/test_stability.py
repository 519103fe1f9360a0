"""Verdicts on stability: overloaded systems, runs that are too short to tell, and who is ranked."""

from typing import Any

import numpy as np
import pytest

from gridwright import System, adversary, compare, contest, optimum, pull, simulate, sweep
from gridwright.allocation import allocate, long_run_of
from gridwright.policies import policies
from gridwright.statistics import stability

RATES = [[1.2, 0.4], [0.4, 1.2]]
FAILURES = {"mean_uptime": 8, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}}
"""Not only exponential times, as in other tests of every policy: they share compiled code."""
OVERLOADED = System(name="overloaded", arrivals=[1, 1], rates=RATES, failures=FAILURES)
"""At 83 % with every machine up, and at 104 % in the long run."""
POLICIES = [n for n, policy in policies().items() if policy.kind.is_central and policy.is_shipped]


def one_machine(load: float) -> System:
    return System(arrivals=[load], rates=[[1.0]])


@pytest.mark.parametrize("horizon", [200, 1000])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_is_stable_on_an_overloaded_system(policy: str, horizon: float) -> None:
    result = simulate(OVERLOADED, policy, horizon, 4)
    assert result.stable is False
    assert result.long_run_load == pytest.approx(5 / 6 / 0.8)
    assert result.verdict == "unstable: the long-run load is 104.2 %"
    assert result.as_json()["long_run_load"] == result.long_run_load


@pytest.mark.parametrize(
    ("load", "horizon", "stable"),
    [
        (0.5, 1000, True),
        (0.7, 1000, True),
        (0.7, 50, None),
        (0.9, 200, None),
        (0.9, 6000, True),
        (0.95, 1000, None),
        (0.95, 20_000, True),
        (0.99, 6000, None),
        (1.0, 200, False),
        (1.02, 1000, False),
        (1.5, 50, False),
    ],
)
def test_one_machine(load: float, horizon: float, stable: bool | None) -> None:
    for seed in (1, 2, 3):
        result = simulate(one_machine(load), "fcfs", horizon, 10, seed)
        assert result.stable is stable
        assert result.long_run_load == pytest.approx(load)


@pytest.mark.parametrize("horizon", [1007.3, 2500])
def test_samples_of_a_clockwork_see_other_phases_of_it(horizon: float) -> None:
    """How many samples see a task depends on when they are taken: this is no growth."""
    clock = {"kind": "deterministic"}
    system = System(arrivals=[3], rates=[[1 / 0.3]], execution=clock, interarrival=clock)
    found = simulate(system, "fcfs", horizon, 5)
    assert found.stability.growth > 0
    assert found.stable
    samples = np.linspace(0, horizon, 101)
    grows = np.tile(10 + 5 * samples / horizon, (5, 1))
    assert stability(samples, grows, arrivals=3, load=0.9).stable is None


@pytest.mark.parametrize("horizon", [1e-6, 3])
def test_too_few_tasks_tell_nothing_though_the_load_is_not_known(horizon: float) -> None:
    peers = System(
        arrivals=[[1.5, 1.5]],
        rates=[[1, 1]],
        changes={"mean_interval": 5, "rates": [0.5, 2]},
    )
    assert simulate(peers, "mct_dec", horizon, 2).stable is None


def test_an_undecided_run_says_how_long_would_tell() -> None:
    short = simulate(one_machine(0.95), "fcfs", 1000)
    assert short.stability.needed == 3400  # 8 / (0.95 × 0.05²), rounded up
    assert short.verdict == "undecided: a horizon of 3,400 time units would probably tell"
    assert short.as_json()["needed_horizon"] == 3400
    assert short.as_json()["stable"] is None

    assert "undecided" in repr(short)
    enough = simulate(one_machine(0.95), "fcfs", 3400)
    assert enough.stable
    assert enough.as_json()["needed_horizon"] is None


def test_a_machine_that_is_exactly_critical_is_named() -> None:
    """MET gives machine 1 exactly as much as it can do; a longer run would not tell either."""
    found = compare(System(arrivals=[10, 5], rates=[[10, 9], [3, 10]]), ["met", "mct"], 2000, 4)
    assert [each.stable for each in found.results] == [None, True]
    said, best = found.conclusions
    assert said.startswith("met is undecided and not ranked: machine 1 is busy 98.")
    assert said.endswith("may tell, but no length will if its load is exactly 1.")
    assert best == "Best: mct (the only policy known to be stable)"
    assert found.results[1].critical_machine is None


@pytest.mark.parametrize("horizon", [50, 200, 1000])
def test_an_unstable_policy_on_a_short_run_is_not_called_stable(horizon: float) -> None:
    for seed in (1, 2):
        assert simulate("2.H", "mct", horizon, 4, seed).stable is not True


def test_growth_of_a_class_that_seldom_arrives_is_noticed() -> None:
    # MET sends class 2 to machine 2, which it overloads by 5 %: 0.05 of 101 tasks a time unit
    system = System(arrivals=[100, 1], rates=[[200, 0, 0], [0, 0.95, 0.5]])
    result = simulate(system, "met", 10_000, 10)
    assert result.long_run_load == pytest.approx(1 / 1.45)
    assert result.stable is not True


def test_a_policy_that_uses_its_machines_up_is_not_called_stable() -> None:
    # MET sends all tasks to machine 1, which is then exactly critical though the load is 76 %
    system = System(arrivals=[0.5, 0.5], rates=[[1.0, 0.2], [1.0, 0.4]])
    for seed in range(1, 7):
        assert simulate(system, "met", 4000, 4, seed).stable is not True


def test_machines_that_fill_up_are_not_unstable() -> None:
    # tasks take 100 time units: within 40 the machines fill up, and nothing waits
    slow = System(arrivals=[8.0], rates=[[0.01]], counts=[1000])
    result = simulate(slow, "fcfs", 40, 4)
    assert result.mean_waiting.mean == 0
    assert result.stable is not False


def test_failures_make_the_number_stray() -> None:
    # the machines fail for 50 time units at a time: no run of 500 shows more than that
    failing = System(
        arrivals=[0.6], rates=[[1.0]], failures={"mean_uptime": 150, "mean_repair": 50}
    )
    assert long_run_of(failing).load == pytest.approx(0.8)
    assert long_run_of(failing).variance == pytest.approx(1.2 + 2 * 150**2 * 50**2 / 200**3)
    for seed in range(1, 9):
        assert simulate(failing, "fcfs", 500, 4, seed).stable is not False
    assert simulate(failing, "fcfs", 20_000, 4).stable


@pytest.mark.parametrize(
    "system",
    [
        System(arrivals=[0.01, 100], rates=[[0.0102, 0], [0, 200]]),
        System(arrivals=[0.01, 100], rates=[[0.0204], [204]]),
    ],
    ids=["of its own machine", "of a shared machine"],
)
def test_a_class_of_few_long_tasks_takes_long_to_settle(system: System) -> None:
    # class 1 has a mean response of 5,000 time units on the first, and of about 2,500 on the second
    assert long_run_of(system).load == pytest.approx(0.98, abs=0.001)
    for seed in (1, 2, 3):
        result = simulate(system, "fcfs", 5000, 5, seed)
        assert result.stable is not True
        assert result.stability.needed is None or result.stability.needed > 200_000


def test_a_class_that_settles_soon_does_not_wait_for_others() -> None:
    # both at 50 %, on machines of their own: 8 / (0.5 × 0.5²) = 64 time units for the slow one
    apart = System(arrivals=[0.5, 50], rates=[[1, 0], [0, 100]])
    assert simulate(apart, "fcfs", 50, 4).stability.needed == 100
    assert simulate(apart, "fcfs", 100, 4).stable


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_arrivals_that_change_slowly_are_not_growth(seed: int) -> None:
    # an arrival rate keeps its factor for 4,000 time units: the run holds about ten changes
    changes = {"mean_interval": 2000, "arrivals": [0.2, 1, 1.8]}
    peers = System(arrivals=[[3.0, 3.0]], rates=[[5.0, 5.0]], changes=changes)
    assert long_run_of(peers).variance == pytest.approx(12 + 2 * 0.64 * 2 / 3 * 2 * 9 * 4000)
    result = simulate(peers, "mct_dec", 20_000, 2, seed)
    assert result.long_run_load == pytest.approx(0.6)
    assert result.stable is None


def test_availability_and_rates_that_change_slowly_make_the_number_stray() -> None:
    peers: dict[str, Any] = {"arrivals": [[2, 2]], "rates": [[5, 5]]}
    shares = System(**peers, changes={"mean_interval": 100, "availability": [1.0, 0.6]})
    assert long_run_of(shares).variance == pytest.approx(8 + 2 * 0.04 * 100 * 2 * 5**2)
    both = {"mean_interval": 100, "arrivals": [1.0, 1.0], "rates": [0.5, 1.5]}
    assert long_run_of(System(**peers, changes=both)).variance == pytest.approx(
        8 + 2 * 0.25 * 400 * 2 * 5**2
    )


def test_too_many_classes_have_no_long_run_load() -> None:
    many = System(arrivals=[1e-6] * 5001, rates=[[1.0]] * 5001)
    assert long_run_of(many).load is None
    assert long_run_of(many).variance == pytest.approx(2 * 5001e-6)


def test_the_long_run_load_is_that_of_the_true_system() -> None:
    assumed = {"rates": [[12, 4], [4, 12]], "arrivals": [2, 2]}
    assert long_run_of(OVERLOADED.replace(assumed=assumed)).load == long_run_of(OVERLOADED).load
    chain = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 10}
    half = System(arrivals=[0.7], rates=[[1.0]], availability=[chain])
    assert long_run_of(half).load == pytest.approx(0.8)


def test_the_long_run_load_of_peers_that_change() -> None:
    peers: dict[str, Any] = {"arrivals": [[2, 2]], "rates": [[5, 5]]}
    often = {"mean_interval": 10, "availability": [1.0, 0.6], "arrivals": [1.0, 2.0]}
    assert long_run_of(System(**peers)).load == pytest.approx(0.4)
    assert long_run_of(System(**peers, changes=often)).load == pytest.approx(0.4 * 1.5 / 0.8)
    rates = {"mean_interval": 10, "rates": [1.0, 1.2]}
    assert long_run_of(System(**peers, changes=rates)).load is None


@pytest.mark.parametrize(("system", "policy"), [("Smith", "mm"), ("Wisnesky:8", "chain_mct")])
def test_batches_and_chains_have_no_long_run_load(system: str, policy: str) -> None:
    result = simulate(system, policy, 300, 2)
    assert result.long_run_load is None
    assert result.as_json()["long_run_load"] is None


def test_unstable_policies_are_shown_and_not_ranked() -> None:
    found = compare("2.A", ["kpb:k=1", "met", "lpas"], 6000, 4)
    assert [result.stable for result in found.results] == [False, False, True]
    assert {each.winner for each in found.differences} == {None}
    assert len(found.differences) == 6
    assert found.ranked_differences == ()
    assert found.winner == "lpas"
    assert found.as_json()["ranked"] == ["lpas"]
    assert found.conclusions == (
        "kpb:k=1 and met cannot keep up; lpas can.",
        "Best: lpas (the only stable policy)",
    )
    assert np.isnan(found.improvement("met")["lpas"])


def test_the_figures_of_an_unstable_policy_are_written_without_an_interval() -> None:
    result = simulate(OVERLOADED, "mct", 200, 2)
    for name in ("mean_number", "mean_response"):
        assert result.written(name) == f"{result.figure(name).mean:.4g}"
    stable = simulate("2.B", "lpas", 2000, 2)
    assert stable.written("mean_number") == str(stable.mean_number)


def test_without_a_stable_policy_there_is_no_winner() -> None:
    found = compare(OVERLOADED, ["mct", "lpas", "fcfs"], 1000, 4)
    assert found.winner is None
    assert {each.winner for each in found.differences} == {None}
    assert found.conclusions == ("No policy is stable here.",)


def test_undecided_policies_are_not_ranked() -> None:
    found = compare("2.H", ["mct", "lpas"], 1000, 4)
    assert found.winner is None
    assert found.conclusions == (
        "mct and lpas are undecided and not ranked: a horizon of 2,800 time units would "
        "probably tell.",
    )


def test_a_sweep_over_the_load_includes_failures() -> None:
    found = sweep(OVERLOADED, ["mct"], "load", [0.5, 0.98, 1.02], 200, 2)
    loads = [row["long_run_load"] for row in found.rows()]
    assert loads == pytest.approx([0.5, 0.98, 1.02])
    assert found.rows()[2]["stable"] is False
    assert allocate(found.points[0].results[0].system).load == pytest.approx(0.4)


def test_a_contest_ranks_stable_policies_only() -> None:
    systems: list[Any] = ["2.B", "2.A", System(arrivals=[1.02], rates=[[0.5, 0.5]])]
    found = contest(systems, ["lpas", "met", "mct"], 6000, 4)
    assert [bout.verdict for bout in found.bouts] == ["better", "same", "unranked"]
    lpas, met, _ = found.standings
    assert (lpas.unstable, met.unstable) == (1, 2)
    assert lpas.best >= 1 / 3
    assert np.isnan(found.ratios[1, 1])
    assert np.isnan(found.ratios[2]).all()
    assert met.worst_on == "2.B"
    lost = contest(["2.A"], ["met", "lpas"], 6000, 4)
    assert lost.bouts[0].verdict == "worse"
    assert np.isnan(lost.standings[0].mean_ratio)
    assert lost.as_json()["systems"][0]["stable"] == [False, True]


def test_an_adversary_that_makes_a_policy_unstable_says_so() -> None:
    found = adversary("met", ["lpas"], 2, 2, load=(0.8, 0.9), steps=3)
    assert found.comparison.results[0].stable is False
    assert found.verdict.endswith("in runs of this length (met is unstable)")


def test_the_gap_to_the_optimum_is_that_of_stable_policies() -> None:
    system = System(arrivals=[0.5, 0.5], rates=[[1.0, 0.2], [1.0, 0.4]])
    found = optimum(system, ["met", "lpas"], 4000, 4)
    met, lpas = found.policies
    assert met.result.stable is not True
    assert np.isnan(met.gap)
    assert lpas.gap > 0
    assert [row["stable"] for row in found.as_json()["policies"]][1] is True


def half(situation: Any) -> Any:
    """Plan nothing for the second class."""
    plan = (situation.rates > 0).astype(float)
    plan[1] = 0.0
    return plan


@pull(plan=half)
def first_only(machine: int, view: Any) -> int:
    """Take the first class (made up)."""
    return 0 if view.classes[0].waiting > 0 else -1


def test_a_class_that_is_never_offered_is_named() -> None:
    system = System(arrivals=[0.5, 0.5], rates=[[1.0, 1.0], [1.0, 1.0]], classes=["red", "blue"])
    found = simulate(system, first_only, 2_000, 3)
    assert found.never_offered == ("blue",)
    assert found.verdict == (
        "unstable: class blue is never offered, because the plan is 0 everywhere"
    )
    assert simulate(system, "lpas_dg", 500, 3).never_offered == ()
