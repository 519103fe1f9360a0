"""``reproduce`` and ``sweep`` as users and scripts see them."""

import csv
import json
from pathlib import Path

import pytest

from gridwright.cli.main import run
from gridwright.cli.sweep import values_of
from gridwright.reproduction import targets, testbed_runs

pytestmark = pytest.mark.slow

REPRODUCE = ["research", "reproduce"]
SWEEP = ["sweep", "2.B", "--policies", "mct,lpas", "--horizon", "50", "--replications", "2"]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_table_with_a_verdict_for_every_cell(capsys: pytest.CaptureFixture[str]) -> None:
    page = output(capsys, "reproduce", "2.6", "--quick", "--fresh")
    assert "5 replications of 1/20 of the published length" in page.lower()
    assert "Runs are 20 times shorter than the published ones" in page
    assert "(24.25, 24.29)" in page
    assert page.count("2.C2") >= 4
    assert "In all: " in page


def test_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    testbed_runs._known.cache_clear()
    found = json.loads(output(capsys, "reproduce", "LP", "K:7.6", "--json"))
    assert found["summary"]["differs"] == 0
    assert found["summary"]["not run"] == len(targets()["K:7.6"].cells)
    names = [target["name"] for target in found["targets"]]
    assert names == ["LP", "K:7.6"]
    cell = found["targets"][0]["cells"][0]
    assert {"system", "metric", "published", "ours", "stable", "verdict", "reason"} <= set(cell)
    assert set(cell["ours"]) == {"mean", "low", "high"}


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    page = output(capsys, "reproduce", "--list")
    for name in ("A:2.1", "A:Figure 3.4", "K:7.29", "W:V", "S:Figure 1", "A:text", "LP"):
        assert f"{name} " in page
    listed = json.loads(output(capsys, "reproduce", "--list", "--json"))
    assert sum(target["cells"] for target in listed) > 1438


def test_figures_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    shown = output(capsys, "reproduce", "Figure 3.1", "--quick", "--page", str(page))
    assert "Runs of 3.G1 are 1/2000 of the published length; half widths" in shown
    assert "figures/a-figure-3.1.svg" in page.read_text()
    assert "Runs of 3.G1 are 1/2000 of the published length; half widths" in page.read_text()
    assert "<svg" in (tmp_path / "figures" / "a-figure-3.1.svg").read_text()


def test_a_page_is_made_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, results = tmp_path / "page.md", str(tmp_path / "results.sqlite")
    parts = [*REPRODUCE, "--quick", "--page", str(page), "--results", results]
    output(capsys, *parts, "2.6")
    before = page.read_text()
    output(capsys, *parts, "LP", "--update")
    both = page.read_text()
    assert [line for line in both.splitlines() if line.startswith("## ")] == [
        "## Readings",
        "## A:2.6",
        "## LP",
    ]
    old, new = (text.partition("## A:2.6")[2].partition("## LP")[0] for text in (before, both))
    assert new.rstrip() == old.rstrip()
    output(capsys, *parts, "2.6", "--update", "--on", "tcp://127.0.0.1:9")  # all of it is kept
    assert page.read_text().partition("## A:2.6")[2] == both.partition("## A:2.6")[2]


def test_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "a.csv", tmp_path / "a.png"
    arguments = [*SWEEP, "--vary", "load", "--values", "0.3:0.9:0.3"]
    page = output(capsys, *arguments, "--csv", str(table), "--plot", str(picture))
    assert [line.split()[0] for line in page.splitlines()[2:6]] == ["load", "0.3", "0.6", "0.9"]
    assert page.splitlines()[-2:] == ["", f"written: {table}, {picture}"]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["load"], row["policy"]) for row in rows] == [
        (load, policy) for load in ("0.3", "0.6", "0.9") for policy in ("mct", "lpas")
    ]
    assert picture.stat().st_size > 10_000
    found = json.loads(output(capsys, *arguments, "--json"))
    assert [point["value"] for point in found["points"]] == [0.3, 0.6, 0.9]
    low = found["points"][0]["results"][0]["mean_number"]["low"]
    assert float(rows[0]["mean_number low"]) == low


