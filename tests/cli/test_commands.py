"""Whole-program tests: the commands as users and scripts see them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridwright import __version__
from gridwright.catalogue import entries, find
from gridwright.cli.main import run

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SOLVABLE = [entry.name for entry in entries() if entry.has_capacity]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(output(capsys, *arguments, "--json"))


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must fail for its input: status 2, nothing printed, one line."""
    status = run(list(arguments))
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("gridwright: ")
    assert err.count("\n") == 1
    return err


def test_version_and_help(gridwright: Run) -> None:
    assert gridwright("--version").stdout == f"gridwright {__version__}\n"
    shown = gridwright("--help")
    assert shown.returncode == 0
    for command in (
        "systems",
        "allocate",
        "policies",
        "simulate",
        "compare",
        "demo",
        "--install-completion",
    ):
        assert command in shown.stdout


def test_no_arguments_shows_the_help(gridwright: Run) -> None:
    done = gridwright()
    assert "Usage" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_allocate_json_has_the_contracts_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, "allocate", "2.B")
    assert found["system"] == "2.B"
    assert found["method"] == "grouped"
    assert found["capacity"] == pytest.approx(4 / 3)
    assert found["load"] == pytest.approx(0.75)
    assert found["allocation"] == [pytest.approx([5 / 6, 0]), pytest.approx([1 / 6, 1])]
    assert found["routing"] == [pytest.approx([1, 0]), pytest.approx([1 / 16, 15 / 16])]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVABLE)
def test_allocate_every_system(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry = find(name)
    found = as_json(capsys, "allocate", name)
    assert found["system"] == entry.name
    assert (len(found["allocation"]), len(found["allocation"][0])) == entry.shape
    if entry.expected_capacity:
        assert round(found["capacity"], 4) == entry.expected_capacity
    assert entry.name in output(capsys, "allocate", name, "--method", "vertex")


def test_allocate_with_a_machine_down(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "allocate", "3.LP-four-machines", "--down", "2")
    assert "from 2.0513 to 1.0306 (-49.8 %)" in text
    assert "Newly used: class 2 on 4, class 3 on 3." in text
    assert as_json(capsys, "allocate", "3.LP-four-machines", "--down", "2,3")["down"] == ["2", "3"]


def test_everything_down_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, "allocate", "2.B", "--down", "1,2")
    assert (found["capacity"], found["load"]) == (0, None)
    assert "no machine that is up" in output(capsys, "allocate", "2.B", "--down", "1,2")


def test_zeros_are_quiet_and_like_machines_share_a_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = output(capsys, "allocate", "3.A:alpha1:1")
    assert "T.1 … 3" in text
    assert "0.0000" not in text
    assert "·" in text


