"""What is wrong with experiments, runs and commands is said in one line."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Command

pytestmark = pytest.mark.usefixtures("own_home")


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('policy = "fcfs', "wrong.toml: not valid TOML"),
        ('system = "2.B"\npolicy = "fcfs"\ndurration = 3', "unknown key durration; did you mean"),
        ('system = "2.B"', "wrong.toml: policy is missing"),
        ("arrivals = [1]\nrates = [[2]]", "this looks like a system, with 'rates' in it"),
        ('system = "2.B"\npolicy = "chain_mct"', "wrong.toml: 2.B has no chains of applications"),
        ('system = "2.B"\npolicy = "fcfs"\nmachines = ["a", "b", "c"]', "3 machines for a system"),
        ('system = "2.B"\npolicy = "fcfs"\njobs = "no.csv"', "no.csv cannot be read: No such"),
        ('system = "2.B"\npolicy = "fcfs"\nfailures = "no.csv"', "no.csv cannot be read: No such"),
        ('system = "no.toml"\npolicy = "fcfs"', "no.toml: there is no such file"),
        ('policy = "fcfs"\n[system]\narrivals = [1]\nrates = [[-2]]', "[system] rates, row 1"),
    ],
)
def test_wrong_experiments(text: str, message: str, gw: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(text)
    assert message in gw.fails("run", "wrong.toml")
    assert "no runs yet" in gw("runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "expected an EXPERIMENT, or --resume RUN"),
        (["run", "MGST-1", "--resume", "1"], "expected an EXPERIMENT, or --resume RUN"),
        (["run", "MGST-13"], "no experiment 'MGST-13'; did you mean"),
        (["run", "nothing"], "no experiment 'nothing'; there are MGST-1 to MGST-12"),
        (["run", "no.toml"], "no.toml: there is no such file"),
        (["run", "."], ". is a folder; expected an experiment file"),
        (["run", "MGST-1", "--policy", "chain_mct"], "chain_mct is a chain policy"),
        (["run", "MGST-1", "--policy", "fcsf"], "no policy 'fcsf'; did you mean 'fcfs'"),
        (["run", "MGST-1", "--policy", "no.py"], "no.py cannot be read"),
        (["run", "MGST-1", "--on", "nowhere"], "'nowhere' is not the address of a cluster"),
        (["run", "MGST-1", "--time-unit", "0"], ": time_unit is 0.0; expected a number > 0"),
        (["run", "MGST-1", "--time-unit", "1e-9"], "a time unit of 1e-09 seconds; expected 0.001"),
        (["run", "MGST-1", "--time-unit", "1e20"], "a time unit of 1e+20 seconds; expected 0.001"),
        (["run", "n" * 5000], "no experiment 'nnnn"),
        (["run", "n" * 5000 + ".toml"], "cannot be read: File name too long"),
        (["run", "--resume", "9" * 5000], "no run '9999"),
        (["runs", "show", "9" * 5000], "no run '9999"),
        (["runs", "show", "n" * 5000], "no run 'nnnn"),
        (["runs", "show", "²"], "no run '²'"),
        (["machines", "list", "--run", "n" * 5000], "is too long for the name of a file"),
        (["runs", "replay", "n" * 5000, "--policy", "mct"], "no run 'nnnn"),
        (["traces", "characterise", "n" * 5000], "there is no such file"),
        (["simulate", "2.B", "--policy", "mct", "--csv", "n" * 5000], "cannot be written there"),
        (["ui", "--host", "n" * 5000], "not the name of a computer"),
        (["run", "MGST-1", "--duration", "nan"], ": duration is nan; expected a finite number"),
        (["run", "MGST-1", "--duration", "inf"], ": duration is inf; expected a finite number"),
        (["run", "MGST-1", "--seed", "-1"], ": seed is -1; expected a number ≥ 0"),
        (["run", "MGST-1", "--save-jobs", "no/jobs.csv"], "--save-jobs no/jobs.csv: there is no"),
        (["run", "--resume", "99"], "there is no run 99; 'gridwright runs' lists"),
        (["runs", "trial"], "no run 'trial'; expected a number that 'gridwright runs' lists"),
        (["runs", "replay", "99"], "there is no run 99; 'gridwright runs' lists"),
        (["runs", "replay", "last"], "no run 'last'; expected a number"),
        (["runs", "show", "99"], "there is no run 99"),
        (["runs", "show", "1", "--plot", "run.gif"], "expected a file that ends in .png"),
        (["runs", "export", "99", "tables"], "there is no run 99"),
        (["machines", "ping", "1"], "no grid is running; 'gridwright run' starts one"),
        (["machines", "fly"], "No such command 'fly'"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, gw: Command) -> None:
    assert message in gw.fails(*arguments)
    assert "no runs yet" in gw("runs"), "what never began leaves nothing"


def test_nobody_answers(gw: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from gridwright.grid.executors import connection

    monkeypatch.setattr(connection, "PATIENCE", 1.0)
    wrong = gw.fails("run", "MGST-1", "--on", "tcp://127.0.0.1:1")
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in wrong
    assert "no runs yet" in gw("runs")


def test_journals_that_cannot_be_read(gw: Command, tmp_path: Path, mine: Path) -> None:
    assert gw("run", mine, "--no-report", "--duration", 1) == ""
    folder = tmp_path / "home" / "runs"
    with sqlite3.connect(folder / "2.sqlite") as other:
        other.execute("CREATE TABLE about (key, value)")
        other.execute("PRAGMA user_version=99")
    other.close()
    (folder / "3.sqlite").write_text("this is no journal, but a text that is long enough\n" * 20)
    (folder / "4.sqlite").touch()
    lines = gw("runs").splitlines()
    assert lines[1].split()[:2] == ["1", "done"]
    assert lines[2].startswith("run 2 cannot be read: ")
    assert "a journal of version 99; this Gridwright reads" in lines[2]
    assert [line[:6] for line in lines[3:]] == ["run 3 ", "run 4 "]
    rows = gw.json("runs")["runs"]
    assert [row["state"] for row in rows] == ["done", *3 * ["unreadable"]]
    assert "a journal of version 99" in gw.fails("runs", "replay", 2)
    assert (folder / "4.sqlite").stat().st_size == 0, "looking changes nothing"
    (tmp_path / "taken").touch()
    assert "taken is a file; expected a folder" in gw.fails("runs", "export", 1, "taken")
    assert "cannot be written" in gw.fails("runs", "export", 1, "taken/tables")
    assert "run 1 is done; only a run that was stopped" in gw.fails("run", "--resume", 1)
    assert gw.json("run", mine, "--no-expect", "--duration", 1)["run"] == 5


# help


@pytest.mark.parametrize(
    "words", [["run"], ["runs"], ["runs", "replay"], ["runs", "export"], ["machines"]]
)
def test_the_page_has_every_option(words: list[str], gw: Command) -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    assert f"`gridwright {' '.join(words)}" in page
    text = gw(*words, "--help")
    options = {word for word in re.split(r"[\s,]", text) if word.startswith("--")} - {"--help"}
    missing = {option for option in options if f"`{option}" not in page}
    assert missing - {"--no-corrections"} == set()


def test_help_needs_nothing_heavy() -> None:
    code = """
