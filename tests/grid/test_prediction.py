"""What is expected lies within what was seen, and is what the formulas say."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.grid.prediction import MINUTES, Prediction, slot_of
from gridwright.model.record import Record

shares = st.floats(0, 1)
pasts = st.dictionaries(st.integers(1, 60), shares, max_size=20)
weightings = st.lists(st.floats(0.001, 10), min_size=1, max_size=8)
DIVISORS = [k for k in range(1, MINUTES + 1) if MINUTES % k == 0]


@given(pasts, shares, weightings)
def test_weekly_is_within_the_weeks_that_count(
    past: dict[int, float], measured: float, weights: list[float]
) -> None:
    found = Prediction(weights=weights).predict(past, measured)
    counted = [past[k] for k in past if k <= len(weights)] or [measured]
    assert 0 <= min(counted) <= found <= max(counted) <= 1


@given(pasts, shares, shares, shares)
def test_recursive_is_within_all_weeks_and_the_start(
    past: dict[int, float], measured: float, c: float, start: float
) -> None:
    found = Prediction(mode="recursive", c=c, start=start).predict(past, measured)
    inputs = [start, *past.values()] if past else [measured]
    assert 0 <= min(inputs) <= found <= max(inputs) <= 1


@given(st.integers(1, 4), shares, shares)
def test_weekly_with_one_week_is_that_week(week: int, share: float, measured: float) -> None:
    assert Prediction().predict({week: share}, measured) == share


def test_weekly_by_hand() -> None:
    past = {1: 1.0, 2: 0.5, 3: 0.4, 4: 0.2, 5: 0.0}
    assert Prediction().predict(past, 0.0) == pytest.approx(0.4 + 0.15 + 0.08 + 0.02)
    del past[2]
    assert Prediction().predict(past, 0.0) == pytest.approx((0.4 + 0.08 + 0.02) / 0.7)
    assert Prediction(weights=[0, 1]).predict({1: 0.3, 2: 0.6}, 0.0) == 0.6
    assert Prediction(weights=[0, 1]).predict({1: 0.3}, 0.9) == 0.9, "no week that counts"


@given(st.lists(shares, min_size=1, max_size=20), shares, shares)
def test_recursive_is_its_closed_form(newest_first: list[float], c: float, start: float) -> None:
    past = dict(enumerate(newest_first, start=1))
    found = Prediction(mode="recursive", c=c, start=start).predict(past, 0.0)
    n = len(newest_first)
    closed = sum(c * (1 - c) ** k * share for k, share in enumerate(newest_first))
    assert found == pytest.approx(closed + (1 - c) ** n * start, abs=1e-12)


@given(shares)
def test_without_a_history_what_is_measured(measured: float) -> None:
    for mode in ("weekly", "recursive"):
        assert Prediction(mode=mode).predict({}, measured) == measured


def test_fixed_holds_for_its_period() -> None:
    fixed = Prediction.of({"mode": "fixed", "availability": 0.5, "period": 3600})
    assert fixed.predict({1: 0.1}, 0.9, elapsed=3599.0) == 0.5
    assert fixed.predict({1: 0.1}, 0.9, elapsed=3600.0) == 0.9
    assert Prediction(mode="fixed", availability=0).predict({}, 0.9, 1e9) == 0.0


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.sampled_from(DIVISORS))
def test_slots_tile_the_days(when: datetime, intervals: int) -> None:
    day, interval = slot_of(when.timestamp(), intervals)
    here = datetime.fromtimestamp(when.timestamp())
    assert (day, 0 <= interval < intervals) == (here.toordinal(), True)
    assert interval == (60 * here.hour + here.minute) // (MINUTES // intervals)


class Holder(Record):
    prediction: Prediction = Prediction()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("weekly", Prediction()),
        ({"mode": "recursive", "c": 0.3}, Prediction(mode="recursive", c=0.3)),
        ({"weights": [1, 1], "intervals": 48}, Prediction(weights=[1, 1], intervals=48)),
        ({"mode": "fixed", "availability": 1}, Prediction(mode="fixed", availability=1.0)),
    ],
)
def test_words_of_a_file(words: Any, expected: Prediction) -> None:
    assert Prediction.of(words) == expected
    assert Prediction.of(expected) is expected
    assert Holder(prediction=words).prediction == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("weakly", "no mode 'weakly'; did you mean 'weekly'"),
        ("x", "no mode 'x'; there are weekly, recursive, fixed"),
        (7, "7 is not a prediction"),
        ({"mode": 3}, "no mode 3"),
        ({"mode": "recursive", "weights": [1]}, "weights is not a parameter of mode recursive"),
        ({"mode": "recursive", "c": 1.5}, "c is 1.5; expected a number ≤ 1"),
        ({"mode": "fixed"}, "availability is missing"),
        ({"mode": "fixed", "availability": 0.5, "period": 0}, "period is 0; expected a number > 0"),
        ({"weights": []}, "weights are all 0 or none"),
        ({"weights": [0, 0]}, "weights are all 0 or none"),
        ({"weights": [-1]}, "weights, entry 1 is -1; expected a number ≥ 0"),
        ({"intervals": 100}, "intervals is 100; expected a divisor of 1440"),
        ({"intervals": 0}, "intervals is 0; expected a number ≥ 1"),
        ({"wieghts": [1]}, "unknown key wieghts; did you mean 'weights'"),
        ({"mode": "fixed", "availability": float("nan")}, "availability is nan"),
    ],
)
def test_wrong_words(words: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Prediction.of(words)
    assert "\n" not in str(caught.value)
