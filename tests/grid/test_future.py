"""Futures of a grid: who waits for them, and what their callbacks may do."""

import pickle
import sys
import time
from concurrent.futures import CancelledError, wait
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from gridwright import GridClosedError
from gridwright.grid import Grid, JobFailedError
from gridwright.grid.future import RemoteError

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
    with pytest.raises(GridClosedError, match="the grid is closed"):
        grid.status()


def test_callbacks_that_wait_for_other_futures_hold_nobody_up(tmp_path: Path) -> None:
    begin, mark, count = tmp_path / "begin", tmp_path / "go on", 50

    def after(file: Path, result: object) -> object:
        while not file.exists():
            time.sleep(0.01)
        return result

    seen: list[object] = []
    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as grid:
        first = [grid.submit(after, begin, k) for k in range(count)]
        second = [grid.submit(after, mark, "late") for _ in range(count)]
        for one, other in zip(first, second, strict=True):
            one.add_done_callback(lambda done, other=other: seen.append(other.result(WAIT)))  # type: ignore[misc]
        begin.touch()
        assert [each.result(WAIT) for each in first] == list(range(count))
        assert not seen
        mark.touch()
    assert seen == ["late"] * count, "all callbacks have returned when the grid is left"


def test_callbacks_of_a_future_are_called_in_their_order(tmp_path: Path) -> None:
    seen: list[str] = []

    def slow(done: Any) -> None:
        time.sleep(0.05)
        seen.append("slow")

    def wrong(done: Any) -> None:
        seen.append("wrong")
        raise SystemExit(3)

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(time.sleep, 0.2)
        for each in (slow, wrong, lambda done: seen.append("last")):
            future.add_done_callback(each)
        future.result(WAIT)
        later = grid.submit(abs, -1)
        assert later.result(WAIT) == 1
        later.add_done_callback(lambda done: seen.append("at once"))
        assert "at once" in seen
    assert [each for each in seen if each != "at once"] == ["slow", "wrong", "last"]


def test_a_result_whose_unpickling_raises_anything_settles_its_future(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("I cannot say")

    def mutter() -> None:
        raise MuteError

    class Result:
        def __init__(self, *made: Any) -> None:
            self.made = made

        def __reduce__(self) -> Any:
            return self.made[0], self.made[1:]

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        wrong = [(sys.exit, 3), (interrupt,), (mutter,)]
        futures = [grid.submit(lambda made: Result(*made), made) for made in wrong]
        for future, name in zip(
            futures, ("SystemExit: 3", "KeyboardInterrupt", "MuteError"), strict=True
        ):
            with pytest.raises(JobFailedError, match=f"cannot be unpickled: {name}"):
                future.result(WAIT)
        assert grid.submit(abs, -1).result(WAIT) == 1


def test_a_job_raises_its_own_exception(tmp_path: Path) -> None:
    class Coded(Exception):  # noqa: N818
        """An exception with a state of its own."""

        def __init__(self, code: int) -> None:
            super().__init__(f"code {code}")
            self.code = code

        def __reduce__(self) -> Any:
            return Coded, (self.code,)

    class Picky(Exception):  # noqa: N818
        """An exception that can be pickled, but not unpickled."""

        def __init__(self, first: int, second: int) -> None:
            super().__init__(f"{first} and {second}")

    class Locked(Exception):  # noqa: N818
        """An exception that cannot be pickled."""

        def __init__(self) -> None:
            super().__init__("locked")
            self.lock = Lock()

    def raises(kind: type[BaseException], *args: object) -> None:
        error = kind(*args)
        error.add_note("a note")
        raise error

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(Coded) as coded:
            grid.submit(raises, Coded, 7).result(WAIT)
        assert coded.value.code == 7
        assert "in raises" in str(coded.value.__cause__)
        with pytest.raises(KeyError, match="missing") as known:
            grid.submit(raises, KeyError, "missing").result(WAIT)
        assert known.value.__notes__ == ["a note"]
        for kind, args in ((Picky, (1, 2)), (Locked, ()), (KeyboardInterrupt, ())):
            with pytest.raises(JobFailedError, match=kind.__name__):
                grid.submit(raises, kind, *args).result(WAIT)
        with pytest.raises(JobFailedError, match="the result cannot be pickled"):
            grid.submit(eval, "(each for each in [])").result(WAIT)


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration, CancelledError, SystemExit])
def test_exceptions_that_would_mislead_who_waits_are_wrapped(kind: type[BaseException]) -> None:
    """asyncio hangs on a StopIteration of a future, and takes a CancelledError for its own."""
    error = RemoteError("the traceback", pickle.dumps(kind("why"))).original()
    assert type(error) is JobFailedError
    assert "the traceback" in str(error)
