"""Holding costs: what tasks in the system cost, against theory and value iteration."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError, System, compare, contest, load, optimum, simulate
from gridwright.cli.main import run
from gridwright.experiments import Result
from gridwright.statistics import Estimate
from gridwright.statistics.estimate import student

TWO = System(arrivals=[0.4, 0.5], rates=[[2.0], [1.0]], costs=[1.0, 5.0], name="one machine")
N_MODEL = System(arrivals=[0.9, 0.8], rates=[[1.0, 1.0], [0.0, 1.2]], costs=[1.0, 3.0])


def check(found: Estimate, exact: float, replications: int) -> None:
    """A mean lies within 4.5 standard errors of the exact one, and is not vague."""
    error = found.half_width / student(replications - 1)
    assert found.mean == pytest.approx(exact, abs=4.5 * error)
    assert found.half_width < 0.1 * exact


def test_priorities_of_one_machine() -> None:
    """The cμ rule gives class 2 priority; the means of each class are Cobham's."""
    result = simulate(TWO, "cmu", 20_000, 20, seed=3, warmup=500)
    (first, second), (slow, fast) = TWO.arrival_rates, (0.4 / 2, 0.5 / 1)
    residual = first / 2**2 + second / 1**2  # exponential: half the second moment is 1 / μ²
    waits = residual / ((1 - fast) * (1 - fast - slow)), residual / (1 - fast)
    numbers = [
        rate * (wait + mean)
        for rate, wait, mean in zip(TWO.arrival_rates, waits, (0.5, 1.0), strict=True)
    ]
    for k, number in enumerate(numbers):
        by_class = [run.class_number[k] for run in result.replications]
        assert np.mean(by_class) == pytest.approx(number, rel=0.05)
    check(result.figure("mean_cost"), numbers[0] + 5 * numbers[1], 20)
    assert result.criteria[-1] == result.holding == "mean_cost"


@pytest.mark.slow
def test_priorities_of_one_machine_with_other_times() -> None:
    """Cobham's formula needs the second moments only: 3 / μ² here, and 1 / μ²."""
    times = [{"kind": "hyperexponential", "scv": 2}, "deterministic"]
    system = TWO.replace(execution=times)
    result = simulate(system, "cmu", 20_000, 20, seed=3, warmup=500)
    residual = 0.4 * 3 / 2**2 / 2 + 0.5 / 1**2 / 2
    waits = residual / (0.5 * 0.3), residual / 0.5
    numbers = 0.4 * (waits[0] + 0.5), 0.5 * (waits[1] + 1.0)
    check(result.figure("mean_cost"), numbers[0] + 5 * numbers[1], 20)


@pytest.mark.parametrize(
    ("name", "policy"), [("2.B", "lpas"), ("3.A:alpha1:1", "gcmu"), ("4.A", "mct_dec")]
)
def test_numbers_by_class_add_up(name: str, policy: str) -> None:
    result = simulate(name, policy, 50, 2, warmup=10)
    for each in result.replications:
        assert each.class_number.sum() == pytest.approx(each.mean_number, rel=1e-9)
    assert type(result).__name__ in ("Result", "PeerResult")


def relative_value_iteration(system: System, most: int) -> float:
    """Return the least mean cost of the N-model with interruption, by uniformisation."""
    (a, b), rates, costs = system.arrival_rates, system.nominal, system.holding_costs
    total = a + b + rates.max(axis=0).sum()
    x, y = np.indices((most + 1, most + 1))
    cost = (costs[0] * x + costs[1] * y) / total
    value = np.zeros((most + 1, most + 1))
    while True:
        up = a * value[np.minimum(x + 1, most), y] + b * value[x, np.minimum(y + 1, most)]
        best = np.full(value.shape, np.inf)
        for one, two in product((-1, 0), (-1, 0, 1)):  # machine 1 can only serve class 1
            first = rates[0, 0] * (one == 0) + rates[0, 1] * (two == 0)
            second = rates[1, 1] * (two == 1)
            needs = (one == 0) + (two == 0)
            possible = (x >= needs) & (y >= (two == 1))
            down = first * value[np.maximum(x - 1, 0), y] + second * value[x, np.maximum(y - 1, 0)]
            stay = (total - a - b - first - second) * value
            best = np.where(possible, np.minimum(best, down + stay), best)
        new = cost + (up + best) / total
        change = new - value
        if np.ptp(change) < 1e-9:
            return float(change.mean() * total)
        value = new - new[0, 0]


@pytest.mark.slow
def test_the_optimum_minimises_the_cost() -> None:
    found = optimum(N_MODEL, ["gcmu", "cmu", "pas_dg"], 2000, 4)
    assert found.preemptive is not None
    assert found.pull is not None
    assert found.preemptive.mean_cost == pytest.approx(
        relative_value_iteration(N_MODEL, 60), rel=1e-4
    )
    assert found.bound < found.preemptive.mean_cost < found.pull.mean_cost
    assert found.policy is not None
    best = simulate(N_MODEL, found.policy, 20_000, 10, warmup=500)
    check(best.figure("mean_cost"), found.pull.mean_cost, 10)
    assert all(each.gap > -0.05 for each in found.policies)
    assert set(found.as_json()["pull"]) == {"mean_cost", "error", "tasks"}


def test_policies_see_costs() -> None:
    """What is dear waits less than before."""
    dear = load("2.B").replace(costs=[10.0, 1.0])
    for policy in ("gcmu", "pas_dg", "pas"):
        before, after = (
            simulate(system, policy, 2000, 4).classes[0].mean_response.mean
            for system in (load("2.B"), dear)
        )
        assert after < before


def test_comparisons_are_by_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(TWO, ["cmu", "fcfs"], 30_000, 6)
    assert found.winner == "cmu"
    assert "mean cost per time unit" in found.statements[0]
    assert "mean_cost" in contest([TWO], ["cmu", "fcfs"], 500, 2).as_json()["systems"][0]
    file = tmp_path / "two.toml"
    TWO.to_file(file)
    assert System.from_file(file) == TWO
    assert run(["compare", str(file), "--policies", "cmu,fcfs", "--horizon", "500", "--json"]) == 0
    first: Result = json.loads(capsys.readouterr().out)["results"][0]
    assert first["mean_cost"]["mean"] > 0  # type: ignore[index]


def test_wrong_costs() -> None:
    with pytest.raises(InputError, match="costs has 3 entries; expected 2"):
        load("2.B").replace(costs=[1, 2, 3])
    with pytest.raises(InputError, match="costs"):
        load("2.B").replace(costs=[0, 1])
    with pytest.raises(InputError, match="has costs, for push, pull and decentralised policies"):
        simulate(load("Smith").replace(costs=2.0), "min_min")
