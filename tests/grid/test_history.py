"""The history is what was measured, whoever wrote it and whatever was killed."""

import math
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.grid.prediction import Extent, History, history_path

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
