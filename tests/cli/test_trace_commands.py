"""Whole-program tests of characterise and of replay on traces."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import System
from gridwright.cli.main import run
from gridwright.policies import find
from gridwright.simulation import KINDS, replicate
from gridwright.traces import JobTrace, write_swf

REPLAY = ["traces", "replay", "lab.swf"]


SAMPLES = Path(__file__).parents[1] / "traces" / "samples"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the hand-made traces, and with nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    for file in SAMPLES.iterdir():
        shutil.copy(file, tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


def said_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def test_characterise_writes_a_system(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(
        capsys, "traces", "characterise", "lab.swf", "--classes", "user",
        "--failures", "event_trace.tab", "-o", "lab.toml",
    )  # fmt: skip
    assert "10 rows: 7 kept, 3 left out" in out
    assert "1 × took no time (line 10)" in out
    assert "written: lab.toml" in out
    system = System.from_file("lab.toml")
    assert system.groups == ("window.lab", "door.lab")
    assert system.failures is not None
    seed = np.random.SeedSequence(1)
    options: dict[str, Any] = {"horizon": 1000.0, "seed": seed, "interpreted": True}
    assert replicate(system, find("gcmu"), **options).tasks > 5


@pytest.mark.slow
def test_the_day_of_a_simulated_trace_is_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A day and a half: the first twelve hours, which have fewer jobs, come twice."""
    hour, hours = 3600.0, 36
    factors = np.array([[0.5] * 12 + [1.5] * 12, [2.0] * 6 + [2 / 3] * 18])
    day = {"durations": [hour] * 24, "factors": factors.tolist()}
    true = System(arrivals=[0.25, 0.25], rates=[[1.0, 0.5], [0.5, 1.0]], profile=day)
    conditions: dict[str, Any] = {"horizon": hours * hour, "seed": np.random.SeedSequence(3)}
    log = replicate(true, find("mct"), **conditions, trace=True).trace
    came, began, ended = (log[log.kind == KINDS.index(k)] for k in ("arrival", "start", "finish"))
    assert (came.task == ended.task).all()
    columns = {"submit": came.time, "run_time": ended.time - began.time, "user": came.task_class}
    write_swf("day.swf", JobTrace({name: each.tolist() for name, each in columns.items()}))
    words = "traces", "characterise", "day.swf", "--classes", "user", "--machines", "2x1"
    assert "The mean day, from the start: " in said(capsys, *words, "--profile", "-o", "day.toml")
    found = System.from_file("day.toml")
    assert found.profile is not None
    order = [int(name.split()[-1]) for name in found.classes]  # the largest class is first
    wanted = 0.25 * factors[order]
    seen = hour * np.where(np.arange(24) < 12, 2, 1)
    rates = found.arrivals[:, None] * found.profile.rows(2)
    # the jobs of an hour are Poisson: one of 48 beyond 5 deviations once in 36,000 runs
    assert (np.abs(rates - wanted) * seen < 5 * np.sqrt(wanted * seen)).all()
    spread = np.sqrt((wanted / seen).sum(axis=1)) / 24
    assert (np.abs(found.arrival_rates - 0.25) < 5 * spread).all(), "not the mean of the window"
    swept = said_json(
        capsys, "sweep", "day.toml", "--policies", "mct", "--vary", "time", "--horizon", "86400",
        "--replications", "2",
    )  # fmt: skip
    assert len(swept["intervals"]) == 24
    assert swept["intervals"][0]["arrivals"] == pytest.approx(rates[:, 0].sum())


def test_characterise_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = said_json(capsys, "traces", "characterise", "lab.swf", "--from", "1m", "--to", "5m")
    assert (
        jobs["jobs"]["kept"] + sum(each["count"] for each in jobs["jobs"]["skipped"].values()) == 10
    )
    assert {each["name"] for each in jobs["classes"]} == {"group 1", "group 2"}
    fit = {"size", "mean", "cv", "median", "largest", "distribution", "distance"}
    for each in (jobs, *jobs["classes"]):
        assert set(each["interarrival"]) == set(each["work"]) == fit
    failures = said_json(capsys, "traces", "characterise", "event_trace.tab")
    assert failures["times_down"] == 3
    assert failures["mean_uptime"] == 880
    assert said_json(capsys, "traces", "characterise", "failures.csv")["nodes"] == 3
    rates = said_json(capsys, "traces", "characterise", "throughputs.csv", "-o", "gpu.toml")
    assert rates["machines"] == ["old", "new"]
    assert System.from_file("gpu.toml").shape == (3, 2)


@pytest.mark.parametrize("name", ["lab.swf", "grid.gwf", "workflow.gwf", "failures.csv"])
def test_characterise_shows_every_kind(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "0 left out" in said(capsys, "traces", "characterise", name)


def test_few_failures_are_told_in_good_english(capsys: pytest.CaptureFixture[str]) -> None:
    first, *rows = Path("event_trace.tab").read_text("utf-8").splitlines()
    Path("two.tab").write_text("\n".join([first, *rows[:3], rows[-1]]), "utf-8")
    out = said(capsys, "traces", "characterise", "two.tab")
    assert "2 nodes, 1 time down, the worst node 1 time; up 97.00 % of the time, mean time" in out
    assert "nan" not in out
    said(capsys, "traces", "characterise", "lab.swf", "--failures", "two.tab", "-o", "lab.toml")
    failing = System.from_file("lab.toml").failures
    assert failing is not None
    assert failing.mean_uptime == pytest.approx(1940)
    Path("one.tab").write_text("\n".join([first, rows[-1]]), "utf-8")
    out = said(capsys, "traces", "characterise", "one.tab")
    assert "1 node, 0 times down; up 100.00 % of the time\n" in out
    assert "nan" not in out


def test_a_window_of_dates_counts_from_the_start_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs = [(0, 0), *((at, 30) for at in range(3600, 36_000, 60))]
    rows = [f"{k} {at} -1 {run} 1{' -1' * 13}" for k, (at, run) in enumerate(jobs, 1)]
    log = "\n".join(["; UnixStartTime: 1700000000", *rows])  # 2023-11-14T22:13:20
    Path("log.swf").write_text(log, "utf-8")
    hour = ["--from", "2023-11-14T23:00", "--to", "2023-11-15T00:00"]
    for command in ("characterise", "replay"):
        found = said_json(capsys, "traces", command, "log.swf", "--machines", "2x1", *hour)
        assert found["jobs"]["kept"] == 47


def test_throughputs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 job types on 2 kinds of machines" in said(
        capsys, "traces", "characterise", "throughputs.csv"
    )


