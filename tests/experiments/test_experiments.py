import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, compare, load, simulate
from gridwright.statistics import Estimate


def test_the_first_example_of_the_design() -> None:
    import gridwright as gw

    system = gw.System(arrivals=[5, 8], rates=[[8, 3], [4, 10]])
    found = gw.simulate(system, "lpas", horizon=20_000, replications=30, seed=1).mean_number
    assert found.overlaps(5.16, 5.18)
    assert found.half_width < 0.03


def test_the_horizon_is_the_published_one_unless_given() -> None:
    assert simulate("2.B", "met", replications=1).horizon == 20_000
    assert simulate(load("2.B"), "met", 50, 1).horizon == 50


def test_results_hang_together() -> None:
    result = simulate("2.D", "lpas", 300, 5, warmup=50)
    weights = np.array([run.responded for run in result.replications])
    means = np.array([run.response for run in result.replications])
    overall = (weights * means).sum(axis=1) / weights.sum(axis=1)
    assert result.values("mean_response") == pytest.approx(overall)
    assert sum(each.throughput.mean for each in result.classes) == pytest.approx(49, rel=0.05)
    assert len(result.utilisation) == 7
    assert all(0 <= busy.mean <= 1 for busy in result.utilisation)
    assert result.information.mean == pytest.approx(
        np.average([2, 4, 2, 2], weights=[12.5, 12, 12.5, 12])
    )
    assert result.messages.mean == pytest.approx(
        2 * result.information.mean * result.tasks / 5, rel=1e-9
    )


@pytest.mark.parametrize(
    ("policy", "asked"),
    [("met", 0), ("lp_static", 0), ("mct", 7), ("kpb:k=3", 3), ("lpas_2k", 2), ("fcfs", 0)],
)
def test_state_information(policy: str, asked: float) -> None:
    assert simulate("2.D", policy, 20, 2).information.mean == asked


def test_guided_policies_count_whom_they_ask() -> None:
    guided = simulate("2.D", "guided_lpas", 200, 2).information.mean
    assert 1 < guided <= simulate("2.D", "lpas", 200, 2).information.mean
    assert 1 <= simulate("2.D", "guided_lpas_2k", 200, 2).information.mean <= 2


def test_precision_goes_on_until_it_is_reached() -> None:
    result = simulate("2.B", "lpas", 2000, precision=0.02)
    assert len(result.replications) % 10 == 0
    for found in (result.mean_number, result.mean_response):
        assert found.half_width <= 0.02 * found.mean
    fewer = simulate("2.B", "lpas", 2000, len(result.replications) - 10)
    assert fewer.mean_number.half_width > 0.0


def test_one_replication_has_no_interval() -> None:
    result = simulate("2.B", "lpas", 100, 1)
    assert result.as_json()["mean_number"]["low"] is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon is 0; expected a number > 0"),
        ({"horizon": -5}, "horizon is -5"),
        ({"horizon": float("inf")}, "horizon is inf"),
        ({"warmup": 10}, "warmup is 10; expected at least 0 and less than the horizon"),
        ({"warmup": -1}, "warmup is -1"),
        ({"replications": 0}, "replications is 0; expected at least 1"),
        ({"precision": 0}, "precision is 0; expected a number between 0 and 1"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        ({"replications": 2.0}, "replications is 2.0; expected a whole number"),
        ({"seed": None}, "seed is None; expected a whole number"),
        ({"warmup": "1"}, "warmup is '1'; expected a number"),
        ({"horizon": True}, "horizon is True; expected a number"),
        ({"horizon": "10"}, "horizon is '10'; expected a number"),
        ({"threads": 1.5}, "threads is 1.5; expected a whole number"),
        ({"precision": "0.1"}, "precision is '0.1'; expected a number"),
        ({"policy": 3}, "3 is no policy"),
        ({"system": 3}, "3 is no system; expected its name or the path of its file"),
        ({"system": "3.LP-machine-2-failed"}, "has machines down"),
        ({"system": "Smith"}, "Smith has [batch], [deadlines], [pmf], for batch policies only"),
        ({"system": "4.A"}, "4.A has arrivals at machines (a matrix)"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"system": "2.B", "policy": "mct", "horizon": 10}
    with pytest.raises(InputError) as error:
        simulate(**{**right, **changes})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("system", "policy"), [("2.B", "mct"), ("2.B", "fcfs"), ("4.A", "mct_dec")]
)
@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"deadlines": {"factor": 2}}, "[deadlines]"),
        ({"pmf": {"samples": 100}}, "[pmf]"),
        ({"batch": {"queue_limit": 3}}, "[batch]"),
        ({"assumed": {"scale": 2, "shift": 1}}, "[assumed] scale, [assumed] shift"),
        ({"assumed": {"execution": "deterministic"}}, "[assumed] execution"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    system: str, policy: str, changes: dict[str, Any], parts: str
) -> None:
    with pytest.raises(InputError) as error:
        simulate(load(system).replace(**changes), policy, 10)
    assert f"{system} has {parts}, for batch policies only; {policy} is a" in str(error.value)


