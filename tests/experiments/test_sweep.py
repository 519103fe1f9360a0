"""Sweeps: one thing varied, everything else the same."""

from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, allocate, simulate, sweep
from gridwright.experiments.variation import varied

TWO = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]], groups=["a", "b"])
FAILING = TWO.replace(failures={"mean_uptime": 20, "mean_repair": 4})


def test_a_load() -> None:
    assert allocate(varied(TWO, "load", 0.9)).load == pytest.approx(0.9)
    np.testing.assert_allclose(varied(TWO, "arrivals", 2).arrivals, [10, 16])


def test_machines() -> None:
    assert varied(TWO, "machines", 3).counts == (3, 3)
    assert varied(TWO, "machines.b", 2).counts == (1, 2)


def test_failures_and_inaccuracy() -> None:
    failures = varied(FAILING, "mean_uptime", 50).failures
    assert failures is not None
    assert failures.mean_uptime == 50
    assert failures.mean_repair == 4
    wrong = varied(varied(TWO, "inaccuracy.rates", 0.2), "inaccuracy.arrivals", 0.1).assumed
    assert wrong is not None
    assert (wrong.inaccuracy.rates, wrong.inaccuracy.arrivals) == (0.2, 0.1)


@pytest.mark.parametrize(
    ("system", "what", "value", "message"),
    [
        (TWO, "machines", 1.5, r"machines come to 1.5, 1.5 of the groups; expected whole numbers"),
        (TWO, "machines.c", 1, r"no group 'c'"),
        (TWO, "mean_uptime", 1, r"do not fail"),
        (FAILING, "mean_uptime", 0, r"mean_uptime is 0"),
        (TWO, "load", -1, r"load is -1; expected a number, 0 or more"),
        (TWO, "inaccuracy.rates", 2, r"\[inaccuracy\] rates is 2"),
        (TWO, "load", float("nan"), r"expected a number"),
        (
            TWO.replace(counts=[2, 1], availability=[1, 0.5, 1]),
            "machines",
            2,
            r"availability of every single machine",
        ),
    ],
)
def test_wrong_variations(system: System, what: str, value: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        varied(system, what, value)


def test_points_are_simulations_like_any_other() -> None:
    found = sweep(TWO, ["mct", "lpas"], "load", [0.4, 0.8], horizon=200, replications=2)
    assert [point.value for point in found.points] == [0.4, 0.8]
    alone = simulate(varied(TWO, "load", 0.8), "lpas", 200, 2)
    assert found.points[1].results[1].mean_number == alone.mean_number
    assert found.as_json()["points"][1]["results"][1]["mean_number"] == alone.mean_number.as_json()


def test_a_parameter_of_some_of_the_policies() -> None:
    found = sweep("2.D", ["mct", "kpb"], "k", [3, 4], horizon=50, replications=2)
    assert [str(result.policy) for result in found.points[0].results] == ["mct", "kpb:k=3"]
    assert found.points[0].results[0] is found.points[1].results[0], "mct has no k"
    assert found.policies == ("mct", "kpb")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vary": "lod"}, "'lod' cannot be varied; did you mean 'load'"),
        ({"vary": "zzz"}, "'zzz' cannot be varied; expected load"),
        ({"values": []}, "there is no value of load"),
        ({"policies": []}, "there is no policy"),
        ({"policies": ["mct", "mct"]}, "'mct' is named twice"),
        ({"values": ["much"]}, "load is much; expected a number"),
        ({"vary": "k", "values": [99]}, "k is 99"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"policies": ["mct", "kpb"], "vary": "load", "values": [0.5]}
    with pytest.raises(InputError, match=message):
        sweep(TWO, **{**arguments, **changes}, horizon=10, replications=1)
