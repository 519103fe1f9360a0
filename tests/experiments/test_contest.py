"""Contests, random systems, and the search for a system on which a policy loses."""

from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, adversary, allocate, compare, contest, random_systems
from gridwright.experiments.contest import Bout
from gridwright.statistics import Stability


@pytest.mark.slow
def test_random_systems_are_as_promised_and_the_same_again() -> None:
    drawn = list(random_systems(200))
    loads = [allocate(system).load for system in drawn]
    assert 0.3 <= min(loads) < 0.35
    assert 0.95 < max(loads) <= 0.99 + 1e-9
    assert {system.shape[0] for system in drawn} == set(range(2, 7))
    assert {system.shape[1] for system in drawn} == set(range(2, 21))
    for first, second in zip(drawn, random_systems(3), strict=False):
        assert (first.rates == second.rates).all()
        assert (first.arrivals == second.arrivals).all()
    assert next(random_systems(1, seed=2)).name != drawn[0].name


def test_a_contest_adds_up() -> None:
    found = contest(["2.B", "2.E", "2.G"], ["pas", "mct", "lpas"], tasks=8000, replications=4)
    assert found.policies == ("pas", "mct", "lpas")
    assert found.ratios.shape == (3, 3)
    assert (found.ratios.min(axis=1) == 1).all()
    pas, mct, lpas = found.standings
    assert pas.mean_ratio < mct.mean_ratio
    assert mct.worst_on == "2.B"
    assert mct.worst_ratio == found.ratios[0, 1]
    assert lpas.worst_ratio == found.ratios[:, 2].max()
    assert sum(found.verdicts.values()) == 3
    assert found.bouts[0].load == pytest.approx(0.75)
    plain = found.as_json()
    assert [row["system"] for row in plain["systems"]] == ["2.B", "2.E", "2.G"]
    assert plain["verdicts"]["worse"] == 0


def test_a_verdict_needs_more_than_noise() -> None:
    one = System(arrivals=[0.5], rates=[[1.0, 1.0]])
    found = contest([one], ["mct", "lpas"], tasks=2000, replications=3)
    assert found.bouts[0].verdict == "same"
    assert found.bouts[0].against_best is not None
    assert found.bouts[0].against_best.difference.mean == 0


def test_a_contest_needs_a_system() -> None:
    with pytest.raises(InputError, match="a contest needs at least one system"):
        contest([], ["pas", "mct"])


@pytest.mark.slow
def test_the_adversary_finds_what_is_known() -> None:
    # mct is bad where machines are specialised and busy, lpas where they are alike
    found = adversary("mct", ["lpas"], 2, 2, load=(0.8, 0.9), steps=40)
    assert found.ratio > 1.5
    assert len(found.path) == 40
    assert (np.diff(found.path) >= 0).all()
    first, again = (adversary("mct", ["lpas"], 2, 2, load=(0.8, 0.9), steps=6) for _ in "12")
    assert (again.system.rates == first.system.rates).all()
    assert again.path == first.path
    assert 0.79 < allocate(found.system).load < 0.91
    assert found.as_json()["ratio"] == found.ratio


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"against": []}, "there is no policy to compare with"),
        ({"load": (0.5, 1.2)}, "load is 0.5 to 1.2"),
        ({"machines": 0}, "at least one class"),
        ({"against": ["nobody"]}, "no policy 'nobody'"),
    ],
)
def test_wrong_searches(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        adversary("pas", **{"against": ["mct"], **options})


def test_an_undecided_policy_that_may_be_better_leaves_the_first_unranked() -> None:
    found = compare("2.B", ["met", "mct", "pas"], 2000, 4)
    bout = Bout(found.results[0].system, 0.75, found)
    assert [result.stable for result in found.results] == [True, True, True]
    assert bout.verdict == "worse"
    assert found.winner == "pas"
    _leave_undecided(found, 2)  # the best
    assert bout.verdict == "unranked"
    assert found.winner is None
    assert found.as_json()["winner"] is None
    assert found.conclusions[-1] == "No winner: pas may be better than met."


def test_an_undecided_policy_that_is_worse_leaves_a_winner() -> None:
    found = compare("2.B", ["pas", "met", "mct"], 2000, 4)
    _leave_undecided(found, 2)  # the worst
    assert Bout(found.results[0].system, 0.75, found).verdict == "better"
    assert found.winner == "pas"
    assert found.conclusions[-1] == (
        "Best: pas (lowest mean response time of the stable policies, beyond noise)"
    )


def _leave_undecided(found: Any, place: int) -> None:
    found.results[place].__dict__["stability"] = Stability(None, 0.0, 4000.0)