def test_replay_compares_policies(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(
        capsys, *REPLAY, "--policy", "fcfs,mct", "--machines", "1x1,1x3",
        "--failures", "event_trace.tab", "--csv", "jobs.csv", "--plot", "lab.svg",
    )  # fmt: skip
    assert "lab: 7 jobs in" in out
    assert "Failures:" in out
    heads = [line.split() for line in out.splitlines() if line.endswith(("mct", "p99.9"))]
    by_class = ["class", "jobs", "policy", "mean", "response", "p50", "p95", "p99", "p99.9"]
    assert heads == [["fcfs", "mct"], by_class]
    assert [line.split()[-2:] for line in out.splitlines() if line.startswith("unfinished")] == [
        ["0", "0"]
    ]
    assert out.endswith("\nwritten: jobs.csv, lab.svg\n")
    assert len(Path("jobs.csv").read_text("utf-8").splitlines()) == 15
    assert Path("lab.svg").stat().st_size > 1000


def test_replay_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    found = said_json(
        capsys, *REPLAY, "--policy", "gcmu", "--scale", "2", "--load", "0.5",
        "--classes", "run_time:2", "--failures", "failures.csv", "--failures-from", "2001-03-01",
        "--failures-scale", "0.01", "--nodes", "worst",
    )  # fmt: skip
    assert found["load"] == pytest.approx(0.5)
    assert found["policies"][0]["finished"] == 7
    assert found["policies"][0]["mean_waiting"] >= 0
    assert set(found["policies"][0]["machines"]) == set(found["machines"])
    assert all(0 <= share <= 1 for share in found["policies"][0]["machines"].values())
    assert found["failures"]["nodes"] == ["7.0", "7.1"]
    assert found["length"] == 522
    assert len(found["classes"]) == 2


def test_a_trace_becomes_an_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    said(
        capsys, *REPLAY, "--policy", "fcfs", "--save", "lab", "--machines", "2x100",
        "--failures", "event_trace.tab",
    )  # fmt: skip
    words = ["run", "lab/experiment.toml", "--time-unit", "0.004", "--no-expect"]
    found = said_json(capsys, *words)
    assert found["name"] == "lab"
    jobs = found["jobs"]
    assert jobs["submitted"] == jobs["finished"] + jobs["unfinished"] == 7


def test_a_trace_on_real_processes(capsys: pytest.CaptureFixture[str]) -> None:
    found = said_json(
        capsys, *REPLAY, "--policy", "gcmu", "--machines", "2x100", "--time-unit",
        "0.004", "--on", "local",
    )  # fmt: skip
    assert found["jobs"]["submitted"] == 7


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["traces", "characterise", "none.swf"], "none.swf: there is no such file"),
        (
            ["traces", "characterise", "lab.swf", "--classes", "colour"],
            "cannot form classes by 'colour'",
        ),
        (
            ["traces", "characterise", "event_trace.tab", "-o", "x.toml"],
            "alone does not make a system",
        ),
        (["traces", "characterise", "lab.swf", "-o", "no/x.toml"], "there is no folder no"),
        (["traces", "replay", "event_trace.tab"], "expected a trace of jobs"),
        ([*REPLAY, "--policy", "fcsf"], "did you mean 'fcfs'"),
        (
            [*REPLAY, "--policy", "mm"],
            "traces are replayed under push and pull",
        ),
        ([*REPLAY, "--from", "soon"], "'soon' must be a date such as"),
        ([*REPLAY, "--to", "0"], "an end after the start"),
        ([*REPLAY, "--failures", "lab.swf"], "expected a failure trace"),
        (
            [*REPLAY, "--nodes", "foo"],
            "--nodes needs a failure trace; add",
        ),
        (
            [*REPLAY, "--failures-from", "3d"],
            "--failures-from needs a failure trace",
        ),
        (
            [*REPLAY, "--failures-scale", "2"],
            "--failures-scale needs a failure trace",
        ),
        (
            [*REPLAY, "--scale", "1e308"],
            "scale is 1e+308; expected a number from",
        ),
        (
            [*REPLAY, "--from", "2023-11-14"],
            "22.2 h before the first submission",
        ),
        ([*REPLAY, "--machines", "nowhere"], "nowhere"),
        (
            [*REPLAY, "--machines", "3"],
            "3 is ambiguous: write 3x1 for 3 machines, or",
        ),
        ([*REPLAY, "--on", "local"], "one policy at a time"),
        ([*REPLAY, "--save", "x"], "one policy at a time"),
        (
            [*REPLAY, "--save", "x", "--plot", "x.png"],
            "--plot cannot be combined with --save",
        ),
        (["traces", "replay", "nothing.swf.gz"], "nothing.swf.gz: there is no such file"),
    ],
)
def test_wrong_input_is_told_in_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert told in shown.err
    assert shown.err.count("\n") == 1