def test_files_are_named_by_words_or_paths(tmp_path: Path) -> None:
    system, policy = tmp_path / "two.toml", tmp_path / "mine.py"
    system.write_text("arrivals = [5, 8]\nrates = [[8, 3], [4, 10]]\n")
    policy.write_text(
        "from gridwright import push\n\n\n@push\n"
        'def mine(task_class, view):\n    """Take the first."""\n    return 0\n'
    )
    assert load(system) == load(str(system))
    found = compare(system, ["met", policy], 20, 2)
    assert [str(each.policy) for each in found.results] == ["met", "mine"]


def test_comparison_is_paired() -> None:
    found = compare("2.F1", ["mct", "lpas", "met"], 300, 8)
    (number,) = [
        d
        for d in found.differences
        if (d.first, d.second) == ("mct", "lpas") and "number" in d.metric
    ]
    unpaired = sum(r.mean_number.half_width for r in found.results[:2])
    assert number.difference.half_width < 0.8 * unpaired
    assert number.winner == "mct"
    assert found.winner == "mct"
    assert found.improvement("lpas")["lpas"] == 0
    assert found.improvement("lpas")["mct"] > 0


def test_a_tie_has_no_winner() -> None:
    found = compare("2.B", ["lpas", "lpas:planner=vertex"], 100, 4)
    assert found.winner is None
    assert all(d.difference == Estimate(0, 0, 0) for d in found.differences)


def test_push_and_pull_can_be_compared() -> None:
    found = compare("3.E:alpha1:1", ["mct", "gcmu"], 50, 3)
    assert [run.tasks for run in found.results[0].replications] == [
        run.tasks for run in found.results[1].replications
    ]


@pytest.mark.parametrize(
    ("policies", "message"),
    [(["mct"], "at least two policies"), (["mct", "met", "mct"], "'mct' is named twice")],
)
def test_wrong_comparisons(policies: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare("2.B", policies, 10, 2)


def test_an_unstable_run_ends_and_says_so() -> None:
    result = simulate("2.Sharifnia", "met", 6000, 4)
    assert result.stable is False
    assert result.stability.growth == pytest.approx(4, rel=0.1)
    assert "unstable" in repr(result)
    assert result.mean_number.mean > 1000


@pytest.mark.parametrize(
    ("system", "policy", "stable"),
    [
        ("2.H", "lpas", True),
        ("2.A", "lpas", True),
        ("2.A", "mct", True),
        ("3.A:alpha1:1", "fcfs", True),
        ("2.A", "kpb:k=1", False),
        ("2.H", "mct", False),
        ("2.Sharifnia", "mct", False),
        ("2.Sharifnia", "met", False),
    ],
)
def test_stability_verdicts(system: str, policy: str, stable: bool) -> None:
    for seed in (1, 2):
        assert simulate(system, policy, 6000, 4, seed).stable is stable


def test_progress_is_reported_and_a_stop_is_quick() -> None:
    shares: list[float] = []
    others = set(threading.enumerate())  # which libraries of earlier tests may have left

    def left() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each not in others}

    def stop_half_way(share: float, runs: list[Any]) -> None:
        shares.append(share)
        if share > 0.01:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate("3.A:alpha2:1", "gcmu", 200_000, 4, progress=stop_half_way)
    began = time.monotonic()
    while left() and time.monotonic() - began < 5:
        threading.Event().wait(0.01)
    assert shares == sorted(shares)
    assert not left()


@pytest.mark.parametrize("policy", ["mct", "pas_dg"])
def test_slots_are_equal_machines(policy: str) -> None:
    parts: dict[str, Any] = {
        "arrivals": [5, 4],
        "rates": [[2, 3], [1, 4]],
        "groups": ["big", "small"],
        "failures": {"mean_uptime": 50, "mean_repair": 5},
    }
    slots = simulate(System(**parts, slots=[4, 1]), policy, 200, 2).as_json()
    equal = simulate(System(**parts, counts=[4, 1]), policy, 200, 2).as_json()
    names = [[each.pop("name") for each in found["machines"]] for found in (slots, equal)]
    assert names == [[f"big{sign}{k}" for k in (1, 2, 3, 4)] + ["small"] for sign in "/."]
    assert {**slots, "seconds": 0.0} == {**equal, "seconds": 0.0}
