"""Calibration of real processes: the loop takes as long as it is long.

What is asserted of times holds on a busy computer too: margins are wide, and a bad moment may be
followed by a better one.
"""

import json
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from gridwright import InputError
from gridwright.cli.main import run
from gridwright.grid.executors.local import LocalExecutor
from gridwright.plots import draw_calibration
from gridwright.testbed import Calibrations, Measured, calibrate, read_machines
from gridwright.testbed.calibration import Point

pytestmark = pytest.mark.slow

SHORT = ("--repeats", "3", "--longest", "0.05")


def is_straight(each: Measured) -> bool:
    """Tell whether its times lie on a rising line, and its rates rise with the availability.

    How exact an imposed availability is, ``tests/grid/test_impose.py`` tests in a way that does not
    depend on what else the computer does.
    """
    return each.time_line.slope > 0 and each.time_line.r2 > 0.8 and each.rate_line.slope > 0


def test_the_loop_takes_as_long_as_it_is_long() -> None:
    for _ in range(5):
        found = calibrate(2, repeats=7, longest=0.05)
        if all(is_straight(each) for each in found.machines):
            return
    raise AssertionError([(each.time_line, each.rate_line) for each in found.machines])


@pytest.mark.parametrize("together", [False, True])
def test_two_processes(together: bool, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    found = calibrate(
        on=LocalExecutor(["a", "b"]),
        repeats=3,
        longest=0.05,
        together=together,
        progress=lambda machine, done: told.append((machine, done)),
    )
    assert [each.machine for each in found.machines] == ["a", "b"]
    for each in found.machines:
        points = each.lengths + each.availabilities
        assert [len(point.seconds) for point in points] == [3] * 10
        assert min(min(point.seconds) for point in points) > 0
    assert {machine for machine, _ in told} == ({"all"} if together else {"a", "b"})
    assert all(before <= after for (_, before), (_, after) in pairwise(told))
    assert told[-1][1] == pytest.approx(1.0)
    assert len(found.rows()) == 2 * 10 * 3
    draw_calibration(found, tmp_path / "c.svg")
    assert b"<svg" in (tmp_path / "c.svg").read_bytes()
    assert not [each for each in psutil.Process().children() if "worker.py" in each.cmdline()]


def exact(per_second: float, overhead: float = 0.0) -> Measured:
    """Make a machine that does just what it should."""
    lengths = tuple(Point(n, (overhead + n / per_second,) * 2) for n in (100, 200, 300))
    shares = tuple(Point(a, (0.1 / a,) * 2) for a in (0.5, 1.0))
    return Measured("m", lengths, shares, 10.0)


def test_lines_and_calibrations_of_known_points() -> None:
    each = exact(1000.0, overhead=0.01)
    assert each.time_line == pytest.approx((0.001, 0.01, 1.0))
    assert each.rate_line == pytest.approx((10.0, 0.0, 1.0))
    assert each.calibration.seconds == pytest.approx(0.31)
    told = json.loads(json.dumps(Calibrations((each,), 2).as_json()))
    assert told["machines"][0]["time"]["points"][0] == {"iterations": 100, "seconds": [0.11, 0.11]}
    assert told["machines"][0]["rate"]["imposed"] == 10.0
    wild = Measured("m", (Point(1, (9.0,)), Point(2, (1.0,)), Point(3, (0.5,))), (), 1.0)
    assert wild.time_line.at(3) < 0
    assert wild.calibration.seconds == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"machines": 0}, "machines is 0"),
        ({"machines": []}, "expected a number, or a list of names"),
        ({"machines": ["a", "a"]}, "machines has 'a' twice"),
        ({"repeats": 0}, "repeats is 0"),
        ({"longest": 0}, "longest is 0 seconds"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(**arguments)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, table, picture = (tmp_path / name for name in ("m.txt", "c.csv", "c.png"))
    files = ("--save", str(saved), "--csv", str(table), "--plot", str(picture))
    assert run(["machines", "calibrate", "--machines", "2", *SHORT, *files, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert found["repeats"] == 3
    for each, listed in zip(found["machines"], read_machines(saved), strict=True):
        assert [p["availability"] for p in each["rate"]["points"]] == [0.2, 0.4, 0.6, 0.8, 1.0]
        assert all(len(p["seconds"]) == 3 for p in each["time"]["points"])
        assert listed.address == each["machine"]
        assert listed.credential is None
        assert listed.calibration is not None
        assert listed.calibration.per_second == pytest.approx(each["per_second"], rel=1e-6)
        assert {"slope", "intercept", "r2"} <= each["time"].keys() & each["rate"].keys()
    assert len(table.read_text().splitlines()) == 1 + 2 * 10 * 3
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--machines", "0"], "machines is 0"),
        (["--repeats", "0"], "repeats is 0"),
        (["--machines", "2", "--on", "tcp://127.0.0.1:1"], "give one"),
        (["--plot", "c.txt"], "expected a file that ends in"),
        (["--save", "no/such/folder/list"], "there is no folder"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["machines", "calibrate", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
