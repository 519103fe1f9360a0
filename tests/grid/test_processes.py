"""Whatever a job does to its process: the grid notices, and no process is left behind."""

import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from gridwright import InputError
from gridwright.grid import Grid
from gridwright.grid.executors import Ended, MachineDown, MachineUp, Started
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.executors.process import Pauses

from .conftest import WAIT, Driven, alive, dask_worker, running, until

cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]

Open = Callable[[], Driven]


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    with running("--local", "1", "--port", "0") as cluster:
        yield cluster.address


@pytest.fixture(params=["local", "dask"])
def driven(request: pytest.FixtureRequest) -> Iterator[Driven]:
    """An executor with one machine."""
    if request.param == "local":
        executor: Any = LocalExecutor(1)
    else:
        executor = DaskExecutor(request.getfixturevalue("dask"))
    with Driven(executor) as found:
        until(lambda: MachineUp(0) in found.told)
        yield found


def note(folder: Path) -> None:
    """Write down this process."""
    (folder / f"{os.getpid()}.new").touch()
    (folder / f"{os.getpid()}.new").rename(folder / str(os.getpid()))


def noted(folder: Path, count: int) -> list[int]:
    """Wait for so many processes that have written themselves down."""
    return until(lambda: len(found := _names(folder)) == count and list(map(int, found)))


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if not path.suffix]


def left(pids: list[int]) -> list[psutil.Process]:
    """Return those of some processes that are still running."""
    return alive([each for each in psutil.process_iter() if each.pid in pids])


def family(folder: Path, then: Callable[[], Any]) -> Any:
    """Leave a child, one in a session of its own, and a daemon, all of them deaf; then do more."""
    for kind in ("child", "session", "daemon"):
        if os.fork() == 0:
            if kind != "child":
                os.setsid()
            if kind == "daemon" and os.fork() > 0:
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note(folder)
            time.sleep(1000)
    while len(_names(folder)) < 3:
        time.sleep(0.01)
    note(folder)
    return then()


def stay() -> None:
    time.sleep(1000)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_guardian() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    stay()


def hold_the_lock() -> None:
    """Wait in C, without ever giving the interpreter's lock back."""
    ctypes.PyDLL(None).sleep(1000)


def downs(driven: Driven) -> list[MachineDown]:
    return [event for event in driven.told if isinstance(event, MachineDown)]


def test_a_job_that_is_stopped_takes_its_children_with_it(driven: Driven, tmp_path: Path) -> None:
    driven.start(1, 0, family, tmp_path, hold_the_lock)
    processes = noted(tmp_path, 4)
    driven.call(driven.executor.cancel, 1, 0, 1)
    driven.start(2, 0, abs, -2)
    assert driven.result(2) == 2, "the machine takes the next job as soon as it is ready"
    assert not left(processes)
    assert not downs(driven)


def test_a_death_is_noticed_while_a_child_holds_the_socket(driven: Driven, tmp_path: Path) -> None:
    driven.start(1, 0, family, tmp_path, die)
    processes = noted(tmp_path, 4)
    (down,) = until(lambda: downs(driven))
    assert down == (0, "its process was killed by SIGKILL (out of memory?)", True)
    until(lambda: driven.told[-1] == MachineUp(0))
    assert not left(processes)
    driven.start(2, 0, abs, -2)
    assert driven.result(2) == 2


def test_a_machine_says_how_it_died(driven: Driven) -> None:
    driven.start(1, 0, os._exit, 3)
    until(lambda: driven.told[-1] == MachineUp(0) and downs(driven))
    driven.start(2, 0, os.abort)
    until(lambda: driven.told[-1] == MachineUp(0) and len(downs(driven)) == 2)
    assert downs(driven) == [
        MachineDown(0, "its process exited with status 3", died=True),
        MachineDown(0, "its process was killed by SIGABRT", died=True),
    ]


def test_a_guardian_that_is_killed_takes_everything_with_it(driven: Driven, tmp_path: Path) -> None:
    driven.start(1, 0, family, tmp_path, kill_the_guardian)
    processes = noted(tmp_path, 4)
    (down,) = until(lambda: downs(driven))
    assert down.died
    until(lambda: driven.told[-1] == MachineUp(0))
    until(lambda: not left(processes))


def test_a_fork_that_returns_as_well_is_heard_once(driven: Driven, tmp_path: Path) -> None:
    def twice() -> int:
        child = os.fork()
        if child > 0:
            os.waitpid(child, 0)  # the child has returned, and has ended
        return 7

    driven.start(1, 0, twice)
    assert driven.result(1) == 7
    driven.start(2, 0, os.getpid)
    driven.result(2)
    assert [event.job for event in driven.told if isinstance(event, Ended)] == [1, 2]


