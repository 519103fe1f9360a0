"""Chains on the command line: results, files, pictures, and mistakes."""

import csv
import json
from pathlib import Path

import pytest

from gridwright.cli.main import run

GRID = """
[[template]]
name = "scan"
rate = 0.05
latency = 25
customer = "bank"
times = [[4, 8], [9, 5]]

[[customer]]
name = "bank"
max_share = 0.5
window = 100
"""
SHORT = ["--horizon", "400", "--replications", "3"]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


@pytest.fixture
def grid(tmp_path: Path) -> str:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return str(path)


def test_simulate(grid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, log, picture = (tmp_path / name for name in ("a.csv", "b.csv", "c.png"))
    page = output(
        capsys, "simulate", grid, "--policy", "chain_mct", *SHORT,
        "--csv", str(table), "--trace", str(log), "--plot", str(picture),
    )  # fmt: skip
    for word in ("performance", "in progress", "customer", "bank", "least δ", "scan"):
        assert word in page
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 3
    done = [float(rows[0][key]) for key in ("ok", "late")]
    assert float(rows[0]["performance"]) == pytest.approx(done[0] / sum(done))
    events = list(csv.DictReader(log.read_text().splitlines()))
    assert {event["event"] for event in events} == {"arrival", "assignment", "start", "finish"}
    assert picture.stat().st_size > 10_000


def test_json(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "simulate", grid, "--policy", "chain_rr", *SHORT, "--json")
    found = json.loads(text)
    for key in ("ok", "late", "in_progress", "performance"):
        assert set(found[key]) == {"mean", "low", "high"}
    (bank,) = found["customers"]
    assert bank["name"] == "bank"
    assert set(bank) >= {"jobs", "failures", "least_margin", "mean_margin", "adequate"}


def test_sweep_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "nodes.png"
    page = output(
        capsys, "sweep", "Wisnesky:16", "--policies", "chain_rr,chain_mct", "--vary", "nodes",
        "--values", "4,16", "--replications", "3", "--plot", str(picture),
    )  # fmt: skip
    assert "performance" in page
    assert picture.stat().st_size > 10_000
    page = output(
        capsys, "compare", "Wisnesky:16", "--policies", "chain_rr,chain_mct", "--replications", "5"
    )
    assert "Best: chain_mct" in page


def test_a_system_that_draws_its_templates_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    page = output(capsys, "systems", "Wisnesky:16")
    assert "16 nodes; 20 templates of chains of applications, drawn anew" in page
    assert "inferred from the printed numbers" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["allocate", "Wisnesky:16"], "draws its templates anew for every replication"),
        (["simulate", "Wisnesky:16", "--policy", "lpas"], "lpas is a push policy"),
        (["simulate", "2.B", "--policy", "chain_rr"], "2.B has no chains of applications"),
        (
            ["sweep", "2.B", "--policies", "mct", "--vary", "nodes", "--values", "3"],
            "the system has 2 groups of machines; vary machines.GROUP",
        ),
        (
            ["sweep", "2.B", "--policies", "mct", "--vary", "perturbation.variation",
             "--values", "0.5"],
            "the system has no chains",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


def test_every_part_of_a_file_that_is_wrong_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for old, new, message in (
        ("times = [[4, 8], [9, 5]]", "times = []", "times is empty"),
        ("times = [[4, 8], [9, 5]]", "times = [[4, 8], [9]]", "row 2 has 1 values where row 1"),
        ("latency = 25", "latency = -1", "latency is -1; expected a number > 0"),
        ('customer = "bank"', 'customer = "shop"', "unknown customer 'shop'; there are bank"),
        ("window = 100", "windows = 100", "did you mean 'window'?"),
    ):
        path = tmp_path / "wrong.toml"
        path.write_text(GRID.replace(old, new))
        assert run(["simulate", str(path), "--policy", "chain_mct"]) == 2
        shown = capsys.readouterr()
        assert message in shown.err
        assert shown.err.count("\n") == 1
