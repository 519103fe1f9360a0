"""Futures of a grid: who waits for them, and what their callbacks may do."""

import time
from concurrent.futures import wait
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gridwright import InputError
from gridwright.grid import Grid

from .conftest import WAIT


def test_who_waits_is_told_of_a_job_that_is_taken_back(tmp_path: Path) -> None:
    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(time.sleep, 1000)
        assert future.cancel()
        assert future in wait([future], timeout=WAIT).done
        assert future.cancelled()


def test_a_callback_may_ask_things_of_the_grid(tmp_path: Path) -> None:
    """The first of several to come takes the others back."""
    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as grid:
        slow = grid.submit(time.sleep, 1000)
        quick = grid.submit(abs, -1)
        quick.add_done_callback(lambda done: slow.cancel())
        assert slow in wait([slow], timeout=WAIT).done
        assert quick.result(WAIT) == 1
    grid = Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite")
    last = grid.submit(abs, -2)
    closed = Event()

    def close(done: Any) -> None:
        grid.close()
        closed.set()

    last.add_done_callback(close)
    assert last.result(WAIT) == 2
    assert closed.wait(WAIT)
    with pytest.raises(InputError, match="the grid is closed"):
        grid.status()
