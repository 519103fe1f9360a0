"""Whose a journal is, and what is asked of whom."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread, Timer

import pytest

from gridwright import GridClosedError
from gridwright.grid import Grid, Journal, ownership
from gridwright.grid.event import FIELDS
from gridwright.grid.executors.virtual import FakeExecutor


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


CLAIM = """
import sys
from pathlib import Path
from gridwright.grid import Journal
journal = Journal(Path(sys.argv[1]))
journal.claim()
print("claimed", flush=True)
sys.stdin.read()
"""


def test_who_was_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    command = [sys.executable, "-c", CLAIM, str(path)]
    pipe = subprocess.PIPE  # it ends with us
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        mine = Journal(path)
        assert (mine.owner(), mine.is_elsewhere()) == (other.pid, False)
        other.send_signal(signal.SIGKILL)
    lock = Path(f"{path}-lock")
    assert lock.read_text().startswith(f"{other.pid} "), "it could not take its name away"
    for left in (lock.read_text(), f"{os.getpid()} {socket.gethostname()}", "7 elsewhere"):
        lock.write_text(left)  # of a dead process, of one that has its number now, of another's
        assert (mine.owner(), mine.is_claimed(), mine.is_elsewhere()) == (None, False, False)
        mine.claim()
        assert (mine.owner(), mine.is_elsewhere()) == (os.getpid(), False)
        mine.release()
    mine.close()


def test_who_was_killed_is_forgotten_before_the_next_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "PATIENCE", 60.0)
    path = tmp_path / "j.sqlite"
    lock, mine = Path(f"{path}-lock"), Journal(path)
    lock.write_text(f"7 {socket.gethostname()}")
    with lock.open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)  # so that nobody can hold it yet
        claims = Thread(target=mine.claim)
        claims.start()
        end = time.monotonic() + 60
        while lock.read_text() and time.monotonic() < end:
            time.sleep(0.01)
        assert (lock.read_text(), claims.is_alive()) == ("", True)
    claims.join()
    assert mine.owner() == os.getpid()
    mine.close()


def test_a_sign_is_taken_down_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    mine = ownership.Ownership(Path("j.sqlite"))
    mine.take()
    mine.put_up_sign()
    assert ownership.signed() == [tmp_path / "j.sqlite"]
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ownership.signed() == [tmp_path / "j.sqlite"]
    mine.let_go()
    assert not list((tmp_path / "home" / "running").iterdir())


def test_what_was_asked_of_an_earlier_grid_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    asker = Journal(path)
    old = asker.ask("kill", "a")
    executor = FakeExecutor(["a"], lambda *_: 0.0)
    with Grid("fcfs", on=executor, journal=path) as grid:
        new = asker.ask("pause", "a")
        end = time.monotonic() + 60
        while asker.answered(new) is None and time.monotonic() < end:
            time.sleep(0.01)
        machine = grid.status()["machines"]["a"]
        assert (machine["up"], machine["paused"]) == (True, True)
    assert asker.answered(new) == "done"
    assert asker.answered(old) == "error: the grid that this was asked of had ended"
    asker.close()


def test_a_journal_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    old = os.umask(0o022)
    try:
        executor = FakeExecutor(["a"], lambda *_: 1000.0)
        with Grid("fcfs", on=executor) as grid:
            grid.submit(abs, 1)
            folder = grid.journal.path.parent
            modes = {each.suffix: each.stat().st_mode & 0o777 for each in folder.iterdir()}
            signs = [each.stat().st_mode & 0o777 for each in folder.parent.glob("running/*")]
            grid.close()
    finally:
        os.umask(old)
    endings = ("", "-wal", "-shm", "-lock")
    assert modes == {f".sqlite{ending}": 0o600 for ending in endings}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert signs == [0o600]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_keeps_nobody_from_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    read, write = os.pipe()
    grid = Grid("fcfs", on=FakeExecutor(["a"], lambda *_: 1000.0), journal=path)
    child = os.fork()
    if child == 0:
        try:
            os.close(write)
            grid.submit(abs, 1)
        except GridClosedError as error:
            grid.close()
            os.read(read, 1)  # until the parent has seen enough
            os._exit(0 if "belongs to its parent" in str(error) else 1)
        os._exit(2)
    os.close(read)
    other = Journal(path)
    assert other.owner() == os.getpid()
    number = grid.submit(abs, 1).number
    grid.close()
    assert not other.is_claimed(), "though the child is still there"
    other.close()
    with Grid("fcfs", on=FakeExecutor(["a"], lambda *_: 0.0), journal=path) as again:
        assert list(again.unfinished) == [number]
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_clock_that_was_set_back_turns_no_time_back(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", on=FakeExecutor(["a"], lambda *_: 0.0), journal=path) as grid:
        grid.submit(abs, 1).exception(60)
    journal = Journal(path)
    last = journal.last()
    journal.describe(origin=journal.about["origin"] + 3600)
    journal.close()
    with Grid("fcfs", on=FakeExecutor(["a"], lambda *_: 0.0), journal=path) as grid:
        future = grid.submit(abs, 1)
        future.exception(60)
        (submitted,) = grid.journal.select("submitted FROM job WHERE number = ?", (future.number,))[
            0
        ]
    assert submitted >= last >= 0


def test_events_have_named_fields(tmp_path: Path) -> None:
    executor = FakeExecutor(["a", "b"], lambda *_: 0.0, readings=lambda machine, time: 0.5)
    path = tmp_path / "j.sqlite"
    with Grid("lpas_dg", on=executor, journal=path, resolution=0.01) as grid:
        grid.impose("a", 0.25, 1000.0)
        grid.predict("a", "recursive")
        grid.fail("b", 0.01)
        while not grid.journal.events("availability"):
            time.sleep(0.01)
    journal = Journal(path)
    found = {each.kind: each for each in journal.events()}
    journal.close()
    assert found["availability imposed"].fields == {"availability": 0.25}
    assert found["failure"].fields == {"period": 0.01}
    assert found["prediction"].fields == {"mode": "recursive"}
    assert found["availability"].fields == {"measured": 0.5, "predicted": 0.5}
    assert found["plan"].fields["number"] >= 1
    assert found["down"].detail == "it was taken away"
    for each in found.values():
        assert set(each.fields) <= set(FIELDS.get(each.kind, ()))
