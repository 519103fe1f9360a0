"""Whose a journal is, and what is asked of whom."""

import fcntl
import os
import socket
import time
from pathlib import Path
from threading import Timer

from gridwright.grid import Grid, Journal
from gridwright.grid.executors.fake import FakeExecutor


def test_a_look_at_the_lock_keeps_nobody_from_claiming(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    lock = open(f"{path}-lock", "a")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_SH)
    look = Timer(0.05, lock.close)
    look.start()
    journal.claim()
    look.join()
    assert journal.owner() == os.getpid()
    journal.close()


def test_an_owner_is_never_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    one, other = Journal(path), Journal(path)
    one.claim()
    assert other.owner() == os.getpid()
    one.close()
    assert other.owner() is None
    lock = open(f"{path}-lock", "a+")  # noqa: SIM115
    assert not lock.read(), "it says nobody"
    fcntl.flock(lock, fcntl.LOCK_EX)
    host = socket.gethostname()
    says = Timer(0.05, lambda: print(f"7 {host}", end="", file=lock, flush=True))
    says.start()
    assert other.owner() == 7, "claimed before it was said by whom"
    says.join()
    lock.close()
    other.close()


def test_what_was_asked_of_an_earlier_grid_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    asker = Journal(path)
    old = asker.ask("kill", "a")
    executor = FakeExecutor(["a"], lambda *_: 0.0)
    with Grid("fcfs", executor=executor, journal=path) as grid:
        new = asker.ask("pause", "a")
        end = time.monotonic() + 60
        while asker.answered(new) is None and time.monotonic() < end:
            time.sleep(0.01)
        machine = grid.status()["machines"]["a"]
        assert (machine["up"], machine["paused"]) == (True, True)
    assert asker.answered(new) == "done"
    assert asker.answered(old) == "error: the grid that this was asked of had ended"
    asker.close()
