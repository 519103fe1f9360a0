"""A grid that is served: clients in other processes, kills, tokens, TLS, fair shares."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import cloudpickle
import psutil
import pytest

from gridwright import GridClosedError, GridError, InputError, JobLostError, connect
from gridwright.grid import Journal
from gridwright.grid.messages import HEAD, Message, find_place, known_place

from .conftest import WAIT, until

cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]
SERVE = [sys.executable, "-m", "gridwright", "grid", "serve", "--json"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start a service, and wait until it is there."""
    process = subprocess.Popen([*SERVE, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["address"]
    return process


def end(process: subprocess.Popen[str], number: int = signal.SIGINT) -> int:
    everybody = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    status = process.wait(WAIT)
    assert process.stdout is not None
    process.stdout.close()
    psutil.wait_procs(everybody, WAIT)
    return status


@contextmanager
def served(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = start("--name", "farm", "--policy", "fcfs", "--machines", "2", *arguments)
    try:
        yield process
    finally:
        if process.poll() is None:
            end(process)


def test_a_client_is_an_executor(tmp_path: Path) -> None:
    with served(), connect("farm") as grid:
        assert grid.machines == ["1", "2"]
        assert list(grid.map(pow, range(20), [2] * 20)) == [k * k for k in range(20)]
        first = grid.options(key="one").submit(pow, 2, 3)
        assert grid.submit(lambda pair: sum(pair), [first, first]).result(WAIT) == 16
        assert (first.machine in ("1", "2"), grid.result("one"), first.key) == (True, 8, "one")
        with pytest.raises(ZeroDivisionError) as caught:
            grid.submit(divmod, 1, 0).result(WAIT)
        assert "Traceback" in str(caught.value.__cause__)
        with pytest.raises(JobLostError, match="status 7"):
            grid.options(retries=0).submit(os._exit, 7).result(WAIT)
        assert grid.run("echo {}", "a b").result(WAIT).stdout == "a b\n"
        running = grid.submit(time.sleep, 1000)
        until(lambda: "sleep" in grid.status()["classes"])
        assert running.cancel()
        with pytest.raises(CancelledError):
            running.result(WAIT)
        with pytest.raises(InputError, match="no machine '3'"):
            grid.options(machine="3").submit(abs, 1)
        with pytest.raises(InputError, match="no job with key 'two'"):
            grid.result("two")
        page = grid.jobs(limit=5, stage="finished")
        assert len(page["jobs"]) == 5
        until(lambda: {each["state"] for each in grid.machine_states()} == {"up"})
    with pytest.raises(GridClosedError, match="the client is closed"):
        grid.submit(abs, 1)


def test_a_client_hears_where_a_job_has_started(tmp_path: Path) -> None:
    process = start("--name", "farm", "--policy", "fcfs", "--machines", "1")
    with connect("farm") as grid:
        gate = tmp_path / "gate"

        def when_open() -> None:
            while not gate.exists():
                time.sleep(0.01)

        first, second = (grid.submit(when_open) for _ in range(2))
        until(first.running)
        assert (first.machine, second.machine, second.running()) == ("1", "", False)
        with connect("farm") as other:  # one that comes later is told too
            until(other.future(first.number).running)
            other.shutdown(wait=False)
        end(process, signal.SIGKILL)
        process = start("--name", "farm", "--policy", "fcfs", "--machines", "b")
        until(lambda: first.machine == "b")
        gate.touch()
        assert second.result(WAIT) is None
        assert (first.running(), second.machine) == (False, "b")
    assert end(process) == 130


def test_a_client_that_dies_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import gridwright as gw, time, os, signal\n"
        "grid = gw.connect('farm', client='short-lived')\n"
        "futures = grid.options(key='night').submit_all(pow, range(30), [2] * 30)\n"
        "print('submitted', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with served():
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "submitted\n"
        with connect("farm", client="heir") as grid:
            inherited = list(grid.options(key="night").map(pow, range(30), [2] * 30))
            assert inherited == [k * k for k in range(30)]
            assert grid.status()["classes"]["pow"]["arrived"] == 30


def test_a_client_outlives_its_service(tmp_path: Path) -> None:
    process = start("--name", "farm", "--policy", "fcfs", "--machines", "2")
    with connect("farm") as grid:
        gate = tmp_path / "gate"

        def when_open(k: int) -> int:
            while not gate.exists():
                time.sleep(0.01)
            return k

        futures = grid.submit_all(when_open, range(4))
        end(process, signal.SIGKILL)
        gate.touch()
        process = start("--name", "farm", "--policy", "fcfs", "--machines", "2")
        assert [each.result(WAIT) for each in futures] == [0, 1, 2, 3]
        assert grid.submit(abs, -1).result(WAIT) == 1
    assert end(process) == 130


def test_a_service_that_stays_away_is_given_up() -> None:
    process = start("--name", "farm", "--machines", "1")
    grid = connect("farm", patience=0.5)
    future = grid.submit(time.sleep, 1000)
    end(process, signal.SIGKILL)
    with pytest.raises(GridClosedError, match="job 0 goes on"):
        future.result(WAIT)
    with pytest.raises(GridClosedError, match="the connection was lost"):
        grid.submit(abs, 1)
    grid.close()
    with pytest.raises(GridError, match=r"no grid answers at tcp://127.0.0.1"):
        connect("farm")
    with pytest.raises(InputError, match="no grid 'field' is served on this computer"):
        connect("field")


def test_a_service_with_another_journal_answers_for_no_job_of_the_old_one(home: Path) -> None:
    process = start("--name", "farm", "--policy", "fcfs", "--machines", "1")
    with connect("farm") as grid:
        old = grid.submit(time.sleep, 1000)
        with connect("farm") as another:
            by_number = another.future(old.number)
            end(process, signal.SIGKILL)
            for file in (home / "grids").glob("farm.sqlite*"):
                file.unlink()
            process = start("--name", "farm", "--policy", "fcfs", "--machines", "1")
            with connect("farm") as newcomer:
                assert newcomer.submit(abs, -7).result(WAIT) == 7
            for each in (old, by_number):
                with pytest.raises(GridError, match="does not know job 0 any more"):
                    each.result(WAIT)
            assert grid.submit(abs, -1).result(WAIT) == 1
    end(process)


def test_a_failed_job_that_is_submitted_again_after_a_broken_connection_runs_once(
    tmp_path: Path,
) -> None:
    note = tmp_path / "note"

    def fail() -> None:
        with note.open("a") as file:
            file.write("x")
        raise ValueError

    with served(), connect("farm") as grid:
        sent: list[tuple[str, dict[str, Any]]] = []
        request = grid._request

        def listen(verb: str, heard: Any, content: bytes = b"", **words: Any) -> Any:
            sent.append((verb, {"content": content, **words}))
            return request(verb, heard, content, **words)

        grid._request = listen  # type: ignore[method-assign]
        with pytest.raises(ValueError):  # noqa: PT011
            grid.options(key="one").submit(fail).result(WAIT)
        (verb, words), answer = sent[0], lambda answer: answer["jobs"]
        assert request(verb, answer, **words).result(WAIT) == [0]
        assert note.read_text() == "x"
        with pytest.raises(ValueError):  # noqa: PT011
            grid.options(key="one").submit(fail).result(WAIT)  # another request
        assert note.read_text() == "xx"


def test_results_that_wait_for_the_client_and_calls_in_several_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gridwright.grid.client.AT_ONCE", 1000)
    with served(), connect("farm") as grid:
        texts = [str(k) * 400 for k in range(300)]
        assert list(grid.map(str.upper, texts)) == texts


def test_shutting_a_client_down_cancels_what_waits(tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def hold() -> str:
        while not gate.exists():
            time.sleep(0.01)
        return "done"

    with served("--machines", "1"), connect("farm") as other:
        grid = connect("farm")
        running = grid.submit(hold)
        until(lambda: [each for each in other.machine_states() if each["running"] == 0])
        waits, theirs = grid.submit(abs, -1), other.submit(abs, -2)
        watched = grid.future(theirs.number)
        leaving = Thread(target=grid.shutdown, kwargs={"cancel_futures": True})
        leaving.start()
        until(waits.cancelled)
        gate.touch()
        leaving.join()
        assert running.result(WAIT) == "done"
        assert waits.cancelled()
        assert (theirs.result(WAIT), watched.result(WAIT)) == (2, 2)


def test_a_client_that_does_not_read_holds_nobody_up() -> None:
    with served() as process:
        place = find_place("farm")
        with socket.create_connection((place.host, place.port)) as deaf, connect("farm") as grid:
            deaf.sendall(Message({"token": place.token, "client": "deaf"}).pack())
            work = cloudpickle.dumps((bytes, (10**7,), {}))
            words = {"id": 1, "verb": "submit", "name": "bytes", "options": {}, "request": "r"}
            calls = [[len(work), f"~deaf:{k}", []] for k in range(10)]
            deaf.sendall(Message({**words, "calls": calls}, work * 10).pack())
            until(lambda: grid.status()["ended"]["finished"] == 10)
            assert grid.submit(abs, -1).result(WAIT) == 1
            assert end(process) == 130
            grid.close()


def test_clients_take_turns(tmp_path: Path, home: Path) -> None:
    order, gate = tmp_path / "order", tmp_path / "gate"

    def note(name: str) -> None:
        while not gate.exists():
            time.sleep(0.01)
        with order.open("a") as file:
            file.write(f"{name}\n")

    with (
        served("--machines", "1"),
        connect("farm", client="many") as many,
        connect("farm", client="few") as few,
    ):
        futures = many.submit_all(note, ["many"] * 12)
        futures += few.submit_all(note, ["few"] * 4)
        gate.touch()
        for each in futures:
            each.result(WAIT)
    found = order.read_text().split()
    assert found.count("few") == 4
    assert max(k for k, name in enumerate(found) if name == "few") <= 9  # 4 turns of 2 machines
    journal = Journal(home / "grids" / "farm.sqlite", new=False)
    assert {each.job.options.client for each in journal.jobs()} == {"many", "few"}
    journal.close()


# who is let in


def test_a_wrong_token_is_refused() -> None:
    with served():
        place = known_place("farm")
        assert place is not None
        with pytest.raises(InputError, match="the token is wrong"):
            connect(place.address, token="guess")
        with connect(place.address, token=place.token) as grid:
            assert grid.submit(abs, -1).result(WAIT) == 1


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n" * 9,
    HEAD.pack(2**31, 0),
    HEAD.pack(20, 2**30) + b"x" * 20,
    Message({"token": ["?"]}).pack(),
    HEAD.pack(2, 0) + b"[]",
    HEAD.pack(4000, 0) + b"[" * 4000,
]


def test_garbage_does_not_disturb_others() -> None:
    with served(), connect("farm") as grid:
        for said in GARBAGE:
            with socket.create_connection((grid.place.host, grid.place.port)) as line:
                line.sendall(said)
                line.shutdown(socket.SHUT_WR)
                line.settimeout(WAIT)
                while line.recv(1000):
                    pass
            assert grid.submit(abs, -1).result(WAIT) == 1, said


def test_a_message_of_a_client_that_makes_no_sense_is_answered() -> None:
    with served(), connect("farm") as grid:
        for words in (
            {"verb": "destroy"},
            {"verb": "submit"},
            {"verb": "submit", "name": "f", "options": {"what": 1}, "calls": []},
            {"verb": "submit", "name": "f", "options": {}, "calls": [[5, "", []]]},
            {"verb": "jobs", "page": {"sort": "; drop table job"}},
            {"verb": "operate", "do": "close", "machine": "1"},
        ):
            given: dict[str, Any] = dict(words)
            with pytest.raises(InputError):
                grid._request(given.pop("verb"), dict, **given).result(WAIT)
        assert grid.submit(abs, -1).result(WAIT) == 1


def test_nobody_else_reads_where_a_grid_is(home: Path) -> None:
    with served():
        assert (home / "grids" / "farm.json").stat().st_mode & 0o77 == 0


def test_beyond_this_computer_a_grid_needs_tls(tmp_path: Path) -> None:
    found = subprocess.run(
        [*SERVE, "--name", "farm", "--host", "0.0.0.0"], capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "0.0.0.0 can be reached by others" in " ".join(found.stderr.split())
    with pytest.raises(InputError, match="would send the token for all to read"):
        find_place("tcp://192.0.2.1:7000", "token")
    with pytest.raises(InputError, match="an address needs the token"):
        find_place("tls://192.0.2.1:7000")


def test_tls(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    if subprocess.run(command.split(), capture_output=True).returncode:
        pytest.skip("openssl cannot make a certificate")
    with served("--tls-cert", str(cert), "--tls-key", str(key)), connect("farm") as grid:
        assert grid.place.address.startswith("tls://127.0.0.1:")
        assert grid.submit(abs, -1).result(WAIT) == 1
        with pytest.raises(InputError, match="cannot be trusted"):
            connect(grid.place.address, token=grid.place.token)
        with socket.create_connection((grid.place.host, grid.place.port)) as plain:
            plain.sendall(Message({"token": grid.place.token}).pack())
            with suppress(OSError):
                assert b"welcome" not in plain.recv(1000)
