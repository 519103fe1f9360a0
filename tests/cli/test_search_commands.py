"""``optimum``, ``contest`` and ``adversary`` through the command line."""

import json
from pathlib import Path

import pytest

from gridwright import System, simulate
from gridwright.cli.main import run
from gridwright.cli.output import with_verdict
from gridwright.statistics import Stability

CONTEST, ADVERSARY = ["research", "contest"], ["research", "adversary"]


TWO = 'arrivals = [4.0, 6.0]\nrates = [[8.0, 3.0], [4.0, 10.0]]\nname = "two"\n'


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.toml"
    path.write_text(TWO)
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


SHORT = ("--horizon", "300", "--replications", "3")
LONG = ("--horizon", "10000", "--replications", "10")
"""Long enough for a gap of 1.4 % with an error of 0.2 %."""


def test_optimum_json_has_the_contracts_keys(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "optimum", two, "--policies", "pas,mct", *LONG, "--json"))
    assert {"system", "preemptive", "pull", "policies"} <= found.keys()
    assert found["preemptive"]["mean_number"] < found["pull"]["mean_number"]
    assert found["pull"]["error"] < 1e-4
    pas, mct = found["policies"]
    assert pas["policy"] == "pas"
    assert pas["mean_number"]["mean"] == pytest.approx(
        (1 + pas["gap"]) * found["pull"]["mean_number"]
    )
    assert 0 < pas["gap"] < mct["gap"]


def test_optimum_in_words(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = output(capsys, "optimum", two, "--policies", "pas", *SHORT)
    assert "any policy at all" in said
    assert "a task ends on the machine it starts on" in said
    assert "how far they are above the least for pull and push" in said
    large = output(capsys, "optimum", "2.D", "--policies", "pas", *SHORT)
    assert "too large" in large
    assert "how far they are above the least for the bound" in large


def test_a_contest_shows_what_it_ranks_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dear.toml"
    file.write_text("arrivals = [0.5]\nrates = [[1.0]]\ncosts = [100]\n", "utf-8")
    said = output(capsys, "contest", str(file), "--policies", "mct,met", *SHORT)
    assert "mean cost per time unit" in said
    cells = next(line for line in said.splitlines() if line.startswith("dear")).split()
    assert 50 < float(cells[2]) < 200, said  # exactly 100


def test_a_contest_of_batches_says_which_are_unstable() -> None:
    result = simulate("Smith", "mm", 300, 2)
    assert result.is_ranked  # by the tasks on time, whatever the number in system does
    assert with_verdict(result, "on_time") == str(result.figure("on_time"))
    result.__dict__["stability"] = Stability(False, 1.0)
    assert with_verdict(result, "mean_number") == "unstable"
    assert with_verdict(result, "on_time") == str(result.figure("on_time"))


def test_contest(two: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "c.csv", tmp_path / "c.svg"
    files = ("--csv", str(table), "--plot", str(picture))
    said = output(capsys, "contest", two, "2.F*", "--policies", "pas,mct", *SHORT, *files)
    assert "2.F1" in said
    assert "pas against the best of the others: better on" in said
    assert len(table.read_text().splitlines()) == 4
    assert b"<svg" in picture.read_bytes()
    drawn = ("--policies", "pas,lpas", "--random", "3", "--tasks", "500", "--replications", "2")
    found = json.loads(output(capsys, "contest", *drawn, "--json"))
    assert [row["system"] for row in found["systems"]] == [f"random 1:{k}" for k in (1, 2, 3)]
    assert found["standings"][0]["policy"] == "pas"


@pytest.mark.slow
def test_adversary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, picture = tmp_path / "worst.toml", tmp_path / "worst.png"
    files = ("--save", str(saved), "--plot", str(picture))
    search = ("--policy", "mct", "--against", "lpas", "--steps", "8", "--load", "0.85")
    said = output(capsys, "adversary", *search, *files)
    assert "Ratio" in said
    assert System.from_file(saved).shape == (2, 3)
    assert picture.stat().st_size > 1000
    found = json.loads(output(capsys, "adversary", *search, "--save", str(saved), "--json"))
    assert f"Ratio {found['ratio']:.3f}" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["research", "optimum", "3.A:alpha1:2"], "machines that fail"),
        ([*CONTEST, "--policies", "pas,mct"], "a contest needs at least one system"),
        ([*CONTEST, "9.*", "--policies", "pas,mct"], "no system matches '9.*'"),
        ([*CONTEST, "2.B", "--policies", "pas"], "at least two policies"),
        (
            [*CONTEST, "--random", "1", "--horizon", "0", "--policies", "pas,mct"],
            "horizon is 0",
        ),
        ([*ADVERSARY, "--policy", "pas", "--against", ","], "there is no policy to compare with"),
        (
            [*ADVERSARY, "--policy", "pas", "--against", "mct", "--load", "x"],
            "--load x",
        ),
        (
            [*ADVERSARY, "--policy", "mm", "--against", "mct"],
            "they have different figures",
        ),
        (
            [*ADVERSARY, "--policy", "mm", "--against", "msd"],
            "mm is a batch policy; the search",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_allocate_shows_prices(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = output(capsys, "allocate", two)
    assert "Efficiency: the share of a machine's worth that a class earns there" in said
    assert "Worth of a task: class 1: " in said
    assert "One more machine would add to the capacity: " in said
    found = json.loads(output(capsys, "allocate", two, "--json"))
    assert len(found["efficiencies"]) == 2
    assert set(found["one_more_adds"]) == {"1", "2"}
    assert found["loads"] == pytest.approx([found["load"]] * 2)


def test_allocate_leaves_out_a_class_that_no_machine_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "st.toml"
    path.write_text("arrivals = [1, 1]\nrates = [[2, 2], [0, 1]]")
    assert run(["allocate", str(path), "--down", "2"]) == 0
    out = capsys.readouterr().out
    assert "cannot run on any machine that is up, so no policy can keep up with its tasks." in out
    assert "100.0 % if like 1. One like 2 would run what is left out." in out
    assert "With 2 down the capacity of the classes that can run is 2.0000" in out
    assert run(["allocate", str(path), "--down", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["one_more_adds"]["2"] is None


@pytest.mark.slow
def test_gaps_in_words_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["research", "gaps", "--policies", "mct", "--random", "2", "--tasks", "500"]
    command += ["--replications", "2", "--seed", "35"]
    said = output(capsys, *command)
    assert "2 systems, 2 of them solved" in said
    assert "mean gap" in said
    found = json.loads(output(capsys, *command, "--json"))
    assert [each["policy"] for each in found["policies"]] == ["mct"]
    assert len(found["systems"]) == 2
    assert run([*command[:4], "--random", "0"]) == 2
