"""Predictions lie within the history, which holds what was measured whoever is killed."""

import math
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.grid.prediction import MINUTES, Extent, History, Prediction, history_path, slot_of
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


NOON = datetime(2024, 3, 6, 12, 0)  # a Wednesday


def ago(weeks: float, minutes: float = 0.0) -> float:
    return (NOON - timedelta(weeks=weeks) + timedelta(minutes=minutes)).timestamp()


def test_an_interval_is_the_mean_of_what_was_measured_in_it(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(ago(1, 1), 60, 0.2)
    history.add(ago(1, 3), 60, 0.6)
    history.add(ago(1, 20), 60, 0.9)
    history.add(ago(2, 10), 300, 0.5)
    history.add(ago(1 / 7, 10), 60, 0.1)  # a Tuesday
    history.add(ago(0, 10), 60, 0.3)  # today
    history.add(ago(-1, 10), 60, 0.3)  # the clock was once wrong
    assert history.past(ago(0, 5), 96) == pytest.approx({1: 0.4, 2: 0.5})
    assert history.past(ago(0, 20), 96) == pytest.approx({1: 0.9})
    assert history.past(ago(0, 50), 24) == pytest.approx({1: 1.7 / 3, 2: 0.5})
    assert history.past(ago(0, 60), 24) == {}
    reopened = History(tmp_path / "h.sqlite")
    weeks, intervals, hours, *dates = reopened.extent(96)
    assert (weeks, intervals, dates) == (4, 3, ["2024-02-21", "2024-03-13"])
    assert hours == pytest.approx(11 / 60)


def test_a_long_measurement_belongs_to_every_minute_of_it(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(ago(1, 0.5), 120, 0.5)
    history.add(ago(1, 1.0), 30, 1.0)
    assert history.past(ago(0, -1.5), 1440) == {1: 0.5}
    assert history.past(ago(0, -0.5), 1440) == {1: 0.5}
    assert history.past(ago(0, 0.5), 1440) == pytest.approx({1: 0.75})
    assert history.extent(1440).hours == pytest.approx(150 / 3600)
    assert history.extent(1440).intervals == 3


@given(st.floats(0, 4e9), st.floats(0.001, 5000), st.floats(0, 1))
def test_no_second_is_lost(end: float, seconds: float, share: float) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        history = History(Path(folder) / "h.sqlite")
        history.add(end, seconds, share)
        assert history.extent(96).hours == pytest.approx(seconds / 3600)
        known = [x for day in history.week(96) for x in day if not math.isnan(x)]
        assert known == pytest.approx([share] * len(known))
        assert len(known) == history.extent(96).intervals >= 1


def test_a_week_begins_on_monday(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(ago(1, 1), 60, 0.25)
    week = history.week(24)
    assert week[2][12] == 0.25
    assert sum(not math.isnan(x) for day in week for x in day) == 1


def test_nothing_known_makes_no_file(tmp_path: Path) -> None:
    history = History(tmp_path / "a" / "h.sqlite")
    assert history.past(time.time(), 96) == {}
    assert history.extent(96) == Extent(0, 0, 0.0, "", "")
    assert not history.path.parent.exists()
    history.path.parent.mkdir()
    history.path.touch()  # killed before it could write
    assert history.past(time.time(), 96) == {}


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    path.write_text("no database at all, but a text that is long enough to be one" * 10)
    for ask in (lambda: History(path).add(0.0, 1.0, 0.5), lambda: History(path).past(0.0, 96)):
        with pytest.raises(InputError, match="cannot be used as a history"):
            ask()
    with pytest.raises(InputError, match="cannot be used as a history"):
        History(path / "below").add(0.0, 1.0, 0.5)


def test_a_file_for_each_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr("socket.gethostname", lambda: "odd/name.example")
    assert history_path() == tmp_path / "availability" / "odd_name.example.sqlite"


WRITER = """
import sys
from pathlib import Path
from gridwright.grid.prediction import History
history = History(Path(sys.argv[1]))
for k in range(int(sys.argv[2])):
    history.add(86400.0 * 365 + 60 * k, 60, 0.5)
    print(k, flush=True)
"""


@pytest.mark.slow
def test_several_agents_and_a_kill_leave_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    command = [sys.executable, "-c", WRITER, str(path)]
    pipe = subprocess.PIPE
    killed = subprocess.Popen([*command, "100000"], stdout=pipe, text=True)
    others = [subprocess.Popen([*command, "40"], stdout=pipe, text=True) for _ in range(2)]
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(30)][-1]
    os.kill(killed.pid, signal.SIGKILL)
    said = ([said, *killed.communicate()[0].splitlines()])[-1]
    assert all(other.communicate()[0] and other.returncode == 0 for other in others)
    written = round(History(path).extent(96).hours * 60)
    assert written in (80 + int(said) + 1, 80 + int(said) + 2), "the last may not have been said"
