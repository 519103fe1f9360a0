"""The simulator's commands as users and scripts see them."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridwright.cli.main import run

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SHORT = ["--horizon", "50", "--replications", "3"]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


def test_simulate_json_has_the_contracts_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "simulate", "2.B", "--policy", "lpas", *SHORT, "--json"))
    for key in (
        "system", "policy", "horizon", "replications", "seed", "stable", "tasks", "seconds",
        "long_run_load", "needed_horizon",
        "mean_number", "mean_response", "classes", "machines", "messages", "information",
        "refusals",
    ):  # fmt: skip
        assert key in found
    assert (found["system"], found["policy"], found["seed"]) == ("2.B", "lpas", 1)
    assert set(found["mean_number"]) == {"mean", "low", "high"}
    in_class = {"name", "arrivals", "mean_response", "mean_waiting", "throughput"}
    in_class = {"name", "arrivals", "mean_response", "mean_waiting", "throughput"}
    assert set(found["classes"][0]) >= in_class
    assert set(found["machines"][0]) == {"name", "utilisation"}


def test_compare_json_has_the_contracts_keys(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "compare", "2.B", "--policies", "mct,lpas,kpb:k=1", *SHORT, "--json")
    found = json.loads(text)
    assert [result["policy"] for result in found["results"]] == ["mct", "lpas", "kpb:k=1"]
    assert len(found["differences"]) == 6
    assert set(found["differences"][0]) == {"first", "second", "metric", "difference", "winner"}


def test_the_same_seed_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def figures(*extra: str) -> Any:
        text = output(capsys, "simulate", "2.D", "--policy", "mct", *SHORT, "--json", *extra)
        return {key: value for key, value in json.loads(text).items() if key != "seconds"}

    assert figures("--threads", "1") == figures("--threads", "2")
    assert figures() != figures("--seed", "2")


@pytest.mark.slow
def test_progress_and_results_go_to_different_places(gridwright: Run) -> None:
    done = gridwright("simulate", "2.B", "--policy", "lpas", *SHORT, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["policy"] == "lpas"


def test_a_file_gets_a_line_of_progress_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["simulate", "2.B", "--policy", "lpas", *SHORT]
    assert run(words) == 0
    assert capsys.readouterr().err == "", "a minute has not passed"
    monkeypatch.setattr("gridwright.cli.output.PROGRESS_INTERVAL", 0.0)
    assert run(words) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "gridwright: lpas: 100 %"


def test_simulate_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "simulate", "2.B", "--policy", "lpas", *SHORT)
    assert "2.B under lpas: 3 replications of 50 time units, seed 1" in text
    assert "number in system" in text
    text = output(
        capsys, "simulate", "2.B", "--policy", "lpas", "--horizon", "50", "--replications", "1"
    )
    assert "One replication gives no interval" in text
    text = output(capsys, "simulate", "2.A", "--policy", "kpb:k=1", "--horizon", "3000")
    assert "unstable: grows by 1.6" in text
    text = output(capsys, "simulate", "3.A:alpha1:5", "--policy", "gcmu", *SHORT)
    assert "tasks lost to failures" in text


def test_compare_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(
        capsys,
        "compare",
        "2.B",
        "--policies",
        "mct, lpas",
        "--horizon",
        "2000",
        "--reference",
        "mct",
    )
    assert "better than mct" in text
    assert "time units lower than mct." in text
    assert "Best: lpas" in text
    assert "unstable" not in text


OVERLOADED = """
arrivals = [1, 1]
rates = [[1.2, 0.4], [0.4, 1.2]]
[failures]
mean_uptime = 8
mean_repair = 2
"""
"""At 83 % with every machine up, and at 104 % in the long run."""


def test_unstable_policies_are_not_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "compare", "2.A", "--policy", "kpb:k=1,met,lpas", "--horizon", "6000")
    assert "long-run load 98.0 %" in text
    assert "lower than" not in text
    assert "unstable: grows by 1.6" in " ".join(text.split())  # the table may be narrow
    assert "kpb:k=1 and met cannot keep up; lpas can." in text
    assert "Best: lpas (the only stable policy)" in text


def test_an_overloaded_system_has_no_best_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "overloaded.toml"
    file.write_text(OVERLOADED)
    words = ["compare", str(file), "--policies", "mct,fcfs", "--horizon", "200"]
    text = output(capsys, *words)
    assert "No policy is stable here." in text
    assert "unstable: the long-run load is 104.2 %" in " ".join(text.split())
    assert "Best" not in text
    assert "lower than" not in text
    found = json.loads(output(capsys, *words, "--json"))
    assert [each["stable"] for each in found["results"]] == [False, False]
    assert found["results"][0]["long_run_load"] == pytest.approx(1.0417, abs=1e-4)
    assert {each["winner"] for each in found["differences"]} == {None}
    assert (found["winner"], found["ranked"]) == (None, [])


def test_a_run_that_is_too_short_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "2.H", "--policies", "mct,lpas", "--horizon", "1000"]
    text = output(capsys, *words)
    line = (
        "mct and lpas are undecided and not ranked: a horizon of 2,800 time units would "
        "probably tell."
    )
    assert line in text
    assert "lower than" not in text
    assert "Best" not in text
    found = json.loads(output(capsys, *words, "--json"))
    assert [each["stable"] for each in found["results"]] == [None, None]
    assert [each["needed_horizon"] for each in found["results"]] == [2800, 2800]
    text = output(capsys, "simulate", "2.H", "--policy", "mct", "--horizon", "1000")
    assert "long-run load            99.1 %" in text
    joined = " ".join(text.split())  # the table's cell may be on two lines
    assert "undecided: a horizon of 2,800 time units would probably tell" in joined


def test_a_sweep_of_the_load_includes_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, table, picture = (tmp_path / name for name in ("a.toml", "a.csv", "a.svg"))
    file.write_text(OVERLOADED)
    words = ["sweep", str(file), "--policies", "mct", "--vary", "load", "--values", "0.5,1.02"]
    text = output(
        capsys, *words, "--horizon", "200", "--csv", str(table), "--plot", str(picture)
    )  # fmt: skip
    assert text.splitlines()[4].split() == ["1.02", "102.0", "%", "unstable"]
    rows = rows_of(table)
    assert [float(row["long_run_load"]) for row in rows] == pytest.approx([0.5, 1.02])
    assert rows[1]["stable"] == "False"
    drawn = picture.read_text("utf-8")
    assert "rings unstable" in drawn
    assert "dashed: long-run load 1" in drawn


@pytest.mark.slow
def test_what_cannot_be_told_is_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ["compare", "2.B", *SHORT, "--policies"]
    text = output(capsys, *short, "mct,lpas", "--replications", "1", "--horizon", "2000")
    assert "one replication does not tell whether that is noise" in text
    held = tmp_path / "held.py"
    held.write_text(
        "from gridwright import push\n@push\ndef held(task_class, view):\n    return -1\n"
    )
    text = output(capsys, *short, f"{held},mct")
    assert "held cannot keep up; mct can." in text
    assert "Best: mct (the only stable policy)" in text
    text = output(capsys, "simulate", "2.B", *SHORT, "--policy", str(held))
    assert "nan" not in text
    assert "A good policy can keep up: load 75.0 %." in text


def test_a_narrow_terminal_shows_every_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["compare", "2.B", "--policies", "mct,lpas", "--horizon", "20", "--within", "1,2"]
    assert run(words) == 0
    wide = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "40")
    assert run(words) == 0
    assert capsys.readouterr().out.split() == wide.split()


def test_where_tasks_wait(capsys: pytest.CaptureFixture[str]) -> None:
    assert "queueing" in output(capsys, "simulate", "2.B", "--policy", "mct", *SHORT)
    text = output(capsys, "simulate", "2.B", "--policy", "fcfs", *SHORT)
    assert "waiting" in text
    assert "queueing" not in text


def test_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "lpas_dg" in output(capsys, "policies")
    listed = json.loads(output(capsys, "policies", "--json"))
    (kpb,) = [row for row in listed if row["name"] == "kpb"]
    assert kpb["parameters"]["k"] == "2"
    assert kpb["kind"] == "push"


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, log, picture = tmp_path / "a.csv", tmp_path / "t.csv", tmp_path / "p.svg"
    said = output(
        capsys, "simulate", "3.A:alpha1:5", "--policy", "lpas_dg", "--horizon", "20",
        "--replications", "3", "--csv", str(table), "--trace", str(log), "--plot", str(picture),
    )  # fmt: skip
    assert said.endswith(f"\nwritten: {table}, {log}, {picture}\n")
    rows = rows_of(table)
    assert [row["replication"] for row in rows] == ["1", "2", "3"]
    events = rows_of(log)
    times = [float(event["time"]) for event in events]
    assert times == sorted(times)
    assert {event["event"] for event in events} >= {
        "arrival",
        "assignment",
        "start",
        "finish",
        "failure",
    }
    assert picture.read_bytes().startswith(b"<?xml")


def test_compare_draws_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "a.csv", tmp_path / "p.png"
    output(
        capsys, "compare", "2.B", "--policies", "mct,lpas", *SHORT,
        "--csv", str(table), "--plot", str(picture),
    )  # fmt: skip
    assert len(rows_of(table)) == 6
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "2.B"], "Missing option '--policy' / '--policies'. A policy by name"),
        (["compare", "2.B"], "'gridwright policies' lists them"),
        (
            ["compare", "2.B", "--policies", "mct", "lpas"],
            "(lpas); policies are separated by commas",
        ),
        (
            ["simulate", "2.B", "--policy", "mct,lpas"],
            "gridwright compare 2.B --policies mct,lpas",
        ),
        (["simulate", "2.B", "--policy", "lpaz"], "no policy 'lpaz'"),
        (["run", "MGST-1", "--policy", "cmu:preempt=true"], "use cmu:preempt=false"),
        (["simulate", "2.B", "--policy", "kpb:k=9"], "kpb: k is 9; expected from 1 to 2"),
        (["simulate", "2.B", "--policy", "mct", "--horizon", "0"], "horizon is 0"),
        (["simulate", "2.B", "--policy", "mct", "--horizon", "x"], "--horizon"),
        (["simulate", "2.B", "--policy", "mct", "--replications", "0"], "replications is 0"),
        (
            ["simulate", "2.B", "--policy", "mct", "--csv", "no/such/file"],
            "there is no folder no/such",
        ),
        (["simulate", "2.B", "--policy", "mct", "--plot", "x.gif"], "ends in .png"),
        (
            ["simulate", "2.B", "--policy", "mct", "--csv", "x.csv", "--trace", "x.csv"],
            "--csv x.csv and --trace x.csv are the same file",
        ),
        (
            ["simulate", "2.B", "--policy", "mct", "--delays", "before=1,before=2"],
            "--delays: before comes twice",
        ),
        (["allocate", "2.B", "--add", "--prices", "1=3,1"], "--prices is '1=3,1'; expected GROUP"),
        (["allocate", "2.B", "--add", "--prices", "1=3,1=2"], "--prices: 1 comes twice"),
        (["simulate", "2.Z", "--policy", "mct"], "no system '2.Z'"),
        (["compare", "2.B", "--policies", "mct"], "at least two policies"),
        (["compare", "2.B", "--policies", "mct,mct"], "named twice"),
        (
            ["compare", "2.B", "--policies", "mct,lpas", "--reference", "met", *SHORT],
            "not compared",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1, err
    assert message in lines[0]


@pytest.mark.parametrize("encoding", ["ascii", "latin1", "utf-8"])
def test_json_has_all_characters_whatever_the_encoding(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "names.toml"
    path.write_text(
        'arrivals = [1, 1]\nrates = [[3], [3]]\nclasses = ["caf\u00e9", "\u03bb"]\n', "utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gridwright", "allocate", str(path), "--json"],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout.decode("utf-8"))["classes"] == ["caf\u00e9", "\u03bb"]


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_ctrl_c_stops_at_once() -> None:
    command = [sys.executable, "-m", "gridwright", "simulate", "3.A:alpha2:1", "--policy", "gcmu"]
    process = subprocess.Popen(
        [*command, "--horizon", "1e7"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while cpu_seconds(process.pid) < 4:  # until it is well under way
            assert process.poll() is None
            time.sleep(0.05)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "stopped" in err
    assert time.monotonic() - began < 10  # a second or so; more only on a machine that is very busy


@pytest.mark.slow
def test_a_file_edited_elsewhere_still_runs(gridwright: Run, tmp_path: Path) -> None:
    text = (
        "from gridwright import push\n\n\n@push\ndef first(task_class, view):\n"
        '    """Send everything to the first machine."""\n    return 0\n\n\nNOTE = "{}"\n'
    )
    command = ("simulate", "2.B", "--policy", "./first.py", "--horizon", "5", "--json")
    said = []
    for note in ("one", "another"):
        (tmp_path / "first.py").write_text(text.format(note))
        done = gridwright(*command)
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout)["mean_number"])
    assert said[0] == said[1]