def test_a_sweep_over_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, table, picture = (tmp_path / name for name in ("day.toml", "a.csv", "a.png"))
    day = "[profile]\ndurations = [8, 16]\nfactors = [2, 0.5]\n"
    file.write_text(f"arrivals = [1]\nrates = [[2.5, 1]]\n{day}")
    arguments = ["sweep", str(file), "--policies", "mct,lpas", "--vary", "time", "--horizon", "240"]
    arguments += ["--replications", "2", "--values", "0:24:8"]
    page = output(capsys, *arguments, "--csv", str(table), "--plot", str(picture))
    assert [line.split()[:3] for line in page.splitlines()[3:6]] == [
        ["0", "8", "2"],
        ["8", "16", "0.5"],
        ["16", "24", "0.5"],
    ]
    with table.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [(row["time"], row["policy"]) for row in rows[:3]] == [
        ("0.0", "mct"),
        ("0.0", "lpas"),
        ("8.0", "mct"),
    ]
    assert picture.stat().st_size > 10_000
    found = json.loads(output(capsys, *arguments, "--json"))
    assert [each["until"] for each in found["intervals"]] == [8, 16, 24]
    response = found["intervals"][1]["policies"][0]["mean_response"]
    assert float(rows[2]["mean_response"]) == response["mean"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", [1.0]),
        ("0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("1:2:0.4", [1.0, 1.4, 1.8]),
        ("", []),
        ("grouped, 2", ["grouped", 2.0]),
    ],
)
def test_values(text: str, values: list[float | str]) -> None:
    assert values_of(text) == values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*REPRODUCE, "2.7"], "no table '2.7'"),
        ([*REPRODUCE, "2.6", "--quick", "--full"], "exclude each other"),
        (
            [*REPRODUCE, "LP", "--page", "no/such/folder/page.md"],
            "there is no folder",
        ),
        ([*REPRODUCE, "LP", "--page", "."], "--page .: cannot be written there"),
        ([*REPRODUCE, "LP", "--plots", "/dev/null"], "expected a folder"),
        ([*REPRODUCE, "LP", "--update"], "--update needs --page"),
        ([*REPRODUCE, "LP", "--update", "--page", "no-such.md"], "no-such.json cannot be read"),
        ([*REPRODUCE, "LP", "--results", "/dev/null/x"], "results cannot be stored in"),
        (
            [*REPRODUCE, "2.6", "--fresh", "--on", "tcp://127.0.0.1:9"],
            "no Dask scheduler answers",
        ),
        (
            [*REPRODUCE, "2.6", "--fresh", "--on", "nonsense"],
            "expected tcp://HOST:PORT",
        ),
        (["sweep", "2.B", "--policies", "mct,mct", "--vary", "load", "--values", "1"], "twice"),
        (["sweep", "2.B", "--policies", "mct", "--vary", "load"], "add --values"),
        (["sweep", "2.B", "--policies", "mct", "--vary", "time"], "has no [profile]"),
        (["sweep", "2.B", "--policies", "mct", "--vary", "time", "--on", "gpu"], "this computer"),
        (
            ["sweep", "2.B", "--policies", "mct", "--vary", "time", "--values", "a"],
            "expected times",
        ),
        ([*SWEEP, "--vary", "load", "--values", "a,b"], "load is a; expected a number, 0 or more"),
        ([*SWEEP, "--vary", "load", "--values", "1:0:1"], "expected values"),
        ([*SWEEP, "--vary", "load", "--values", ""], "there is no value of load"),
        ([*SWEEP, "--vary", "lode", "--values", "1"], "did you mean 'load'"),
        ([*SWEEP, "--vary", "machines.Z", "--values", "1"], "has no group 'Z'"),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gridwright.experiments.cluster.PATIENCE", 0.5)
    status = run(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1, err
    assert message in lines[0]


def test_without_a_place_to_keep_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gridwright").mkdir()
    (tmp_path / "gridwright" / "results.sqlite").write_text("this is no database, not at all")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run([*REPRODUCE, "LP"]) == 0
    out, err = capsys.readouterr()
    assert "In all: " in out
    assert "continuing without" in err


def test_a_parameter_that_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    page = output(
        capsys, "sweep", "3.A:alpha1:1", "--policies", "lpas_dg", "--vary", "planner",
        "--values", "vertex,grouped", "--horizon", "20", "--replications", "2",
    )  # fmt: skip
    assert [line.split()[0] for line in page.splitlines()[2:]] == ["planner", "vertex", "grouped"]