def sockets() -> list[int]:
    """Find the sockets of a worker."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        if path.is_symlink() and os.readlink(path).startswith("socket:"):
            found.append(int(path.name))
    return found


def write(garbage: bytes, then: Callable[[], Any]) -> None:
    """Write garbage to every socket that this process has."""
    for fd in sockets():
        os.write(fd, garbage)
    then()


NOISE = bytes(range(256)) * 40
FROM_THIS_MODULE = b"cposix\nabort\n(tR."
GARBAGE = {
    "noise": NOISE,
    "a huge length": struct.pack("!Q", 1 << 62),
    "a pickle that acts": struct.pack("!Q", len(FROM_THIS_MODULE)) + FROM_THIS_MODULE,
    "a pickle cut short": struct.pack("!Q", 5) + b"\x80\x04\x95\x00\x00",
    "an unknown kind": struct.pack("!Q", 8) + b"\x80\x04\x8c\x01?\x85\x94.",
    "a few bytes": b"xyz",
}


def test_garbage_on_its_socket_restarts_a_machine(driven: Driven) -> None:
    for garbage in GARBAGE.values() if isinstance(driven.executor, LocalExecutor) else [NOISE]:
        for then in (stay, int):
            driven.told.clear()
            # the beginning of a frame is not garbage yet
            driven.start(1, 0, write, garbage + NOISE * (then is stay), then)
            (down,) = until(lambda: downs(driven))
            why = "something other than the worker wrote to the worker's socket"
            assert down == (0, why, True)
            until(lambda: driven.told[-1] == MachineUp(0))
            driven.start(2, 0, abs, -2)
            assert driven.result(2) == 2


def test_a_grid_closes_in_the_middle_of_garbage(tmp_path: Path) -> None:
    mark = tmp_path / "written"

    def job() -> None:
        write(GARBAGE["a pickle cut short"], mark.touch)
        stay()

    grid = Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite")
    grid.submit(job)
    until(mark.exists)
    grid.close()


def test_a_job_that_closes_every_file(driven: Driven) -> None:
    driven.start(1, 0, os.closerange, 3, 65536)
    (down,) = until(lambda: downs(driven))
    assert down.died
    until(lambda: driven.told[-1] == MachineUp(0))
    driven.start(2, 0, abs, -2)
    assert driven.result(2) == 2


def test_what_a_job_starts_does_not_get_the_socket(driven: Driven) -> None:
    def seen_by_children() -> list[bytes]:
        links = "(os.readlink(each) for each in os.scandir('/proc/self/fd') if each.is_symlink())"
        show = f"import os; print(*(each for each in {links} if 'socket' in each))"
        said = subprocess.run(
            [sys.executable, "-c", show], capture_output=True, close_fds=False, check=True
        )
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, " ".join(map(str, sockets())).encode() or b"none")
            os._exit(0)
        return [*said.stdout.split(), os.read(reader, 99)]

    driven.start(1, 0, seen_by_children)
    assert driven.result(1) == [b"none"]


# the process that runs the grid is killed

SCRIPT = """
import sys, time
from pathlib import Path
import cloudpickle
from gridwright import InputError
from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.local import LocalExecutor

journal, work, address = sys.argv[1:]
executor = DaskExecutor(address) if address else LocalExecutor(2)
with Grid("fcfs", on=executor, journal=journal) as grid:
    function, arguments = cloudpickle.loads(Path(work).read_bytes())
    grid.submit(function, *arguments)
    time.sleep(1000)
