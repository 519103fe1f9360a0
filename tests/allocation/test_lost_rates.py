"""The rates at which failing machines complete tasks: formulas, simulations and what users see."""

import json
import re
from math import exp, expm1, inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import Distribution, Exponential, InputError, System, allocate, simulate, size
from gridwright.allocation import cheapest_fleets, long_run_of, one_more
from gridwright.allocation.lost_work import lost_work_of
from gridwright.cli.main import run
from gridwright.experiments.variation import varied
from gridwright.statistics.estimate import student

FAILURES = {"mean_uptime": 1.0, "mean_repair": 0.1}
CHAIN = {"states": [1, 0.25], "transition": [[0.5, 0.5], [0.5, 0.5]], "step": 1}
REGULAR = ("deterministic", {"kind": "erlang", "stages": 3}, {"kind": "uniform"})
VARIABLE = ({"kind": "gamma", "shape": 0.3}, {"kind": "weibull", "shape": 0.5})
HEAVY = {"kind": "lognormal", "scv": 3}
MIXED = {"kind": "hyperexponential", "probabilities": [0.5, 0.5], "means": [0.5, 1.5]}
positive = st.floats(0.01, 100)
one_system = System(arrivals=[0.5], rates=[[1.0]], failures=FAILURES, execution="deterministic")


def rate(execution: Any, rate: float, fails: float, *, same: bool = False) -> float:
    """Return the rate at which a machine that is up completes tasks."""
    failures = {"mean_uptime": 1 / fails, "mean_repair": 1.0, "same_work": same}
    system = System(arrivals=[1], rates=[[rate]], execution=execution, failures=failures)
    return float(lost_work_of(system).rates[0, 0])


@given(positive, positive)
def test_lost_work_costs_nothing_if_times_are_exponential(mu: float, fails: float) -> None:
    assert rate("exponential", mu, fails) == mu
    assert rate({"kind": "gamma", "shape": 1.0000001}, mu, fails) == pytest.approx(mu, rel=1e-6)


@given(positive, positive, st.booleans())
def test_constant_times(mu: float, fails: float, same: bool) -> None:
    ratio = fails / mu
    expected = fails / expm1(ratio) if ratio < 600 else 0.0
    assert rate("deterministic", mu, fails, same=same) == pytest.approx(
        expected, rel=1e-9, abs=1e-200
    )


@settings(max_examples=30)
@given(st.sampled_from(REGULAR), st.floats(0.1, 100), st.floats(0.01, 10))
def test_regular_times_are_slower_the_more_often_machines_fail(
    execution: Any, mu: float, fails: float
) -> None:
    assert rate(execution, mu, 1.1 * fails) < rate(execution, mu, fails) < mu


@settings(max_examples=30)
@given(st.sampled_from(VARIABLE), positive, st.floats(0.01, 10))
def test_a_new_draw_helps_if_times_vary_more(execution: Any, mu: float, fails: float) -> None:
    assert rate(execution, mu, 1.1 * fails) > rate(execution, mu, fails) > mu


@settings(max_examples=30)
@given(st.sampled_from((*REGULAR, MIXED)), st.floats(1, 100), st.floats(0.01, 0.5))
def test_the_same_work_takes_longer_than_a_new_draw(
    execution: Any, mu: float, fails: float
) -> None:
    assert rate(execution, mu, fails, same=True) <= rate(execution, mu, fails) * (1 + 1e-12)
    assert rate(execution, mu, fails, same=True) < mu


@pytest.mark.parametrize(
    ("execution", "same"),
    [*((each, False) for each in (*REGULAR, *VARIABLE, HEAVY)), (MIXED, True)],
)
def test_a_machine_that_is_never_idle_completes_tasks_at_this_rate(
    execution: Any, same: bool
) -> None:
    """By chance one of the seven fails less than once in 10,000 times: t(39) is beyond 5."""
    failures = {"mean_uptime": 4.0, "mean_repair": 1.0, "same_work": same}
    system = System(
        arrivals=[1.5], rates=[[2.0]], availability=[0.4], execution=execution, failures=failures
    )
    exact = 0.4 * 0.8 * float(lost_work_of(system).rates[0, 0])
    found = simulate(system, "fcfs", 4_000, 40, warmup=200).classes[0].throughput
    error = found.half_width / student(39)
    assert found.mean == pytest.approx(exact, abs=5 * error)
    without = 0.4 * 0.8 * 2.0
    assert 5 * error < abs(without - exact) / 2, "too short to tell the two rates apart"


