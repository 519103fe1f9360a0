"""QGym's printed costs, judged against single runs of the same length."""

import sys

import pytest

from gridwright import InputError, optimum
from gridwright.allocation import long_run_of
from gridwright.reproduction import Laboratory, reproduce, runs_of
from gridwright.reproduction.laboratory import Scale
from gridwright.reproduction.target import choose, targets
from gridwright.statistics import prediction


def test_qgym_is_reproduced_by_name_only() -> None:
    names = [name for name in targets() if name.startswith("Q:")]
    assert names == ["Q:5x5", "Q:N", "Q:hospital"]
    assert not any(target.name.startswith("Q:") for target in choose([]))
    assert all(run.length == 3096 for run in runs_of(choose(["Q:N"])))


def test_the_overload_of_the_first_hundred_time_units_is_run() -> None:
    run = runs_of(choose(["Q:5x5"]))[0]
    found = long_run_of(run.changed())
    assert found.load == pytest.approx(0.8, rel=1e-5)
    assert found.peak == pytest.approx(1.29, abs=0.005)


def test_a_printed_run_is_judged_by_what_one_run_may_have() -> None:
    """Every run of a batch has the same seed, so a printed mean is that of one run."""
    target = targets()["Q:N"]
    few = target._replace(cells=tuple(c for c in target.cells if c.get("policy") == "MW"))
    laboratory = Laboratory(Scale(10, 1.0))
    ((found,),) = (each.outcomes for each in reproduce(few, laboratory=laboratory))
    (result,) = laboratory.results.values()
    assert result.horizon == 3096
    assert found.ours == prediction(result.values("mean_cost"))
    assert found.published == "40.2"
    assert str(found.judgement.verdict) == "agrees"  # runs lie between 22 and 134


def test_an_optimum_that_is_not_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[optimum.__module__], "MOST_STATES", 100)
    target = targets()["Q:N"]
    few = target._replace(cells=tuple(c for c in target.cells if c["metric"] == "cost_optimum"))
    with pytest.raises(InputError, match="least mean cost of QGym-N could not be computed"):
        reproduce(few)
