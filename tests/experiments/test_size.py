"""The cheapest fleets: against enumeration and against M/M/c."""

import json
from itertools import islice, product
from math import exp, factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from gridwright import InputError, System, allocate, size
from gridwright.allocation import cheapest_fleets, long_run_of, one_more
from gridwright.cli.main import run


def load_of(system: System, counts: tuple[int, ...]) -> float:
    """Solve the LP apart: the least load of the busiest group, with these numbers of machines."""
    classes, groups = system.rates.shape
    needed = np.zeros((classes, classes * groups + 1))
    time = np.zeros((groups, classes * groups + 1))
    for i, g in product(range(classes), range(groups)):
        needed[i, i * groups + g] = -system.rates[i, g]
        time[g, i * groups + g] = 1.0
    time[:, -1] = -np.array(counts)
    found = linprog(
        np.append(np.zeros(classes * groups), 1.0),
        A_ub=np.vstack([needed, time]),
        b_ub=np.append(-system.arrivals, np.zeros(groups)),
    )
    return float(found.fun) if found.status == 0 else np.inf


@pytest.mark.parametrize("seed", range(6))
def test_fleets_come_by_rising_price_and_none_is_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = 2 + seed % 2
    rates = np.where(rng.random((2, groups)) < 0.25, 0, rng.uniform(0.5, 4, (2, groups))).round(2)
    rates[:, 0] = np.maximum(rates[:, 0], 0.5)
    rates[0] = np.maximum(rates[0], 0.3)
    system = System(arrivals=rng.uniform(1, 4, 2).round(2), rates=rates)
    prices = rng.integers(1, 6, groups).tolist()
    found = list(islice(cheapest_fleets(system, prices, 0.8), 5))
    limit = found[-1].price
    boxes = product(*(range(int(limit // price) + 1) for price in prices))
    costs = [(float(np.dot(prices, counts)), counts) for counts in boxes]
    every = [each for each in costs if each[0] <= limit and load_of(system, each[1]) <= 0.8 + 1e-9]
    assert [each.price for each in found] == sorted(price for price, _ in every)[:5]
    assert {each.counts for each in found} <= {counts for _, counts in every}
    for each in found:
        assert each.load == pytest.approx(load_of(system, each.counts))


def test_a_load_that_is_just_held_needs_no_further_machine() -> None:
    assert next(cheapest_fleets(System(arrivals=[4], rates=[[1]]), None, 0.8)).counts == (5,)
    third = System(arrivals=[0.1 + 0.2], rates=[[0.1]])  # 0.30000000000000004
    assert next(cheapest_fleets(third, None, 0.75)).counts == (4,)


def p95_of_mmc(arrivals: float, machines: int) -> float:
    """Return the 95th percentile of the response of M/M/c with rate 1 and FCFS."""
    below = sum(arrivals**k / factorial(k) for k in range(machines))
    last = arrivals**machines / factorial(machines) * machines / (machines - arrivals)
    waits, free = last / (below + last), machines - 1 - arrivals

    def beyond(t: float) -> float:
        return exp(-t) * (1 + waits * (1 - exp(-free * t)) / free) - 0.05

    return float(brentq(beyond, 0.01, 100))


def test_a_p95_is_held_by_as_many_machines_as_theory_says() -> None:
    system = System(arrivals=[2.5], rates=[[1.0]], groups=["node"])
    three, four = p95_of_mmc(2.5, 3), p95_of_mmc(2.5, 4)
    found = size(system, p95=(three + four) / 2, policy="fcfs", horizon=4000, replications=6)
    assert [each.fleet.counts for each in found.tried] == [(3,), (4,)]
    assert [each.holds for each in found.tried] == [False, True]
    assert found.fleet.counts == (4,)
    assert found.words == "The cheapest fleet is 4 × node, for 4."
    simulated = found.tried[1].p95
    assert simulated is not None
    # the interval of 6 replications: 7.6 half widths of a 95 % interval are beyond 1 in 10,000
    assert abs(simulated.mean - four) < 0.01 * four + 3 * simulated.half_width

    tight = size(system, p95=four, policy="fcfs", horizon=300, replications=3)
    assert tight.tried[-1].holds is None
    assert tight.found is None
    assert tight.words.startswith("Undecided: ")
    with pytest.raises(InputError, match="no fleet was found: Undecided"):
        _ = tight.fleet


def test_one_more_machine_is_a_count_higher() -> None:
    system = System(
        arrivals=[5, 3],
        rates=[[2, 1, 0], [1, 2, 1]],
        counts=[2, 1, 3],
        slots=[1, 2, 1],
        availability=[1, 0.5, 1],
        failures={"mean_uptime": [20, 40, 10], "mean_repair": 2},
    )
    for place, each in enumerate(one_more(allocate(system), [3, 2, 1])):
        counts = [count + (k == place) for k, count in enumerate(system.counts)]
        assert each.load == pytest.approx(long_run_of(system.with_counts(counts)).load)
        assert each.relief == pytest.approx((long_run_of(system).load or 0) - each.load)


def test_a_group_of_none_is_left_out() -> None:
    system = System(
        arrivals=[5, 3],
        rates=[[2, 1, 4], [1, 2, 1]],
        groups=["a", "b", "c"],
        slots=[1, 2, 3],
        availability=[1, 0.5, 0.25],
        failures={"mean_uptime": [20, 40, 10], "mean_repair": 2},
        delays={"before": [0.1, 0.2, 0.3]},
        assumed={"rates": [[2, 1, 3], [1, 3, 1]]},
    )
    fewer = system.with_counts([2, 0, 1])
    assert fewer.machines == ("a.1", "a.2", "c/1", "c/2", "c/3")
    assert fewer.effective.tolist() == [[2, 2, 1, 1, 1], [1, 1, 0.25, 0.25, 0.25]]
    assert fewer.failures is not None
    assert fewer.failures.mean_uptime == (20, 10)
    assert fewer.delays is not None
    assert fewer.delays.before == (0.1, 0.3)
    assert fewer.assumed is not None
    assert fewer.assumed.rates is not None
    assert fewer.assumed.rates.tolist() == [[2, 3], [1, 1]]
    assert system.with_counts([1, 1, 1]) == system


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to hold; give a load, a p95 or both"),
        ({"load": 1.0}, "load is 1; expected a number between 0 and 1"),
        ({"load": "0.8"}, "load is '0.8'; expected a number"),
        ({"load": 0.5, "prices": [1, "2"]}, "the price of 2 is '2'; expected a number > 0"),
        ({"p95": -1.0}, "p95 is -1; expected a positive number"),
        ({"p95": 0.1}, "no fleet holds a p95 of 0.1: 81.9 % of the tasks run longer than that"),
        ({"load": 0.5, "prices": {"1": 1}}, "prices: no price of 2; expected one for each"),
        ({"load": 0.5, "prices": {"3": 1}}, "prices: the system has no group '3'"),
        ({"load": 0.5, "prices": [1]}, "prices has 1 entries; expected 2"),
        ({"load": 0.5, "prices": [1, 0]}, "the price of 2 is 0; expected a number > 0"),
    ],
)
def test_wrong_wishes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        size(System(arrivals=[1], rates=[[2, 1]]), **options)


OFFICE = 'name = "office"\ngroups = ["big", "small"]\narrivals = [6, 2]\nrates = [[4, 1], [1, 2]]\n'


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "office.toml"
    file.write_text(OFFICE)
    prices = ("--prices", "big=3,small=1")
    assert run(["size", str(file), *prices, "--load", "0.8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["found"]["counts"] == {"big": 2, "small": 2}
    assert found["found"]["price"] == 8
    assert run(["size", str(file), *prices, "--load", "0.8"]) == 0
    assert "The cheapest fleet is 2 × big, 2 × small, for 8." in capsys.readouterr().out
    assert run(["allocate", str(file), "--add", *prices, "--json"]) == 0
    big, small = json.loads(capsys.readouterr().out)["add"]
    assert big["load"] < small["load"]
    assert big["price_per_point"] == pytest.approx(3 / (100 * big["relief"]))
    assert run(["allocate", str(file), "--add", *prices]) == 0
    assert "price of 1 point" in capsys.readouterr().out
    assert run(["allocate", str(file), *prices]) == 2
    assert "--prices needs --add" in capsys.readouterr().err
    assert run(["size", str(file), "--prices", "big=x", "--load", "0.8"]) == 2
    assert "--prices is 'big=x'; expected GROUP=NUMBER" in capsys.readouterr().err
