"""Journals that are damaged end in one line, whichever command opens them."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from gridwright import InputError
from gridwright.cli.main import run
from gridwright.grid import Grid, Journal, export
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.testbed import Experiment, conduct

from .conftest import Command, written

pytestmark = pytest.mark.slow

Damage = Callable[[Path, Random], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The journals of a short run and of a grid."""
    folder = tmp_path_factory.mktemp("whole")
    paths = {name: folder / f"{name}.sqlite" for name in ("run", "grid")}
    experiment = Experiment.find(str(written(folder / "mine.toml", duration=3)))
    conduct(experiment, path=paths["run"]).close()
    executor = FakeExecutor(["a", "b"], lambda job, *_: 0.0 if job < 30 else 1000.0)
    with Grid("mct", on=executor, journal=paths["grid"]) as grid:
        for future in grid.submit_all(abs, range(60))[:30]:
            future.cancel()
        grid.close()  # the others stay in the journal
    return paths


def flipped(path: Path, rng: Random) -> None:
    contents = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 10, 200])):
        contents[rng.randrange(len(contents))] ^= 1 << rng.randrange(8)
    path.write_bytes(contents)


def truncated(path: Path, rng: Random) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[: rng.randrange(len(contents))])


def zeroed(path: Path, rng: Random) -> None:
    contents = bytearray(path.read_bytes())
    page = rng.randrange(len(contents) // 4096)
    contents[4096 * page : 4096 * (page + 1)] = bytes(4096)
    path.write_bytes(contents)


def with_garbage(path: Path, rng: Random) -> None:
    Path(f"{path}-wal").write_bytes(rng.randbytes(rng.choice([10, 32, 5000])))
    Path(f"{path}-lock").write_bytes(rng.randbytes(20))


def changed(*statements: str) -> Damage:
    def damage(path: Path, rng: Random) -> None:
        database = sqlite3.connect(path)
        with database:
            database.execute(rng.choice(statements))
        database.close()

    return damage


TIMES = ("submitted", "assigned", "free", "sent", "started", "ended", "heard", "settled")
typed = changed(
    *(f"UPDATE job SET {name} = 'yesterday' WHERE number = 7" for name in TIMES),
    "UPDATE job SET work = NULL WHERE number = 7",
    "UPDATE job SET work = 12",
    "UPDATE job SET stage = 'lost'",
    "UPDATE job SET attempt = 'x', lost = 'y'",
    "UPDATE job SET class = x'00ff'",
    "UPDATE event SET time = 'x' WHERE rowid % 5 = 0",
    "UPDATE event SET kind = 3, job = 'x'",
    "UPDATE event SET fields = CAST(x'ff' AS TEXT)",
    "UPDATE job SET submitted = 9e999",
)
described = changed(
    *(
        f"UPDATE about SET value = '{value}'{where}"
        for value in ("{", "null", "17", '"x"', "[[1]]", "[" * 100_000)
        for where in ("", " WHERE key IN ('machines', 'origin', 'kind', 'faults')")
    ),
    *(f"DELETE FROM about WHERE key = '{key}'" for key in ("kind", "experiment", "faults")),
    "UPDATE about SET value = '{}' WHERE key IN ('experiment', 'jobs')",
    "DROP TABLE about",
    "ALTER TABLE job RENAME COLUMN sent TO posted",
)


@pytest.mark.parametrize("name", ["run", "grid"])
@pytest.mark.parametrize(
    ("damage", "times"),
    [(flipped, 6), (truncated, 3), (zeroed, 4), (with_garbage, 2), (typed, 8), (described, 8)],
)
def test_a_damaged_journal_ends_in_one_line(
    name: str,
    damage: Damage,
    times: int,
    whole: dict[str, Path],
    tmp_path: Path,
    own_home: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng, runs = Random(f"{name} {times}1"), tmp_path / "home" / "runs"
    runs.mkdir(parents=True)
    for number in range(1, times + 1):
        path = runs / f"{number}.sqlite"
        shutil.copy(whole[name], path)
        damage(path, rng)
        commands = [["runs", "export", str(number), str(tmp_path / "out")], ["machines", "list"]]
        commands[1] += ["--run", str(path)]
        commands += [["runs", str(number), "--no-expect"]] if number % 4 == 0 else []
        for command in commands:
            status = run(command)
            said = capsys.readouterr().err
            assert status in (0, 2), (command, said)
            assert (said.count("\n"), "--debug" in said) == (int(status == 2), False), said
        tries = [opened(path) for _ in range(2)]
        assert "another grid" not in tries[1]
        assert bool(tries[0]) == bool(tries[1])
    assert run(["runs"]) == 0


@pytest.mark.parametrize("column", ["class", "machine"])
def test_a_job_with_an_unknown_name_is_named(
    column: str,
    whole: dict[str, Path],
    tmp_path: Path,
    own_home: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "run.sqlite"
    shutil.copy(whole["run"], path)
    finished = "number = (SELECT min(number) FROM job WHERE stage = 'finished')"
    changed(f"UPDATE job SET {column} = 'q' WHERE {finished}")(path, Random(1))
    assert run(["runs", "export", str(path), str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"is damaged: a job has the {column} 'q', which is not known" in " ".join(said.split())


def opened(path: Path) -> str:
    """Go on with a journal; return why that is not possible."""
    executor = FakeExecutor(["a", "b"], lambda *_: 1000.0)
    try:
        with Grid("mct", on=executor, journal=path) as grid:
            assert grid.status()["broken"] == ""
            grid.close()
        return ""
    except InputError as error:
        return str(error)


def test_a_copy_without_its_log_says_that_it_may_be_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, copy = tmp_path / "j.sqlite", tmp_path / "copy.sqlite"
    executor = FakeExecutor(["a"], lambda *_: 1000.0)
    with Grid("fcfs", on=executor, journal=path) as grid:
        grid.submit_all(abs, range(20))
        shutil.copy(path, copy)
        Journal(path).close()
        assert caplog.text == "", "a grid is writing it"
        Journal(copy).close()
        assert f"{copy} may be old" in caplog.text
        caplog.clear()
        shutil.copy(path, copy)
        shutil.copy(f"{path}-wal", f"{copy}-wal")
        for _ in range(2):
            journal = Journal(copy)
            assert len(list(journal.jobs())) == 20
            journal.close()
        grid.close()
    Journal(path).close()
    shutil.copy(path, copy)
    Journal(copy).close()
    assert caplog.text == "", "nothing is missing"


def test_a_running_grid_is_found_whatever_its_journal_is_called(
    tmp_path: Path, own_home: None, gw: Command
) -> None:
    path = tmp_path / "somewhere" / "of my own.db"
    executor = FakeExecutor(["left", "right"], lambda *_: 1000.0)
    with Grid("fcfs", on=executor, journal=path) as grid:
        assert [each["name"] for each in gw.json("machines", "list")["machines"]] == [
            "left",
            "right",
        ]
        gw("machines", "pause", "left")
        assert grid.status()["machines"]["left"]["paused"]
        other = FakeExecutor(["x"], lambda *_: 0.0)
        with Grid("fcfs", on=other, journal="another.sqlite"):
            assert "2 grids are running; choose one" in gw.fails("machines", "list")
    assert "no grid is running" in gw.fails("machines", "list")
    assert list((tmp_path / "home" / "running").iterdir()) == []


def test_a_list_of_jobs_that_makes_no_sense(
    whole: dict[str, Path], tmp_path: Path, own_home: None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "home" / "runs" / "1.sqlite"
    path.parent.mkdir(parents=True)
    shutil.copy(whole["run"], path)
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE about SET value = replace(value, 'time', 'tile') WHERE key='jobs'")
    database.close()
    assert run(["runs", "export", "1", str(tmp_path / "out")]) == 2
    assert "its list of jobs makes no sense" in " ".join(capsys.readouterr().err.split())


def test_options_and_needs_of_a_job_that_make_no_sense(
    whole: dict[str, Path], tmp_path: Path
) -> None:
    for number, words in enumerate(("options = '{\"colour\": 1}'", "needs = '[\"x\"]'")):
        path = tmp_path / f"{number}.sqlite"
        shutil.copy(whole["grid"], path)
        database = sqlite3.connect(path)
        with database:
            database.execute(f"UPDATE job SET {words} WHERE number IN (7, 47)")
        database.close()
        assert "is damaged: job 47 makes no sense" in opened(path), "it has not ended"
        with (
            closing(Journal(path, new=False)) as journal,
            pytest.raises(InputError, match="is damaged: job 7 makes no sense"),
        ):
            export(journal, tmp_path / "tables")