import sys
from gridwright.cli.main import run
run(["--help"]), run(["run", "--help"]), run(["machines"])
heavy = {"numpy", "numba", "scipy", "matplotlib", "distributed", "sqlite3", "gridwright.testbed"}
print(sorted(heavy & sys.modules.keys()), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("kind", ["a file in its place", "read-only"])
def test_a_home_that_cannot_be_written(
    kind: str, gw: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "kept"
    if kind == "read-only":
        home.mkdir(mode=0o555)
        if os.access(home, os.W_OK):
            pytest.skip("root writes anywhere")
    else:
        home.write_text("")
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(home))
    said = gw.fails("run", "MGST-1", "--time-unit", "0.01", "--duration", "1")
    assert f"runs are kept in {home / 'runs'}, which cannot be written" in said
    assert "set GRIDWRIGHT_HOME to a folder that can" in said


def test_rates_so_high_that_jobs_take_no_time(gw: Command, tmp_path: Path) -> None:
    text = 'policy = "mct"\ntime_unit = 0.05\nduration = 4\n[system]\narrivals = [5]\n'
    (tmp_path / "fast.toml").write_text(f"{text}rates = [[1e19, 1e19]]\n")
    assert "The jobs are too short to compare" in gw("run", "fast.toml", "--no-expect")
    assert '"relative": null' in gw("runs", "show", "1", "--no-expect", "--json")