@pytest.mark.parametrize(
    ("name", "suffix"), [("2.B", ".svg"), ("3.F:alpha:1", ".pdf"), ("3.G2:alpha1:1", ".png")]
)
def test_allocate_plot(
    name: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"picture{suffix}"
    output(capsys, "allocate", name, "--plot", str(path))
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(magic[suffix])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["allocate"], "Missing argument 'SYSTEM'"),
        (["allocate", "2.B", "--nothing"], "--nothing"),
        (["allocat"], "No such command 'allocat'"),
        (["allocate", "2.Z"], "no system '2.Z' in the catalogue"),
        (["allocate", "3.A"], "3.A has several cases, name one: 3.A:alpha1:1"),
        (["systems", "3.A"], "3.A has several cases"),
        (["allocate", "2.homogeneous-example"], "can be shown"),
        (["allocate", "2.B", "--method", "best"], "no method 'best'"),
        (["allocate", "2.B", "--down", "9"], "no machine '9'; there are 1, 2"),
        (["allocate", "2.C1", "--down", "9999"], "there are P, Q, R, S, P.1, P.2, P.3"),
        (["allocate", "2.B", "--plot", "picture.gif"], "expected a file that ends in .png"),
        (["allocate", "2.B", "--plot", "no/such/picture.png"], "there is no folder"),
        (["systems", "2.B", "--toml", "--json"], "choose one"),
        (["allocate", "x" * 300], "no system"),
        (["allocate", "2.B", "--down", "9" * 5000], "no machine"),
        (["systems", "--toml"], "--toml needs the name of a system"),
        (["systems", "2.homogeneous-example", "--toml"], "can be shown"),
        (["systems", "2.b"], "did you mean '2.B'"),
        (["demo", "--output", "/proc/nowhere"], "cannot be made"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in fails(capsys, *arguments)


def test_names_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(
        'name = "[bold]odd"\nclasses = ["[red]a", "[/b]"]\ngroups = ["[x]", "y"]\n'
        "arrivals = [1, 1]\nrates = [[1, 2], [3, 4]]\n"
    )
    text = output(capsys, "allocate", str(path), "--down", "[x]")
    for name in ("[bold]odd", "[red]a", "[/b]", "[x]"):
        assert name in text


def test_odd_names_in_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('classes = ["$x_{", "$$"]\narrivals = [1, 1]\nrates = [[1, 2], [3, 4]]\n')
    output(capsys, "allocate", str(path), "--plot", str(tmp_path / "odd.png"))
    assert (tmp_path / "odd.png").exists()


def test_pictures_are_the_same_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for picture in pictures:
        output(capsys, "allocate", "2.B", "--plot", str(picture))
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_a_terminal_that_cannot_show_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gridwright", "allocate", "2.B"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_is_cut_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "systems", "3.G2:alpha1:1")
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "taz.20" in text


def test_systems_lists_everything(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "systems")
    listed = as_json(capsys, "systems")
    assert [row["name"] for row in listed] == [entry.name for entry in entries()]
    assert all(entry.name in text for entry in entries())


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_systems_shows_each(entry: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.name in output(capsys, "systems", entry.name)
    shown = as_json(capsys, "systems", entry.name)
    assert shown["name"] == entry.name
    assert (shown["system"] is None) == (entry.parts is None)


def test_a_system_printed_as_a_file_is_that_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(output(capsys, "systems", "3.A:alpha1:5", "--toml"))
    ours, theirs = (as_json(capsys, "allocate", name) for name in (str(path), "3.A:alpha1:5"))
    assert ours == theirs


def test_printed_results_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 cells in A:2.1" in output(capsys, "systems", "2.B")
    assert len(as_json(capsys, "systems", "2.B")["results"]) == 3


@pytest.mark.slow
def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "capacity λ* 1.4862" in shown
    assert "Best: lpas_dg" in shown
    assert "The same system for real: MGST.HiHi:2 on 6 local processes" in shown
    assert "gridwright-demo/report.html" in shown
    text = (tmp_path / "gridwright-demo" / "report.html").read_text("utf-8")
    assert text.count("data:image/svg+xml;base64,") == 3, "the three runs are one picture"
    assert "<strong>What was found.</strong> fcfs cannot keep up; gcmu and lpas_dg can." in text
    assert re.search(r"lpas_dg: mean response 0\.\d+ ± 0\.\d+ time units lower than gcmu", text)
    assert re.search(r"On real processes .* % to .* % compared with the simulator", text)
    assert '<td class="number">grows</td>' in text, "no mean and no interval for what is unstable"
    assert not list((tmp_path / "gridwright-demo").glob("*.sqlite"))


def test_a_failure_that_is_not_the_users_has_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gridwright import catalogue

    monkeypatch.setattr(catalogue, "entries", lambda: 1 / 0)
    assert run(["systems"]) == 1
    err = capsys.readouterr().err
    assert err == "gridwright: ZeroDivisionError: division by zero (--debug shows where)\n"
    assert run(["systems", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough() -> None:
    command = f"set -o pipefail; {sys.executable} -m gridwright systems | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_shell_completion_knows_the_systems() -> None:
    from gridwright.cli.options import complete_system

    assert complete_system("3.B:alpha2") == ["3.B:alpha2:1", "3.B:alpha2:2"]
