"""Commands, called as users call them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridwright.cli.main import run

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def gridwright(tmp_path: Path) -> Run:
    """Run the command as a user would, in an empty folder."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "gridwright", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120
        )

    return run


PATIENCE = 120.0


"""Seconds after which something that must happen has not: much, for a busy machine."""


MINE = """
policy = "fcfs"
time_unit = 0.2
duration = {duration}
{more}
[system]
name = "two"
classes = ["red", "blue"]
arrivals = [3, 2]
rates = [[8, 4], [4, 8]]
[system.failures]
mean_uptime = 2
mean_repair = 1
"""


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return written(tmp_path / "mine.toml")


def written(path: Path, duration: float = 4, more: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(MINE.format(duration=duration, more=more))
    return path


class Command:
    """The command line in this process; what it says on stderr is none but one line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object) -> str:
        status = run([str(word) for word in arguments])
        out, err = self.capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    def json(self, *arguments: object) -> Any:
        out = self(*arguments, "--json")
        assert out.count("\n") == 1
        return json.loads(out)

    def fails(self, *arguments: object, status: int = 2) -> str:
        found = run([str(word) for word in arguments])
        out, err = self.capsys.readouterr()
        assert (found, out) == (status, "")
        assert err.startswith("gridwright: ")
        assert err.count("\n") == 1
        assert str(ROOT) not in err, "no path of ours is the user's business"
        return err


@pytest.fixture
def gw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("COLUMNS", raising=False)  # a page, and not a narrow terminal
    return Command(capsys)