"""


def script(folder: Path, then: Callable[[], None], address: str) -> subprocess.Popen[bytes]:
    """Start a program that runs a grid with a job that has a family."""
    (folder / "script.py").write_text(SCRIPT)
    (folder / "noted").mkdir()
    (folder / "work").write_bytes(cloudpickle.dumps((family, (folder / "noted", then))))
    command = [sys.executable, *(str(folder / name) for name in ("script.py", "j.sqlite", "work"))]
    return subprocess.Popen([*command, address], start_new_session=True, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("executor", "how", "then"),
    [
        ("local", signal.SIGKILL, hold_the_lock),
        ("local", signal.SIGINT, stay),
        ("local", signal.SIGTERM, stay),
        ("dask", signal.SIGINT, stay),
    ],
)
def test_a_grid_that_is_killed_leaves_no_process_behind(
    executor: str,
    how: signal.Signals,
    then: Callable[[], None],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    address = request.getfixturevalue("dask") if executor == "dask" else ""
    process = script(tmp_path, then, address)
    processes = noted(tmp_path / "noted", 4)
    if how == signal.SIGKILL:  # somebody has stopped the guardians before
        for guardian in psutil.Process(process.pid).children():
            guardian.suspend()
    os.killpg(process.pid, how)  # as Ctrl-C in a terminal does
    process.wait(WAIT)
    until(lambda: not left(processes))


def test_a_killed_grid_and_a_killed_dask_worker_leave_no_process_behind(tmp_path: Path) -> None:
    with running("--local", "1", "--port", "0") as cluster:
        process = script(tmp_path, hold_the_lock, cluster.address)
        processes = noted(tmp_path / "noted", 4)
        process.kill()
        process.wait(WAIT)
        until(lambda: not left(processes))

        (tmp_path / "more").mkdir()
        with Driven(DaskExecutor(cluster.address)) as driven:
            driven.start(0, 0, dask_worker)
            driven.result(0)
            driven.start(1, 0, family, tmp_path / "more", hold_the_lock)
            processes = noted(tmp_path / "more", 4)
            os.kill(driven.result(0), signal.SIGKILL)
            until(lambda: not left(processes))
            (down,) = until(lambda: downs(driven))
            assert down == (0, "its worker died", True)


def test_a_job_that_kills_its_process_does_not_make_it_start_without_pause(driven: Driven) -> None:
    began = time.monotonic()
    for deaths in range(1, 7):
        driven.start(deaths, 0, die)
        until(lambda: len(downs(driven)) == deaths and driven.told[-1] == MachineUp(0))  # noqa: B023
    assert {event.died for event in downs(driven)} == {True}
    assert time.monotonic() - began > 0.05 + 0.1 + 0.2 + 0.4 + 0.8
    driven.start(7, 0, abs, -2)
    assert driven.result(7) == 2


def test_a_process_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = LocalExecutor(1)
    with Driven(executor) as driven:
        with monkeypatch.context() as missing:
            missing.setattr(sys, "executable", str(tmp_path / "python"))
            driven.start(1, 0, die)
            until(lambda: downs(driven))
            with pytest.raises(InputError, match="cannot start a process on this computer"):
                Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite")
        until(lambda: driven.told[-1] == MachineUp(0))


def test_processes_that_die_in_a_row_are_started_ever_less_often() -> None:
    pauses = Pauses(shortest=0.05, longest=2.0)
    assert [pauses.next() for _ in range(9)] == [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    pauses.reset()
    assert pauses.next() == 0


def test_an_answer_of_a_process_that_was_killed_is_not_heard(tmp_path: Path) -> None:
    release = tmp_path / "release"

    def wait() -> None:
        while not release.exists():
            time.sleep(0.01)

    def take_away_and_repair() -> None:
        """Its answer lies in the socket before it is killed, and is read after the repair."""
        process = executor._all[0].process
        assert process is not None
        release.touch()
        assert select.select([process.line._rest], [], [], WAIT)[0]
        executor.fail(0)
        executor.repair(0)

    executor = LocalExecutor(1)
    with Driven(executor) as driven:
        driven.start(1, 0, wait)
        until(lambda: [event for event in driven.told if isinstance(event, Started)])
        driven.call(take_away_and_repair)
        until(lambda: driven.told[-1] == MachineUp(0))
        assert list(map(type, driven.told)) == [
            MachineUp,
            Started,
            MachineDown,
            MachineUp,
        ]
        driven.start(2, 0, abs, -2)
        assert driven.result(2) == 2


def test_a_job_that_ended_before_its_process_was_killed_has_started(tmp_path: Path) -> None:
    release = tmp_path / "release"

    def wait() -> None:
        while not release.exists():
            time.sleep(0.01)

    def kill_when_both_have_ended() -> None:
        """Three messages lie in the socket then: an end, a start and an end."""
        process = executor._all[0].process
        assert process is not None
        release.touch()

        def messages() -> int:
            with suppress(BlockingIOError):
                return process.line._rest.recv(1 << 16, socket.MSG_PEEK).count(process.mark)
            return 0

        until(lambda: messages() == 3)
        process.kill()

    executor = LocalExecutor(1)
    with Driven(executor) as driven:
        driven.start(1, 0, wait)
        driven.start(2, 0, abs, -2)
        until(lambda: [event for event in driven.told if isinstance(event, Started)])
        driven.call(kill_when_both_have_ended)
        assert driven.result(2) == 2
        heard = [
            (type(each), each.job) for each in driven.told if isinstance(each, Started | Ended)
        ]
        assert heard == [(Started, 1), (Ended, 1), (Started, 2), (Ended, 2)]


def start_a_daemon(folder: Path) -> None:
    if os.fork() == 0:
        os.setsid()
        note(folder)
        time.sleep(1000)


PROGRAM = """
import sys, time
from pathlib import Path
from gridwright.grid import Grid
from tests.grid.test_processes import start_a_daemon
with Grid("fcfs", 1) as grid:
    grid.submit(start_a_daemon, Path(sys.argv[1])).result()
    time.sleep(1000)
"""


def test_the_next_grid_ends_what_was_left_when_grid_and_guardian_were_killed(
    tmp_path: Path,
) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
    (daemon,) = map(psutil.Process, noted(tmp_path, 1))
    (guardian,) = psutil.Process(program.pid).children()
    program.send_signal(signal.SIGSTOP)  # so that it does not notice
    guardian.kill()
    until(lambda: daemon.ppid() != guardian.pid)
    program.kill()
    program.wait()
    assert alive([daemon])
    with Grid("fcfs", 1) as grid:
        assert grid.submit(abs, -1).result() == 1
    until(lambda: not alive([daemon]))
    assert not alive([guardian])


def test_the_processes_of_a_grid_that_runs_are_left_alone() -> None:
    with Grid("fcfs", 1) as grid:
        before = grid.submit(os.getpid).result(WAIT)
        with Grid("fcfs", 1) as other:
            assert other.submit(abs, -1).result(WAIT) == 1
        assert grid.submit(os.getpid).result(WAIT) == before
