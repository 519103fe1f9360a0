"""``availability`` through the command line."""

import json
import time
from pathlib import Path

import pytest

from gridwright.cli.main import run
from gridwright.grid.prediction import History

QUICK = ("--every", "0.02", "--for", "0.06")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["machines", "availability", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def one_week_ago(share: float) -> None:
    """Have it that the day a week ago was like that from beginning to end."""
    History().add(time.time() - 7 * 86400 + 86400, 2 * 86400, share)


def test_a_look_leaves_no_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = output(capsys, *QUICK)
    assert said.startswith("time      measured  predicted (weekly)\n")
    assert "history: none yet" in said
    assert "now " in said
    assert not (tmp_path / "home").exists()


def test_recorded_readings_are_the_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert "history: 0.0 hours in 1 week" in output(capsys, *QUICK, "--record")
    assert History().extent(96).hours * 3600 >= 0.06


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    one_week_ago(0.25)
    fixed = ("--mode", "fixed", "--share", "0.4", "--period", "1")
    found = json.loads(output(capsys, *QUICK, *fixed, "--c", "0.2", "--json"))
    assert list(found) == ["processors", "readings", "mean", "intervals", "history", "expected"]
    assert [each["predicted"] for each in found["readings"]] == [0.4] * 3
    measured = [each["measured"] for each in found["readings"]]
    assert found["mean"] == pytest.approx(sum(measured) / 3)
    expected = found["expected"]
    assert list(expected) == ["weekly", "recursive", "fixed"]
    weekly = list(expected["weekly"].values())
    assert weekly == pytest.approx([0.25] * len(weekly))
    assert expected["recursive"]["now"] == pytest.approx(0.2 * 0.25 + 0.8 * 0.5)
    assert expected["fixed"]["now"] == 0.4
    assert expected["fixed"].get("23:00", found["mean"]) == pytest.approx(found["mean"])
    assert found["history"]["hours"] == pytest.approx(48)


def test_plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one_week_ago(0.25)
    output(capsys, *QUICK, "--plot", str(tmp_path / "week.svg"))
    assert (tmp_path / "week.svg").read_text("utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mode", "weakly"], "no mode 'weakly'; did you mean 'weekly'"),
        (["--mode", "fixed"], "--mode fixed needs --share"),
        (["--intervals", "7"], "a divisor of 1440"),
        (["--weights", "a"], "--weights a: expected numbers"),
        (["--weights", "0,0"], "weights are all 0"),
        (["--every", "0"], "--every and --for: expected seconds"),
        (["--for", "nan"], "--every and --for: expected seconds"),
        (["--c", "2"], "c is 2.0; expected a number ≤ 1"),
        (["--share", "2"], "availability is 2.0"),
        (["--plot", "week.svg"], "no history yet"),
    ],
)
def test_wrong_options(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["machines", "availability", *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
