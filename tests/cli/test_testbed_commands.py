"""Whole-program tests of run, runs, replay, export and machines: real processes, short runs."""

import csv
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gridwright import InputError, testbed
from gridwright.cli.main import run
from gridwright.testbed import Run

from .conftest import PATIENCE, Command, written

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_home")]


POLICY = '''
from gridwright import pull


@pull
def eager(machine, view):
    """Take of what waits the class that comes last."""
    for i in range(len(view.classes) - 1, -1, -1):
        if view.classes[i].waiting > 0 and view.rate[i, machine] > 0:
            return i
    return -1
'''


def jobs_of(number: int) -> Any:
    with Run.find(number) as found:
        return found.jobs.as_json(), found.faults


# what a run prints, keeps and exports


def test_a_published_experiment(gw: Command, tmp_path: Path) -> None:
    text = gw("run", "MGST-1", "--time-unit", 0.2, "--duration", 4, "--no-expect")
    assert "run 1: MGST-1 under lpas_dg, 4 time units of 0.2 s, done" in text
    assert "published testbed" in text
    assert "by cause, in time units: arrivals" in text
    assert [line.split()[0] for line in text.splitlines()[4:9]] == ["1", "2", "3", "4", "overall"]
    assert "nan" not in text

    listed = gw.json("runs")["runs"]
    assert len(listed) == 1
    assert listed[0]["run"] == 1
    assert (listed[0]["state"], listed[0]["policy"]) == ("done", "lpas_dg")
    assert (listed[0]["time_unit"], listed[0]["time_units"]) == (0.2, 4)
    table = gw("runs").splitlines()
    assert table[0].split() == [
        *("run", "state", "name", "system", "policy", "units", "finished", "response")
    ]
    assert table[1].split()[:5] == ["1", "done", "MGST-1", "MGST.HiHi:1", "lpas_dg"]

    picture = tmp_path / "run.png"
    assert (
        gw("runs", "show", 1, "--no-expect", "--plot", picture) == f"{text}\nwritten: {picture}\n"
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    check_tables(gw, tmp_path / "new" / "tables")

    again = gw.json("runs", "replay", 1, "--policy", "gcmu", "--no-expect")
    assert (again["run"], again["policy"]) == (2, "gcmu")
    assert jobs_of(1) == jobs_of(2)
    assert [row["run"] for row in gw.json("runs")["runs"]] == [1, 2]


def check_tables(gw: Command, folder: Path) -> None:
    names = gw("runs", "export", 1, folder).splitlines()
    assert sorted(names) == sorted(str(path) for path in folder.iterdir())
    originals = {f"MGST-1_{each}.txt" for each in ("classesStats", "jobs", "mue", "systemStats")}
    assert originals <= {path.name for path in folder.iterdir()}
    tables = {
        path.name: list(csv.reader(path.read_text().splitlines())) for path in folder.iterdir()
    }
    for name, rows in tables.items():
        assert rows, name
        if "system" not in name:
            assert {len(row) for row in rows} == {len(rows[0])}, name
    plan = jobs_of(1)[0]
    assert len(tables["jobs.csv"]) == 1 + len(plan["time"]) == len(tables["generations.csv"])
    assert [float(row[4]) for row in tables["generations.csv"][1:]] == plan["work"]
    assert len(tables["MGST-1_mue.txt"]) == 1 + 4 * 6
    assert [row[0] for row in tables["MGST-1_classesStats.txt"]] == ["class", *"1234", "all"]
    assert {row[1] for row in tables["failures.csv"][1:]} == {"up"}
    assert {float(row[0]) for row in tables["failures.csv"][1:]} == {0.0}
    assert gw.json("runs", "export", 1, folder)["files"] == names


def test_an_experiment_of_ones_own(gw: Command, mine: Path) -> None:
    text = gw("run", mine)
    assert "19 of 20 runs of this length" in text
    assert "published" not in text
    found = gw.json("runs", "show", 1, "--no-expect")
    assert gw.json("runs", 1, "--no-expect") == found
    assert list(found) == [
        *("run", "name", "system", "policy", "executor", "time_unit", "state", "until", "jobs"),
        *("mean_response", "mean_waiting", "mean_communication", "mean_execution"),
        *("mean_notification", "p50", "p95", "p99", "p99.9"),
        *("classes", "rates", "arrivals", "machines", "executed"),
        *("overhead_ratios", "job_lengths", "simulated", "gap", "expected", "published"),
    ]
    assert (found["name"], found["system"], found["policy"]) == ("mine", "two", "fcfs")
    jobs = found["jobs"]
    assert (
        jobs["submitted"] == len(jobs_of(1)[0]["time"]) == found["simulated"]["jobs"]["submitted"]
    )
    assert jobs["finished"] + jobs["failed"] + jobs["unfinished"] == jobs["submitted"]
    assert jobs["resubmitted"] >= jobs["lost"] - jobs["unfinished"]
    assert jobs["late_answers"] == jobs["timed_out"] == 0
    assert [each["name"] for each in found["classes"]] == ["red", "blue"]
    assert sum(each["jobs"]["finished"] for each in found["classes"]) == jobs["finished"]
    assert found["arrivals"]["desired"] == [3, 2]
    assert found["rates"]["desired"] == [[8, 4], [4, 8]]
    assert (found["expected"], found["published"]) == (None, {})


def test_nothing_may_happen_at_all(gw: Command, mine: Path) -> None:
    text = gw("run", mine, "--duration", 1e-6)
    assert "0 jobs arrived" in text
    assert "Too few jobs" in text
    assert "nan" not in text
    assert gw.json("runs")["runs"][0]["mean_response"] is None


def test_a_policy_of_ones_own(gw: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = written(tmp_path / "plans" / "mine.toml")
    policy = tmp_path / "eager.py"
    policy.write_text(POLICY)
    (tmp_path / "plans" / "eager.py").write_text("what stands beside the plan is not meant\n")
    text = gw("run", "plans/mine.toml", "--policy", "eager.py:eager", "--no-expect")
    assert "mine under eager" in text
    monkeypatch.chdir(tmp_path / "plans")
    assert gw("runs", "show", 1, "--no-expect") == text
    gw("runs", "replay", 1, "--no-expect")
    assert jobs_of(1) == jobs_of(2)
    policy.rename(tmp_path / "plans" / "eager.py")
    assert gw.fails("runs", "show", 1).endswith(
        "eager.py cannot be read: No such file or directory\n"
    )
    assert "eager" in gw("runs"), "a list does without it"
    written(mine).write_text(mine.read_text().replace('"fcfs"', '"eager.py"'))
    monkeypatch.chdir(tmp_path)
    assert "mine under eager" in gw("run", "plans/mine.toml", "--no-expect", "--duration", 1)


def test_one_machine_fails_more_often(gw: Command, tmp_path: Path, mine: Path) -> None:
    path = tmp_path / "faults.csv"
    options = ("--duration", 500, "--save-failures", path)
    gw("run", mine, *options)
    before = path.read_text().splitlines()
    gw("run", mine, *options, "--failures-of", "2=5/1")
    after = path.read_text().splitlines()
    assert [line for line in before if line[0] != "2"] == [line for line in after if line[0] != "2"]
    assert 60 < sum(line[0] == "2" for line in after) < 110
    wrong = gw.fails("run", mine, "--failures-of", "2=often")
    assert "expected MACHINE=UPTIME/REPAIR" in wrong
    assert "mean_repair of machine 2 is 0" in gw.fails("run", mine, "--failures-of", "2=5/0")
    assert "no machine 'x'" in gw.fails("run", mine, "--failures-of", "x=5/1")


def test_jobs_and_failures_may_be_kept_in_files(gw: Command, tmp_path: Path, mine: Path) -> None:
    lists = tmp_path / "jobs.csv", tmp_path / "faults.csv"
    said = gw("run", mine, "--seed", 5, "--save-jobs", lists[0], "--save-failures", lists[1])
    assert [line.split()[-1] for line in said.splitlines()] == ["jobs", "failures"]
    assert gw("runs") == "There are no runs yet; 'gridwright run MGST-1' makes one.\n"
    gw("run", mine, "--seed", 5, "--no-expect")
    more = 'jobs = "jobs.csv"\nfailures = "faults.csv"'
    gw("run", written(tmp_path / "same.toml", more=more), "--no-expect")
    gw("run", mine, "--no-expect")
    assert jobs_of(1) == jobs_of(2)
    assert jobs_of(1)[1], "there are failures"
    assert jobs_of(1) != jobs_of(3)
    counts = gw.json("run", mine, "--seed", 5, "--save-jobs", lists[0])
    assert counts == {"jobs": {"path": str(lists[0]), "count": len(jobs_of(1)[0]["time"])}}


# other processes


class Started:
    """The command in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "gridwright", *map(str, arguments)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something while it goes on."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self, how: signal.Signals) -> tuple[int, str]:
        """End it; return its status and what it has said on stderr."""
        workers: list[psutil.Process] = []

        def has_workers() -> bool:  # all machines may have failed
            workers[:] = psutil.Process(self.process.pid).children()
            return bool(workers)

        self.until(has_workers)
        for _ in range(2):  # whoever is impatient presses twice
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert out == ""
        assert psutil.wait_procs(workers, timeout=PATIENCE)[1] == [], "no process is left"
        return self.process.returncode, err


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def make(*arguments: object) -> Started:
        started.append(Started(*arguments))
        return started[-1]

    yield make
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def has_finished(number: int, jobs: int) -> bool:
    try:
        with Run.find(number) as found:
            return found.journal.count().get("finished", 0) >= jobs
    except InputError:
        return False  # not yet


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on(
    how: signal.Signals, gw: Command, start: Callable[..., Started], tmp_path: Path
) -> None:
    mine = written(tmp_path / "mine.toml", duration=20)
    process = start("run", mine, "--no-expect")
    process.until(lambda: has_finished(1, 5))
    assert gw.json("runs")["runs"][0]["state"] == "running"
    assert "run 1 is running" in gw.fails("run", "--resume", 1)
    status, err = process.end(how)
    if how == signal.SIGINT:
        assert status == 130
        assert err.startswith("gridwright: run 1 was stopped at ")
        assert err.endswith("of 20 time units; 'gridwright run --resume 1' continues it\n")
        assert err.count("\n") == 1
    else:
        assert (status, err) == (-signal.SIGKILL, "")
    row = gw.json("runs")["runs"][0]
    assert row["state"] == "stopped"
    assert 0 < row["time_units"] < 20
    assert "stopped" in gw("runs", "show", 1, "--no-expect")
    assert "--json" in gw.fails("run", "--resume", 1, "--seed", 3)

    found = gw.json("run", "--resume", 1, "--no-expect")
    assert found["state"] == "done"
    with Run.find(1) as gone_on:
        numbers = [kept.job.number for kept in gone_on.journal.jobs()]
        assert numbers == list(range(len(gone_on.jobs))), "every job has come, once"
        ends = Counter(entry.job for entry in gone_on.journal.events("finished"))
    assert set(ends.values()) == {1}, "none has finished twice"
    gw("runs", "export", 1, "tables")
    with Path("tables", "jobs.csv").open() as file:
        stamps = [row["submitted at"] for row in csv.DictReader(file)]
    assert stamps == sorted(stamps)
    jobs = found["jobs"]
    assert len(ends) == jobs["finished"]
    assert jobs["finished"] + jobs["unfinished"] == jobs["submitted"] == len(numbers)
    assert "run 1 is done" in gw.fails("run", "--resume", 1)


def test_stopped_when_it_was_done(gw: Command, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(testbed, "report", press)
        assert run(["run", str(mine), "--duration", "1"]) == 130
    err = gw.capsys.readouterr().err
    assert err == "gridwright: run 1 is done; 'gridwright runs show 1' shows it\n"
    assert "done" in gw("runs")


def test_stopped_before_it_began(gw: Command, start: Callable[..., Started], mine: Path) -> None:
    """Time stands still until all machines are up: where they never are, none has passed."""
    process = start("run", mine)
    process.until(lambda: has_finished(1, 0))
    process.process.kill()
    process.process.communicate()
    with Run.find(1) as found:
        began = found.until > 0
    if not began:
        assert "run 1 has not begun" in gw.fails("runs", "show", 1)
    assert gw.json("run", "--resume", 1, "--no-expect")["state"] == "done"


def test_machines_of_a_running_grid(
    gw: Command, start: Callable[..., Started], tmp_path: Path
) -> None:
    assert "no grid is running" in gw.fails("machines", "list")
    endless = written(tmp_path / "long.toml", duration=10_000, more='failures = "none"')
    first = start("run", endless)
    first.until(lambda: has_finished(1, 1))

    def state(name: str) -> str:
        rows = gw.json("machines", "list")["machines"]
        return {row["name"]: str(row["state"]) for row in rows}[name]

    assert (state("1"), state("2")) == ("up", "up")
    assert gw("machines", "ping", 1).startswith("1 answers in ")
    assert gw.json("machines", "ping", 1)["seconds"] > 0
    assert gw("machines", "pause", 1) == "1 is paused\n"
    assert state("1") == "paused"
    assert gw("machines", "drain", 1) == "1 is drained\n"
    rows = gw.json("machines", "list")["machines"]
    assert rows[0]["running"] is None
    assert gw("machines", "resume", 1) == "1 is resumed\n"
    assert state("1") == "up"
    assert gw.json("machines", "kill", 2)["did"] == "kill"
    assert state("2") == "killed"
    assert "machine 2 does not answer" in gw.fails("machines", "ping", 2, status=1)
    gw("machines", "resume", 2)
    first.until(lambda: run(["machines", "ping", "2"]) == 0)
    gw.capsys.readouterr()
    assert gw("machines", "list").split()[:3] == ["machine", "state", "since"]
    wrong = gw.fails("machines", "pause", 9)
    assert wrong == "gridwright: no machine '9'; there are 1, 2\n"
    assert "no run 7" in gw.fails("machines", "list", "--run", 7)

    second = start("run", endless)
    second.until(lambda: has_finished(2, 1))
    asked = gw.fails("machines", "ping", 1)
    assert asked == "gridwright: 2 grids are running; choose one: --run 1 or --run 2\n"
    assert gw("machines", "ping", 1, "--run", 2).startswith("1 answers")
    assert second.end(signal.SIGINT)[0] == 130
    assert "run 2 is not running" in gw.fails("machines", "list", "--run", 2)
    assert gw("machines", "list")
    assert first.end(signal.SIGINT)[0] == 130


# what is wrong
