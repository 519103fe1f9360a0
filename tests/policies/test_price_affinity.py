"""What policies by price affinity do where it is known what is good."""

from importlib import import_module
from pathlib import Path

import pytest

from gridwright import System, optimum, simulate
from gridwright.experiments import random_systems

TOOLS = Path(__file__).parents[2] / "tools"

THRESHOLD = System(arrivals=[1.043, 0.579], rates=[[1.481, 0.2147], [2.024, 0.4541]])
"""The first machine is fastest at both classes; it should leave the second to the other machine
until many of them wait. A fixed priority there is worse."""


def test_a_slow_machine_is_left_idle_while_the_fast_one_is_soon_free() -> None:
    slow = System(arrivals=[0.3], rates=[[1.0, 0.01]])
    found = simulate(slow, "pas_late", 20_000, 4, warmup=500)
    assert found.mean_number.mean == pytest.approx(0.3 / 0.7, rel=0.05)


def test_it_is_near_the_optimum_where_classes_share_a_machine() -> None:
    found = optimum(THRESHOLD, ["pas_late", "cmu"], 20_000, 6, accuracy=1e-3)
    late, fixed = found.policies
    assert late.gap < 0.08 < fixed.gap


def test_classes_that_outnumber_the_machines() -> None:
    many = System(arrivals=[0.1] * 7, rates=[[1.0, 0.5]] * 7)
    assert simulate(many, "pas_late", 2000, 4).stable


def test_on_one_machine_it_is_the_rule_that_is_best_there() -> None:
    one = System(arrivals=[0.2, 0.5, 1.0], rates=[[1.0], [3.0], [2.5]], costs=[3.5, 1.0, 1.1])
    late, best = (simulate(one, policy, 2000, 2) for policy in ("pas_late", "cmu"))
    assert late.values(late.holding) == pytest.approx(best.values(best.holding))


def test_a_shared_machine_leaves_tasks_to_those_that_would_have_nothing_to_do() -> None:
    """One machine is the fastest at both classes, and another is as fast at one of them.

    If the first begins the shortest task of its share, the other class has 5.0 tasks, not 2.7.
    """
    *_, system = random_systems(46, 22)
    late, other = (simulate(system, policy, 100, 4, warmup=10) for policy in ("pas_late", "pas_dg"))
    assert late.mean_number.mean < other.mean_number.mean


def test_pas_keeps_long_tasks_from_the_only_machine_for_short_ones() -> None:
    useless = [0.001] * 10  # with these, most of the machines are not for short tasks
    system = System(arrivals=[0.1, 4.0], rates=[[0.5, 0.2, *useless], [10.0, 0.02, *useless]])
    found = simulate(system, "pas", 8000, 6, warmup=500)
    assert found.mean_number.mean < 2.2  # 4.0 if each class goes where it ends first


def test_the_floor_of_push_policies_is_exact_where_order_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    floor = import_module("push_floor").floor
    low, _ = floor([1.0], [[0.5]], [[60]])
    assert low == pytest.approx(1.0, rel=0.003), "M/M/1 with a load of a half"
    low, _ = floor([1.4], [[1.0, 1.0]], [[40, 40]])
    found = simulate(System(arrivals=[1.4], rates=[[1.0, 1.0]]), "jsq", 20_000, 8, warmup=500)
    assert low == pytest.approx(found.mean_number.mean, rel=0.04), "the shorter queue is best"
    mixed = System(arrivals=[0.8, 2.0], rates=[[1.0, 0.6], [8.0, 1.0]])
    low, _ = floor([0.8, 2.0], [[1.0, 1 / 0.6], [0.125, 1.0]], [[15, 8], [15, 4]])
    best = optimum(mixed, ["pas"], 20_000, 12, accuracy=1e-3)
    assert best.least < low < best.least * (1.0 + best.policies[0].gap)
