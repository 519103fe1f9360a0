"""Wrong system files: exit status 2 and one line that names the place, never a traceback."""

import os
from pathlib import Path

import pytest

from gridwright.cli.main import run

RIGHT = "arrivals = [5, 8]\nrates = [[8, 3], [4, 10]]\n"
CHAIN = "{ states = [1, 0.5], transition = [[0.9, 0.1], [0.3, 0.7]], step = 10 }"

WRONG: dict[str, tuple[str, str]] = {
    "missing key": ("arrivals = [5, 8]\n", "rates is missing"),
    "a key of dots": (RIGHT + "a" + ".a" * 300_000 + " = 1", "line 3: a key of more than 20 parts"),
    "a long key": (RIGHT + "a" * 5000 + " = 1", "aaa…"),
    "a long number": (RIGHT + "a = 0x" + "f" * 5000, "a number of 20000 bits; expected at most 64"),
    "empty": ("", "arrivals is missing; rates is missing"),
    "an experiment": ('system = "2.B"\npolicy = "mct"\n', "this looks like an experiment"),
    "machines": (RIGHT + 'machines = ["a", "b"]\n', "the columns of rates are named in groups"),
    "many mistakes": ("a = 1\nb = 1\nc = 1\nd = 1\n", "unknown key c (and 3 more)"),
    "unknown key": (RIGHT + "avalability = [1, 1]\n", "unknown key avalability; did you mean 'ava"),
    "unknown inner key": (
        RIGHT + "[failures]\nmean_uptime = 1\nmean_repair = 1\nmean_uptme = 2\n",
        "unknown key [failures] mean_uptme; did you mean 'mean_uptime'",
    ),
    "negative rate": ("arrivals = [5]\nrates = [[8, -3]]\n", "rates, row 1, column 2 is -3"),
    "negative arrivals": ("arrivals = [-5]\nrates = [[8]]\n", "arrivals, entry 1 is -5; expected"),
    "no arrivals": (
        "arrivals = [0]\nrates = [[8]]\n",
        "arrivals, entry 1 is 0; expected a number > 0",
    ),
    "nan": (
        "arrivals = [5]\nrates = [[nan]]\n",
        "rates, row 1, column 1 is nan; expected a finite",
    ),
    "inf": (
        "arrivals = [5]\nrates = [[inf]]\n",
        "rates, row 1, column 1 is inf; expected a finite",
    ),
    "infinite arrivals": ("arrivals = [inf]\nrates = [[8]]\n", "arrivals, entry 1 is inf"),
    "string": (
        'arrivals = [5]\nrates = [["8"]]\n',
        "rates, row 1, column 1 is '8'; expected a number",
    ),
    "boolean": ("arrivals = [5]\nrates = [[true]]\n", "rates, row 1, column 1 is True; expected"),
    "date": (
        "arrivals = [2009-01-01]\nrates = [[8]]\n",
        "arrivals, entry 1 is 2009-01-01; expected a number",
    ),
    "ragged": (
        "arrivals = [5, 8]\nrates = [[8, 3], [4]]\n",
        "rates: row 2 has 1 values where row 1",
    ),
    "not a matrix": ("arrivals = [5]\nrates = [8, 3]\n", "rates, entry 1 is 8; expected a list"),
    "not a list": ("arrivals = 5\nrates = [[8]]\n", "arrivals is 5; expected a list"),
    "too few arrivals": (
        "arrivals = [5]\nrates = [[8], [3]]\n",
        "arrivals has 1 entries; expected 2",
    ),
    "empty rates": ("arrivals = []\nrates = []\n", "rates is empty"),
    "empty rows": ("arrivals = [5]\nrates = [[]]\n", "rates is empty"),
    "class nobody can run": (
        'classes = ["a", "b"]\narrivals = [5, 8]\nrates = [[8, 3], [0, 0]]\n',
        "rates, row 2 is all 0: no machine can run class 'b'",
    ),
    "zero column": ("arrivals = [5]\nrates = [[8, 0]]\n", "rates, column 2 is all 0"),
    "counts mismatch": (RIGHT + "counts = [1]\n", "counts has 1 entries; expected 2"),
    "count zero": (RIGHT + "counts = [1, 0]\n", "counts, entry 2 is 0; expected a number ≥ 1"),
    "half a machine": (RIGHT + "counts = [1, 1.5]\n", "counts, entry 2 is 1.5; expected a whole"),
    "availability 0": (RIGHT + "availability = [1, 0]\n", "availability, entry 2 is 0; expected"),
    "availability 1.5": (
        RIGHT + "availability = [1.5, 1]\n",
        "availability, entry 1 is 1.5; expected",
    ),
    "availabilities mismatch": (
        RIGHT + "counts = [1, 3]\navailability = [1, 1, 1]\n",
        "availability has 3 entries; expected 2, one per column of rates, or 4, one per machine",
    ),
    "chain that leaks": (
        RIGHT + f"availability = [1, {CHAIN.replace('0.3', '0.2')}]\n",
        "availability, entry 2: transition, row 2 sums to 0.9; expected 1",
    ),
    "chain with an odd entry": (
        RIGHT + f"availability = [1, {CHAIN.replace('0.9', '-0.9')}]\n",
        "availability, entry 2, transition, row 1, column 1 is -0.9",
    ),
    "class names mismatch": (RIGHT + 'classes = ["a"]\n', "classes has 1 entries; expected 2"),
    "class named twice": (RIGHT + 'classes = ["a", "a"]\n', "classes has 'a' twice"),
    "group without a name": (RIGHT + 'groups = ["a", ""]\n', "groups, entry 2 is ''"),
    "name is a number": (RIGHT + "name = 3\n", "name is 3; expected a text"),
    "unknown distribution": (
        RIGHT + 'execution = "weibul"\n',
        "execution: no distribution 'weibul'",
    ),
    "distribution parameter": (
        RIGHT + 'execution = { kind = "hyperexponential", scv = 0.5 }\n',
        "execution: hyperexponential: scv is 0.5; expected a number ≥ 1",
    ),
    "one distribution too few": (
        RIGHT + 'interarrival = ["exponential"]\n',
        "interarrival has 1 entries; expected 2, one per class",
    ),
    "distribution in no file": (
        RIGHT + 'execution = "./mine.py:Mine"\n',
        "mine.py",
    ),
    "failures without repair": (
        RIGHT + "[failures]\nmean_uptime = 3\n",
        "[failures] mean_repair is mis",
    ),
    "negative uptime": (
        RIGHT + "[failures]\nmean_uptime = [3, -1]\nmean_repair = 1\n",
        "[failures] mean_uptime, entry 2 is -1; expected a number > 0",
    ),
    "uptimes mismatch": (
        RIGHT + "[failures]\nmean_uptime = [3, 3, 3]\nmean_repair = 1\n",
        "[failures] mean_uptime has 3 entries; expected 2",
    ),
    "failures is no table": (RIGHT + "failures = 3\n", "failures is 3; expected a table"),
    "arrivals at too few machines": (
        "arrivals = [[1], [2]]\nrates = [[8, 3], [4, 10]]\n",
        "arrivals has 1 columns; expected 2, one per machine",
    ),
    "assumed rates mismatch": (
        RIGHT + "[assumed]\nrates = [[1, 2]]\n",
        "[assumed] rates is 1×2; expected",
    ),
    "assumed nonsense": (
        RIGHT + "[assumed]\ninaccuracy = { rates = 1.5 }\n",
        "[assumed] [inaccuracy] rates is 1.5; expected a number ≤ 1",
    ),
    "too large": (
        "arrivals = [1e308]\nrates = [[1]]\n",
        "arrivals, entry 1: 1e+308 is out of range",
    ),
    "too small": ("arrivals = [1]\nrates = [[1e-300]]\n", "rates, row 1, column 1: 1e-300 is out"),
    "very many machines": (RIGHT + "counts = [1000000000, 1]\n", "counts, entry 1 is 1000000000"),
    "too many machines": (RIGHT + "counts = [90000, 90000]\n", "counts add up to 180,000 machines"),
    "a machine named twice": (
        RIGHT + 'groups = ["a", "a.1"]\ncounts = [2, 1]\n',
        "groups and counts give machines of which the name has 'a.1' twice",
    ),
    "a key like a union's tag": (RIGHT + "one = 1\n", "unknown key one"),
    "line break in a name": (RIGHT + 'classes = ["a\\nb", "c"]\n', "has control characters"),
    "number of 5000 digits": (f"arrivals = [{'9' * 5000}]\nrates = [[1]]\n", "not valid TOML"),
    "nested 3000 deep": (
        "arrivals = " + "[" * 3000 + "]" * 3000 + "\nrates = [[1]]\n",
        "not valid",
    ),
    "assumed rates of nothing": (
        RIGHT + "[assumed]\nrates = [[1, 2], [0, 0]]\n",
        "[assumed] rates, row 2 is all 0",
    ),
    "not TOML": ("arrivals = [5, 8\nrates = 3", "not valid TOML: "),
    "the same key twice": (RIGHT + "arrivals = [1, 2]\n", "not valid TOML: Cannot overwrite"),
}


