"""Whom a run is stopped with: the process that holds its journal, as soon as it says so."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gridwright import InputError
from gridwright.testbed import Experiment, new_run
from gridwright.web.runs import Runs, path_of

pytestmark = pytest.mark.slow

SYSTEM = {"arrivals": [1], "rates": [[2]]}
HOLD = """
import fcntl, os, socket, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
for word in sys.stdin:
    print(word.strip() or f"{os.getpid()} {socket.gethostname()}", end="", file=lock, flush=True)
    print("said", flush=True)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    with new_run(Experiment(system=SYSTEM, policy="fcfs", duration=1)) as made:
        return made.number


@pytest.fixture
def holder(run: int) -> Iterator[Any]:
    """Hold a run's lock as a process that has just claimed it, and has not yet said who it is."""
    command = [sys.executable, "-c", HOLD, f"{path_of(run)}-lock"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def say(holder: Any, words: str = "") -> None:
    print(words, file=holder.stdin, flush=True)
    assert holder.stdout.readline() == "said\n"


def test_a_run_that_is_just_claimed_is_not_on_another_computer(run: int, holder: Any) -> None:
    with pytest.raises(InputError, match="has not stopped within 1 second"):
        Runs().stop(run, patience=1.0)
    assert holder.poll() is None
    say(holder)
    Runs().stop(run)
    assert holder.wait(20) != 0, "it was interrupted"
    with pytest.raises(InputError, match="is not running"):
        Runs().stop(run)


def test_a_run_on_another_computer_is_left_alone(run: int, holder: Any) -> None:
    say(holder, "1 elsewhere")
    with pytest.raises(InputError, match="on another computer"):
        Runs().stop(run)
    assert holder.poll() is None


class One(Runs):
    """Runs of which there is room for one, as a slow look tells."""

    begun = 0

    def _check_room(self) -> None:
        if self.begun:
            raise InputError("one is going on")
        time.sleep(0.1)

    def _conduct(self, number: int) -> None:
        self.begun += 1


def test_room_for_one_is_given_to_one(run: int) -> None:
    runs = One()
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(runs.resume, run) for _ in range(2)]
    assert [each.exception() is None for each in asked].count(True) == 1
    assert runs.begun == 1


def test_a_run_that_was_stopped_does_not_seem_to_start(run: int) -> None:
    runs = Runs()
    number = runs.start(Experiment(system=SYSTEM, policy="fcfs", duration=1000))
    found = None
    while (found := runs.find(number)) is None or found.state == "starting":
        time.sleep(0.05)
    runs.stop(number, patience=60.0)
    found = runs.find(number)
    assert found is not None
    assert found.state == "stopped"
