"""What policies by price affinity do where it is known what is good."""

import pytest

from gridwright import System, optimum, simulate

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


def test_pas_keeps_long_tasks_from_the_only_machine_for_short_ones() -> None:
    useless = [0.001] * 10  # with these, most of the machines are not for short tasks
    system = System(arrivals=[0.1, 4.0], rates=[[0.5, 0.2, *useless], [10.0, 0.02, *useless]])
    found = simulate(system, "pas", 8000, 6, warmup=500)
    assert found.mean_number.mean < 2.2  # 4.0 if each class goes where it ends first