@pytest.mark.parametrize("load", [0.95, 1.05])
@pytest.mark.parametrize("policy", ["fcfs", "cmu:preempt=true"])
def test_just_below_and_just_above_a_load_of_1(policy: str, load: float) -> None:
    """The load without lost work is 0.55 to 0.62."""
    base = one_system.replace(rates=[[1.0, 1.0]])
    system = varied(base, "load", load)
    assert long_run_of(system).load == pytest.approx(load)
    counted = simulate(system, policy, 20_000, 4)
    assert counted.stable is (load < 1)
    assert counted.load_words == f"{100 * load:.1f} %"
    grows = counted.stability.growth
    expected = max(load - 1, 0.0) * float(system.arrival_rates.sum()) / load
    assert grows == pytest.approx(expected, abs=0.02)


def test_a_load_in_two_classes_on_unlike_machines() -> None:
    """Each class is fast on one machine only; both pairs have a closed form."""
    system = System(
        arrivals=[0.4, 1.0],
        rates=[[1.0, 0.0], [0.0, 2.0]],
        availability=[0.5, 1.0],
        execution=["deterministic", "exponential"],
        failures={"mean_uptime": [3.0, 5.0], "mean_repair": 1.0},
    )
    first = 0.75 / 3 / expm1(1 / 1.5)  # up for 3/4 of the time, and fails 1/3 / 0.5 times per work
    assert long_run_of(system).load == pytest.approx(max(0.4 / first, 1.0 / (2.0 * 5 / 6)))
    found = allocate(system)
    assert 1 / found.long_run_capacity == pytest.approx(0.4 / first)
    assert found.load == pytest.approx(0.8)  # policies plan with this
    assert one_more(found)[0].load == pytest.approx(max(0.2 / first, 0.6))


def test_the_cheapest_fleet_counts_lost_work() -> None:
    found = size(one_system.replace(arrivals=[2.0]), load=0.9)
    assert found.found is not None
    assert found.found.fleet.counts == (5,)
    load = 2.0 * 1.1 * expm1(1.0) / 5
    assert found.found.fleet.load == pytest.approx(load)
    assert "lost work" not in found.words
    other = one_system.replace(arrivals=[2.0], failures={**FAILURES, "uptime": "deterministic"})
    assert size(other, load=0.9).words.endswith("Its load is 73.3 % without lost work.")


class Late(Exponential):
    """A subclass whose samples are not those of its base class."""

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return 0.5 + 0.5 * rng.standard_exponential(size)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"failures": {**FAILURES, "uptime": "deterministic"}}, "up-times are not exponential"),
        ({"availability": [CHAIN]}, "rates or the CPU availability change"),
        ({"execution": Late()}, "a distribution of execution times has no log_transform"),
    ],
)
def test_where_lost_work_is_left_out_the_answers_say_so(parts: dict[str, Any], reason: str) -> None:
    system = one_system.replace(**parts)
    shown = f"{100 * (long_run_of(system).load or 0):.1f} % without lost work"
    found = allocate(system).verdict
    assert found.stabilisable is None
    assert f"The load is {shown}, which the LP leaves out, because {reason}." in found.words
    result = simulate(system, "fcfs", 100, 2)
    assert result.load_words == shown
    assert result.as_json()["lost_work_left_out"] == reason
    assert lost_work_of(system.replace(failures=None)).left_out == ""
    above = simulate(system.replace(arrivals=[2.0]), "fcfs", 1, 2)
    assert (above.long_run_load or 0) > 1
    assert above.is_overloaded is False  # the true load may be less


def test_rates_that_change_leave_lost_work_out() -> None:
    """With rates of 0.9 it would be infinite, but they are sometimes twice as high."""
    failing = {**FAILURES, "same_work": True}
    changes = {"mean_interval": 10, "rates": [0.5, 2]}
    parts: dict[str, Any] = {"arrivals": [[0.1, 0.1]], "rates": [[0.9, 0.9]], "changes": changes}
    found = allocate(System(**parts, failures=failing)).verdict
    assert found.stabilisable is None
    assert "because rates or the CPU availability change" in found.words


