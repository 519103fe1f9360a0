from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import load
from gridwright.model import InputError, System, etc, heterogeneity

SHAPE = (60, 60)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize(
    ("draw", "task_cv", "machine_cv", "name"),
    [
        (etc.cvb, 0.6, 0.1, "HiLo"),
        (etc.cvb, 0.1, 0.1, "LoLo"),
        (etc.cvb, 0.6, 0.6, "HiHi"),
        (etc.cvb_transposed, 0.1, 0.6, "LoHi"),
    ],
)
def test_cvb_gives_the_heterogeneity_asked_for(
    draw: Callable[..., Any], task_cv: float, machine_cv: float, name: str
) -> None:
    matrix = draw(SHAPE, rng(), mean=20, task_cv=task_cv, machine_cv=machine_cv)
    assert matrix.shape == SHAPE
    assert matrix.mean() == pytest.approx(20, rel=0.25)
    assert heterogeneity(etc.system(matrix, arrivals=np.ones(60))).name == name


def test_plain_cvb_cannot_give_low_task_and_high_machine_heterogeneity() -> None:
    matrix = etc.cvb(SHAPE, rng(), mean=20, task_cv=0.1, machine_cv=0.6)
    assert heterogeneity(etc.system(matrix, arrivals=np.ones(60))).name == "HiHi"


def test_cvb_moments() -> None:
    matrix = etc.cvb((20_000, 2), rng(), mean=10, task_cv=0.5, machine_cv=0.2)
    assert matrix.mean() == pytest.approx(10, rel=0.02)
    # independent stages: (1 + cv²) multiplies
    assert (matrix**2).mean() / 100 == pytest.approx(1.25 * 1.04, rel=0.03)


def test_range_based_stays_in_its_ranges() -> None:
    matrix = etc.range_based((200, 100), rng(), task_range=100, machine_range=10)
    assert matrix.min() >= 1
    assert matrix.max() <= 1000
    rows = matrix.max(axis=1) / matrix.min(axis=1)
    assert (rows <= 10).all()


@given(st.integers(0, 99))
def test_forms(seed: int) -> None:
    matrix = etc.cvb((6, 7), np.random.default_rng(seed), mean=1, task_cv=0.6, machine_cv=0.6)
    ordered = etc.consistent(matrix)
    assert heterogeneity(etc.system(ordered, arrivals=np.ones(6))).consistent
    assert np.array_equal(np.sort(ordered, axis=1), np.sort(matrix, axis=1))
    half = etc.semi_consistent(matrix)
    assert (np.diff(half[:, ::2], axis=1) >= 0).all()
    assert np.array_equal(half[:, 1::2], matrix[:, 1::2])


@given(st.integers(0, 99), st.floats(0, 0.95))
def test_gaps_leave_everything_something_to_do(seed: int, share: float) -> None:
    gaps = etc.with_gaps(np.ones((4, 6)), np.random.default_rng(seed), share=share)
    runs = np.isfinite(gaps)
    assert runs.any(axis=0).all()
    assert runs.any(axis=1).all()
    assert (~runs).sum() <= round(share * 24)
    if share <= 0.5:
        assert (~runs).sum() == round(share * 24)
    assert (etc.system(gaps, arrivals=np.ones(4)).rates > 0).sum() == runs.sum()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: etc.cvb((0, 2), rng(), mean=1, task_cv=1, machine_cv=1), "at least one task"),
        (lambda: etc.cvb((1, 2), rng(), mean=-1, task_cv=1, machine_cv=1), "mean is -1"),
        (lambda: etc.cvb((1, 2), rng(), mean=1, task_cv=0, machine_cv=1), "task_cv is 0"),
        (lambda: etc.range_based((1, 2), rng(), task_range=1, machine_range=2), "task_range is 1"),
        (lambda: etc.with_gaps(np.ones((1, 2)), rng(), share=1), "share is 1"),
        (lambda: etc.system(np.array([[0.0]]), [1]), "not > 0"),
    ],
)
def test_wrong_parameters(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("3.B:alpha1:1", "HiHi"),
        ("3.C:alpha1:1", "LoHi"),
        ("3.D:alpha1:1", "HiLo"),
        ("3.E:alpha1:1", "LoLo"),
        ("MGST.HiHi:1", "HiHi"),
        ("MGST.LoHi:5", "LoHi"),
        ("MGST.HiLo:7", "HiLo"),
        ("MGST.LoLo:9", "LoLo"),
    ],
)
def test_published_systems_get_their_published_names(system: str, name: str) -> None:
    assert heterogeneity(load(system)).name == name


def test_alike_is_zero() -> None:
    measured = heterogeneity(System(arrivals=[1, 1], rates=[[2, 2], [2, 2]]))
    assert (measured.task, measured.machine, measured.consistent) == (0, 0, True)


def test_machines_of_a_group_count_each() -> None:
    grouped = System(arrivals=[1, 2], rates=[[8, 3], [4, 10]], counts=[3, 1])
    single = System(arrivals=[1, 2], rates=[[8, 8, 8, 3], [4, 4, 4, 10]])
    assert heterogeneity(grouped) == pytest.approx(heterogeneity(single))


def test_pairs_that_cannot_run_do_not_count() -> None:
    measured = heterogeneity(System(arrivals=[1, 1], rates=[[2, 0], [2, 2]]))
    assert (measured.task, measured.machine) == (0, 0)


def test_consistency() -> None:
    assert heterogeneity(System(arrivals=[1, 1], rates=[[3, 2], [9, 4]])).consistent
    assert not heterogeneity(System(arrivals=[1, 1], rates=[[3, 2], [4, 9]])).consistent
    assert np.isclose(heterogeneity(System(arrivals=[1], rates=[[1, 3]])).machine, 0.5)