def one_line(capsys: pytest.CaptureFixture[str], path: Path) -> str:
    """Run the command on a file and return the one line it must end with."""
    status = run(["allocate", str(path)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    assert err.startswith(f"gridwright: {path}: ")
    return err


@pytest.mark.parametrize("case", WRONG)
def test_wrong_file(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = WRONG[case]
    path = tmp_path / "system.toml"
    path.write_text(text)
    assert message in one_line(capsys, path)


def test_the_right_file_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "system.toml"
    path.write_text(RIGHT + f"availability = [1, {CHAIN}]\n")
    assert run(["allocate", str(path)]) == 0
    assert "capacity" in capsys.readouterr().out


def test_binary_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "system.toml"
    path.write_bytes(bytes(range(256)))
    assert "not a text file" in one_line(capsys, path)


def test_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "system.toml"
    path.mkdir()
    assert "this is a folder" in one_line(capsys, path)


def test_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no such file" in one_line(capsys, tmp_path / "system.toml")


def test_not_a_regular_file(capsys: pytest.CaptureFixture[str]) -> None:
    said = one_line(capsys, Path("/dev/zero"))
    assert "this is not a regular file; expected a system file" in said
    assert "TOML" not in said


EXPERIMENT = 'system = "MGST.HiHi:1"\npolicy = "fcfs"\nduration = 5\n'


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (EXPERIMENT + 'jobs = "pipe"\n', ["run", "file.toml"]),
        (EXPERIMENT + 'failures = "pipe"\n', ["run", "file.toml"]),
        (RIGHT + '[pmf]\nfile = "pipe"\n', ["simulate", "file.toml", "--policy", "mm"]),
        ("", ["simulate", "2.B", "--policy", "./pipe.py"]),
    ],
    ids=["jobs", "failures", "pmf", "policy"],
)
def test_nobody_waits_for_a_pipe(
    file: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pipe", "pipe.py"):
        os.mkfifo(name)
    Path("file.toml").write_text(file)
    assert run(words) == 2
    assert "is a pipe; expected a regular file" in capsys.readouterr().err


def test_a_byte_order_mark_is_no_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.toml"
    path.write_text(RIGHT, "utf-8-sig")
    assert run(["allocate", str(path)]) == 0
    capsys.readouterr()


def test_file_below_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be read" in one_line(capsys, tmp_path / "file" / "system.toml")
