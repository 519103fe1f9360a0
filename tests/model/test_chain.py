"""Chains in a system: what follows from templates, files, and mistakes in one line each."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, allocate
from gridwright.model import Customer, by_application, mode

SCAN: dict[str, Any] = {"name": "scan", "rate": 0.1, "times": [[4, 7], [10, 5]], "latency": 30}
DRAWN: dict[str, Any] = {"count": 3, "mean": 20, "applications": 4, "rate": 0.01}


def test_classes_arrivals_and_rates_follow_from_templates() -> None:
    system = System(templates=[SCAN, {**SCAN, "name": "sort", "rate": 0.2}], counts=[1, 2])
    assert system.mode is mode.CHAINS
    assert system.classes == ("scan", "sort")
    assert system.arrivals.tolist() == [0.1, 0.2]
    assert system.rates.tolist() == [[1 / 14, 1 / 12]] * 2
    assert system.shape == (2, 3)


def test_random_templates_are_one_column_of_nodes() -> None:
    system = System(random_templates=DRAWN, counts=[5])
    assert system.shape == (3, 5)
    assert system.machines == ("1", "2", "3", "4", "5")
    assert system.arrivals.tolist() == [0.01] * 3


@pytest.mark.parametrize(
    "parts",
    [
        {"templates": [SCAN]},
        {"templates": [SCAN, {**SCAN, "name": "b"}], "groups": ["x", "y"], "counts": [2, 3]},
        {
            "templates": [{**SCAN, "customer": "bank"}],
            "customers": [{"name": "bank", "max_share": [0.1, 0.2], "window": 50}],
            "perturbation": {"reading": "mixture", "variation": 0.4, "arrivals": 0.1},
        },
        {"random_templates": DRAWN, "counts": [4], "one_at_a_time": True, "name": "drawn"},
    ],
)
def test_a_file_gives_the_same_system(parts: dict[str, Any], tmp_path: Path) -> None:
    system = System(**parts)
    system.to_file(tmp_path / "system.toml")
    assert System.from_file(tmp_path / "system.toml") == system
    assert System(**system.parts()) == system
    assert system.replace(name="other").replace(name=system.name) == system
    assert pickle.loads(pickle.dumps(system)) == system
    assert system.replace(one_at_a_time=not system.one_at_a_time) != system


def test_a_file_has_a_section_for_each() -> None:
    text = System(
        templates=[{**SCAN, "customer": "bank"}], customers=[{"name": "bank", "max_failures": 2}]
    ).to_toml()
    assert text.count("[[template]]") == text.count("[[customer]]") == 1
    assert "rates" not in text


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"templates": [{**SCAN, "times": []}]}, "times is empty; expected a row for each"),
        ({"templates": [{**SCAN, "times": [[]]}]}, "times is empty"),
        ({"templates": [{**SCAN, "times": [[1, 2], [3]]}]}, "row 2 has 1 values where row 1 has 2"),
        ({"templates": [{**SCAN, "times": [[0, 1]]}]}, "row 1, column 1 is 0; expected a number >"),
        ({"templates": [{**SCAN, "latency": -3}]}, "latency is -3; expected a number > 0"),
        ({"templates": [{**SCAN, "rate": 0}]}, "rate is 0; expected a number > 0"),
        ({"templates": [{**SCAN, "customer": "x"}]}, "unknown customer 'x'; there is none"),
        (
            {"templates": [{**SCAN, "customer": "x"}], "customers": [{"name": "y"}]},
            "unknown customer 'x'; there are y",
        ),
        (
            {"templates": [SCAN], "customers": [{"name": "x"}, {"name": "y"}]},
            "template 'scan' names no customer; expected one of x, y",
        ),
        ({"templates": [{**SCAN, "latencyy": 3}]}, "latencyy; did you mean 'latency'?"),
        ({"templates": [SCAN, SCAN]}, "classes has 'scan' twice"),
        (
            {"templates": [SCAN, {**SCAN, "name": "b", "times": [[1]]}]},
            "template 'b' has times in 1 columns; expected 2, as template 'scan'",
        ),
        ({"templates": [SCAN], "rates": [[1, 2]]}, "rates follows from the templates"),
        ({"templates": [SCAN], "arrivals": [7]}, "arrivals follows from the templates"),
        ({"templates": [SCAN], "random_templates": DRAWN}, "expected one or the other"),
        ({"templates": "x"}, "templates is 'x'; expected a list"),
        ({"templates": [3]}, "templates, entry 1 is 3; expected a table"),
        (
            {"templates": [{}]},
            "entry 1, rate is missing; templates, entry 1, times is missing (and 1 more)",
        ),
        ({"templates": [SCAN], "execution": "deterministic"}, "execution is not for chains"),
        (
            {"templates": [SCAN], "perturbation": {"reading": "x"}},
            "[perturbation] reading is 'x'; expected 'printed', 'halved' or 'mixture'",
        ),
        ({"templates": [SCAN], "perturbation": {"variation": 2}}, "expected a number ≤ 1"),
        (
            {"templates": [SCAN], "customers": [{"name": "x", "max_failures": 0}]},
            "max_failures is 0; expected a number ≥ 1",
        ),
        (
            {"templates": [SCAN], "customers": [{"name": "x", "max_failures": []}]},
            "a list of limits is empty",
        ),
        (
            {
                "templates": [SCAN],
                "customers": [{"name": "x", "max_failures": 1, "max_share": 0.1}],
            },
            "are both given; expected one of them",
        ),
        ({"templates": [SCAN], "customers": [{"name": "x"}] * 2}, "customers has 'x' twice"),
        ({"templates": [SCAN], "counts": [1]}, "counts has 1 entries; expected 2"),
        (
            {"arrivals": [1], "rates": [[2]], "customers": [{"name": "x"}]},
            "customers is for chains; expected templates with it",
        ),
        ({"random_templates": {**DRAWN, "method": "x"}}, "expected 'printed', 'calibrated' or"),
        ({"random_templates": {**DRAWN, "means": 3}}, "unknown key [random_templates] means"),
        (
            {"random_templates": {**DRAWN, "applications_spread": 4}},
            "applications_spread is 4; expected less than applications, 4",
        ),
        (
            {
                "templates": [SCAN],
                "availability": [
                    1,
                    {"states": [1, 0.5], "transition": [[0, 1], [1, 0]], "step": 1},
                ],
            },
            "availability of chains is constant",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        System(**parts)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_limits_are_gone_through_over_and_over() -> None:
    customer = Customer(name="bank", max_failures=[1, 5], window=10)
    assert customer.limits(5).tolist() == [1, 5, 1, 5, 1]
    assert np.isnan(Customer(name="bank").limits(2)).all()


def test_the_capacity_is_that_of_the_applications() -> None:
    system = System(templates=[SCAN])
    plain = System(arrivals=[0.1, 0.1], rates=[[1 / 4, 1 / 7], [1 / 10, 1 / 5]])
    assert allocate(system).capacity == pytest.approx(allocate(plain).capacity)
    assert allocate(system).system.classes == ("scan.1", "scan.2")
    assert by_application(plain) is plain
    with pytest.raises(InputError, match="draws its templates anew"):
        allocate(System(random_templates=DRAWN))
