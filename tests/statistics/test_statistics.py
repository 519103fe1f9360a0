import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright.statistics import Estimate, estimate, stability


def test_a_known_interval() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3
    assert found.half_width == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)


def test_one_value_has_no_interval() -> None:
    found = estimate([4.0])
    assert found.as_json() == {"mean": 4.0, "low": None, "high": None}
    assert str(found) == "4"


def test_nothing_known() -> None:
    assert estimate([float("nan")]).as_json() == {"mean": None, "low": None, "high": None}
    assert estimate([float("nan"), 2.0, 4.0]).mean == 3


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_the_mean_is_inside(values: list[float]) -> None:
    found = estimate(values)
    assert found.low <= found.mean <= found.high
    assert found.overlaps(found.mean, found.mean)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Estimate(5.1712, 5.1412, 5.2012), "5.171 ± 0.030"),
        (Estimate(20777.3, 20361.3, 21193.3), "20777 ± 416"),
        (Estimate(0.2, 0.2, 0.2), "0.2 ± 0"),
        (Estimate(0.22771, 0.22760, 0.22782), "0.22771 ± 0.00011"),
    ],
)
def test_as_text(found: Estimate, text: str) -> None:
    assert str(found) == text


def test_intervals_that_touch_overlap() -> None:
    assert Estimate(5, 4, 6).overlaps(6, 7)
    assert not Estimate(5, 4, 6).overlaps(6.1, 7)


TIMES = np.linspace(0, 6000, 129)


def test_growth_is_told_from_filling_up() -> None:
    line = np.array([0.4 * TIMES] * 4)
    assert stability(TIMES, line, 35).stable is False
    assert stability(TIMES, line, 35).growth == pytest.approx(0.4)
    assert stability(TIMES, np.sqrt(2 * 35 * TIMES)[None], 35).stable is None
    assert stability(TIMES, np.full((4, 129), 1000.0), 35).stable is None
    assert stability(TIMES, np.full((4, 129), 100.0), 35).stable


def test_the_load_decides_before_the_run_does() -> None:
    calm = np.full((4, 129), 100.0)
    assert stability(TIMES, calm, 35, load=0.9).stable
    assert stability(TIMES, calm, 35, load=1.0).stable is False
    assert stability(TIMES, calm, 35, load=1 - 1e-10).stable is False
    close = stability(TIMES, calm, 35, load=0.995)
    assert (close.stable, close.needed, close.word) == (None, 12000, "undecided")


def test_more_variance_allows_more_growth() -> None:
    line = np.array([0.4 * TIMES] * 4)
    assert stability(TIMES, line, 35, variance=35 * 100).stable is None
    assert stability(TIMES, line, 35, machines=10_000).stable is None


def test_a_critical_walk_is_seldom_decided() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        steps = rng.normal(0, np.sqrt(2 * 10 * TIMES[1]), (4, 128))
        walk = np.cumsum(steps, axis=1)
        walk = np.concatenate([np.zeros((4, 1)), walk], axis=1)
        walk -= np.minimum.accumulate(walk, axis=1)  # held up at 0
        found.append(stability(TIMES, walk, 10).stable)
    assert found.count(False) <= 15
    assert found.count(True) <= 15