def test_an_interrupted_task_may_do_better_on_unlike_machines() -> None:
    system = one_system.replace(rates=[[1.0, 2.0]])
    assert simulate(system, "cmu:preempt=true", 100, 2).long_run_load is None
    assert simulate(system, "cmu", 100, 2).long_run_load is not None
    assert (
        "counts lost work for policies that do not interrupt tasks."
        in allocate(system).verdict.words
    )


def test_commands_count_lost_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task of length 1 on a machine that fails with rate 1 takes e − 1 time units."""
    path = tmp_path / "failing.toml"
    path.write_text(one_system.to_toml())
    load = 0.5 * 1.1 * (exp(1) - 1)

    def shown(*words: str) -> str:
        assert run([*words]) == 0
        return capsys.readouterr().out

    assert f"load {100 * load:.1f} %" in shown("allocate", str(path))
    words = json.loads(shown("allocate", str(path), "--json"))
    assert 1 / words["long_run_capacity"] == pytest.approx(load)
    assert words["stabilisable"] is True
    short = ("--policy", "fcfs", "--horizon", "100", "--replications", "2")
    assert "94.5 %" in shown("simulate", str(path), *short)
    varied = ("--vary", "load", "--values", "0.5", "--horizon", "100", "--json")
    found = json.loads(shown("sweep", str(path), "--policies", "fcfs", *varied))
    result = found["points"][0]["results"][0]
    assert result["long_run_load"] == pytest.approx(0.5)
    assert result["classes"][0]["arrivals"] == pytest.approx(0.5 * 0.5 / load)


def test_equal_systems_have_the_same_verdict() -> None:
    parts: dict[str, Any] = {"arrivals": [0.51], "rates": [[1.0]], "failures": FAILURES}
    words = {allocate(System(**parts)).verdict.words for _ in range(2)}
    assert len(words) == 1
    assert "lost work" not in words.pop()


def test_nothing_is_lost_if_no_machine_fails() -> None:
    never = {"mean_uptime": float("inf"), "mean_repair": 1}
    found = allocate(one_system.replace(failures=never))
    assert "lost work" not in found.verdict.words
    assert found.verdict.stabilisable


def test_a_class_without_a_machine_cannot_be_stabilised() -> None:
    failing = {"mean_uptime": 1, "mean_repair": 0.1, "uptime": "deterministic"}
    parts: dict[str, Any] = {"arrivals": [0.1, 0.1], "rates": [[1, 0], [0, 1]]}
    system = System(**parts, execution="deterministic", failures=failing)
    assert allocate(system).verdict.stabilisable is None
    assert allocate(system, down=["2"]).verdict.stabilisable is False


def test_a_fleet_gets_the_machines_on_which_tasks_end() -> None:
    """The others are cheaper, but their tasks never end, or hardly ever."""

    def cheapest(**parts: Any) -> tuple[int, ...]:
        system = System(arrivals=[0.5], groups=["bad", "good"], **parts)
        return next(cheapest_fleets(system, [1, 5], 0.9)).counts

    same = {"mean_uptime": [0.5, 50], "mean_repair": 0.1, "same_work": True}
    assert cheapest(rates=[[1, 1]], failures=same) == (0, 1)
    long = {"mean_uptime": [1, 100], "mean_repair": 0.1}
    assert cheapest(rates=[[0.02, 3]], execution="deterministic", failures=long) == (0, 1)
    alone = System(arrivals=[0.5], rates=[[1]], failures={**same, "mean_uptime": 0.5})
    with pytest.raises(InputError, match="no fleet can keep up: tasks of class '1'"):
        next(cheapest_fleets(alone, [1], 0.9))


class Wrong(Distribution):
    """The transform of a user who did not think of negative numbers."""

    @property
    def variance(self) -> float:
        return 1.0

    def sample(self, rng: Any, size: Any = None) -> Any:
        return rng.exponential(size=size)

    def log_transform(self, s: float) -> Any:
        if s <= -0.45:
            return "large" if s > -0.6 else log(s)
        return -log(s + 1) if s > -0.2 else None


@pytest.mark.parametrize(
    ("up", "words"),
    [(3.0, "is None; expected a number"), (2.0, "could not convert"), (1.25, "math domain")],
)
def test_a_wrong_transform_is_refused(up: float, words: str) -> None:
    failing = {"mean_uptime": up, "mean_repair": 1, "same_work": True}
    found = allocate(System(arrivals=[0.1], rates=[[1]], execution=Wrong(), failures=failing))
    with pytest.raises(InputError, match=words):
        str(found.verdict)


class Steep(Exponential):
    """Its transform overflows where the mean is beyond all numbers."""

    def sample(self, rng: Any, size: Any = None) -> Any:
        return rng.uniform(0.5, 1.5, size)

    def log_transform(self, s: float) -> float:
        return log((exp(-0.5 * s) - exp(-1.5 * s)) / s)


def test_a_transform_that_overflows_is_a_very_large_number() -> None:
    failing = {"mean_uptime": 0.001, "mean_repair": 1, "same_work": True}
    found = allocate(System(arrivals=[0.1], rates=[[1]], execution=Steep(), failures=failing))
    assert "infinitely" not in found.verdict.words
    assert found.verdict.margin == pytest.approx(-1.0)


def test_a_fleet_without_the_machines_that_leave_lost_work_out_is_not_missed() -> None:
    failing: dict[str, Any] = {"mean_uptime": 1, "mean_repair": 1}
    parts: dict[str, Any] = {"arrivals": [20], "execution": {"kind": "hyperexponential", "scv": 10}}
    alone = System(rates=[[1]], failures=failing, **parts)
    failing["uptime"] = ["deterministic", "exponential"]
    both = System(rates=[[1, 1]], groups=["a", "b"], failures=failing, **parts)
    (count,) = next(cheapest_fleets(alone, [1], 0.8)).counts
    assert count < 50, "with the nominal rates it would be 20 / 0.8 / 0.5"
    assert next(cheapest_fleets(both, [10, 1], 0.8)).counts == (0, count)


def test_a_fleet_for_a_load_that_is_only_bounded_is_undecided() -> None:
    failing = {"mean_uptime": [1, inf], "mean_repair": 1, "same_work": True}
    parts: dict[str, Any] = {"rates": [[0.9, 1]], "groups": ["spot", "solid"], "failures": failing}
    few = size(System(arrivals=[0.4], **parts), {"spot": 1, "solid": 300}, load=0.8)
    assert few.words == "The cheapest fleet is 1 × solid, for 300."
    many = size(System(arrivals=[50], **parts), {"spot": 1, "solid": 4}, load=0.8)
    assert many.found is None
    assert re.match(r"Undecided: \d+ × spot, 1 × solid, .* has a load of more than ", many.words)


def test_machines_that_are_down_for_good_decide_nothing() -> None:
    def verdict(*uptimes: float) -> Any:
        failing = {"mean_uptime": list(uptimes), "mean_repair": 1, "same_work": True}
        system = System(arrivals=[0.3], rates=[[1] * len(uptimes)], failures=failing)
        return allocate(system, down=range(2, len(uptimes) + 1)).verdict

    for ups in ((5.0, inf), (5.0, 0.5), (5.0, 50.0)):
        assert verdict(*ups)[:2] == verdict(ups[0])[:2]
        assert verdict(*ups).stabilisable
    assert verdict(0.5, inf)[:2] == (False, -1.0)


def test_a_class_without_a_machine_does_not_hide_that_lost_work_is_left_out() -> None:
    failing = {"mean_uptime": [1.05, 3, 10], "mean_repair": 1, "same_work": True}
    system = System(arrivals=[0.3, 0.2], rates=[[1, 1, 1], [0, 0, 1]], failures=failing)
    found = allocate(system, down=["3"]).verdict
    assert found.stabilisable is False
    assert "tasks that are lost keep their work, which the LP leaves out" in found.words
    assert "A good policy can keep up" not in found.words


def test_the_load_is_told_whatever_the_order_of_the_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lost work counts only for policies that do not interrupt tasks."""
    file = tmp_path / "two.toml"
    file.write_text(
        'arrivals = [0.3]\nrates = [[1, 1]]\nexecution = "deterministic"\n'
        "[failures]\nmean_uptime = [1, 2]\nmean_repair = 1\n"
    )
    said = []
    for policies in ("fcfs,cmu:preempt=true", "cmu:preempt=true,fcfs"):
        assert run(["compare", str(file), "--policies", policies, "--horizon", "200"]) == 0
        said.append(re.findall(r"long-run load .* %", capsys.readouterr().out))
    assert said[0] == said[1] != []
