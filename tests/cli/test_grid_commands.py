"""``gridwright grid``: a grid as a service, used from any shell."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gridwright import Grid, JobLostError
from gridwright.cli.main import run

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "gridwright"]
WAIT = 60


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does, in a process of its own."""
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=WAIT, check=False
    )


def called(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which saves half a second of start."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(list(words))
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def grid(*words: str) -> subprocess.CompletedProcess[str]:
    return called("grid", *words)


def said(*words: str) -> Any:
    """Return what a command says in JSON."""
    done = grid(words[0], "--json", *words[1:])
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@contextmanager
def serving(*words: str) -> Iterator[Any]:
    command = [*COMMAND, "grid", "serve", "--name", "farm", *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    with serving("--machines", "a,b") as found:
        yield found


SYSTEM = """
classes = ["short", "long"]
groups = ["one"]
arrivals = [1, 1]
rates = [[2], [0.1]]
batch = { queue_limit = 1 }
deadlines = { allowance = 9, discard = "batch" }
"""


def test_a_batch_policy_is_served_from_a_system_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "two.toml").write_text(SYSTEM)
    with serving("--policy", "mm", "--system", str(tmp_path / "two.toml")):
        about = ("submit", "--on", "farm", "--class")
        first = said(*about, "long", "--", "sleep", "1000")["job"]
        late = grid(*about, "short", "--deadline", "0.2", "--wait", "--", "echo", "late")
        assert "its deadline, 0.2 s after it was submitted, had passed" in late.stderr
        odd = grid(*about, "odd", "--", "true")
        assert "it is not known how long jobs of class 'odd' take" in " ".join(odd.stderr.split())
        assert "cancelled" in grid("cancel", "--on", "farm", str(first)).stdout
        fine = grid(*about, "short", "--deadline", "900", "--wait", "--", "echo", "fine")
        assert fine.stdout == "fine\n"
        assert list(said("status", "--on", "farm")["machines"]) == ["one"]


def test_a_night_in_the_shell(farm: Any, tmp_path: Path) -> None:
    on = ("--on", "farm")
    assert farm["name"] == "farm"
    first = said("submit", *on, "--key", "hello", "--", "echo", "it's me")
    assert first == {"job": 0, "key": "hello"}
    assert grid("results", *on, "hello").stdout == "it's me\n"
    again = started("grid", "submit", *on, "--key", "hello", "--wait", "--", "echo", "other")
    assert (again.returncode, again.stdout) == (0, "it's me\n")  # it was not run again
    command = ("sh", "-c", "echo out; echo err >&2; exit 3")
    wrong = started("grid", "submit", *on, "--wait", "--", *command)
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (3, "out\n", "err\n")
    failed = started("grid", "results", *on, "hello", "1")
    assert (failed.returncode, failed.stdout) == (1, "it's me\nout\n")
    assert "err\n" in failed.stderr
    assert "job 1 failed: its command ended with status 3" in failed.stderr
    (words,) = json.loads(started("grid", "results", *on, "1", "--json").stdout)["results"]
    why = "failed: its command ended with status 3"
    assert words == {"job": "1", "result": "out\n", "error": why, "status": 3, "stderr": "err\n"}
    options = ("--machine", "b", "--priority", "2", "--class", "mine", "--env", "WORD=x y")
    found = said(
        "submit", *on, *options, "--cwd", str(tmp_path), "--wait", "--", 'echo "$WORD $PWD"'
    )
    assert (found["stdout"], found["machine"], found["status"]) == (f"x y {tmp_path}\n", "b", 0)
    endless = said("submit", *on, "--", "sleep", "1000")["job"]
    assert grid("cancel", *on, str(endless), "typo").returncode == 2
    assert said("jobs", *on, "--stage", "cancelled")["jobs"] == []
    assert grid("cancel", *on, str(endless)).stdout == f"{endless} is cancelled\n"
    assert grid("cancel", *on, str(endless)).stdout == f"{endless} had ended\n"
    others = started("grid", "results", *on, str(endless), "hello")
    assert (others.returncode, others.stdout) == (1, "it's me\n")
    assert f"job {endless} was cancelled" in others.stderr
    jobs = {each["number"]: each for each in said("jobs", *on)["jobs"]}
    assert (jobs[0]["key"], jobs[0]["class"], jobs[endless]["stage"]) == (
        "hello",
        "echo",
        "cancelled",
    )
    assert (jobs[0]["lost"], jobs[0]["timed_out"], jobs[0]["deaths"]) == (0, 0, 0)
    assert "hello" in grid("jobs", *on).stdout
    state = said("status", *on)
    assert set(state["machines"]) == {"a", "b"}
    assert state["ended"] == {"finished": 2, "failed": 1, "cancelled": 1}
    assert "2 of 2 machines up" in grid("status", *on).stdout
    assert [each["name"] for each in said("machines", *on)["machines"]] == ["a", "b"]
    figures = said("statistics", *on, "--within", "900,0.001")
    assert figures["overall"]["finished"] == 2
    assert figures["classes"]["echo"]["within 900"] == 1 > figures["overall"]["within 0.001"]
    shares = [figures["overall"][name] for name in ("p50", "p95", "p99", "p99.9")]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(figures["overall"]["response"]), "of two, it is the middle"
    assert "p99.9" in grid("statistics", *on).stdout
    assert "within is 0; expected a positive" in grid("statistics", *on, "--within", "0").stderr
    listed = called("machines", "list", "--run", "farm")
    assert (listed.returncode, "up" in listed.stdout) == (0, True)
    assert "1 cancelled" in grid("top", *on).stdout


def test_a_folder_is_that_of_the_user_and_a_status_that_of_the_command(
    farm: Any, tmp_path: Path
) -> None:
    on = ("--on", "farm")
    (tmp_path / "sub").mkdir()
    there = subprocess.run(
        [*COMMAND, "grid", "submit", *on, "--cwd", "sub", "--wait", "--", "pwd"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert there.stdout == f"{tmp_path / 'sub'}\n", "not in a folder of the service"
    ended = grid("submit", *on, "--wait", "--", "exit 130")
    assert (ended.returncode, ended.stderr) == (130, ""), "nobody stopped it"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("status",), "no grid 'grid' is served on this computer"),
        (("status", "--on", "tcp://192.0.2.1:9"), "would send the token for all to read"),
        (("status", "--on", "ftp://x:9"), "expected tcp://HOST:PORT or tls://HOST:PORT"),
        (("status", "--on", "tls://127.0.0.1:9"), "an address needs the token"),
        (("serve", "--name", "a/b"), "expected a name without '/'"),
        (("serve", "--machines", "0"), "machines is 0"),
        (("serve", "--host", "0.0.0.0"), "0.0.0.0 can be reached by others"),
        (("serve", "--tls-cert", "x"), "TLS needs both a certificate and its key"),
        (("serve", "--port", "99999"), "expected 0 to 65535"),
        (("serve", "--timeout", "-1"), "timeout is -1"),
        (("serve", "--retries", "-1"), "retries is -1"),
        (("serve", "--slots", "many"), "--slots is 'many'; expected a number, or as big=8"),
        (("serve", "--slots", "0"), "slots is 0"),
        (("serve", "--slots", "a=2,a=3"), "--slots: a comes twice"),
        (("jobs", "--limit", "0"), "--limit"),
        (("serve", "--policy", "mm"), "mm is a batch policy, which must know how long jobs take"),
        (("serve", "--system", "2.B", "--machines", "a"), "both name machines; give one of them"),
        (("serve", "--system", "3.A:alpha1:1"), "machines; expected one in each column"),
        (("serve", "--machines", "a,b", "--slots", "c=2"), "slots: no machine 'c'"),
        (("export", "tables"), "no grid 'grid'; expected the name of a grid that is or was served"),
        (("jobs", "--stage", "lost"), "expected one of blocked, waiting"),
        (("submit", "--env", "WORD", "--", "true"), "expected NAME=VALUE"),
    ],
)
def test_mistakes(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    assert run(["grid", *words]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert "Traceback" not in said


def test_one_name_is_served_once(farm: Any) -> None:
    found = started("grid", "serve", "--name", "farm")
    assert found.returncode == 2
    assert "another grid is writing" in " ".join(found.stderr.split())


def test_the_history_of_a_grid_has_retries_time_outs_and_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    with Grid("fcfs", 2, journal=tmp_path / "home" / "grids" / "farm.sqlite") as farm:
        fine = farm.options(key="fine", priority=3).submit(pow, 2, 3)
        with pytest.raises(JobLostError):
            farm.options(retries=1).submit(os._exit, 7).result(WAIT)
        with pytest.raises(JobLostError):
            farm.options(timeout=0.3).submit(time.sleep, 1000).result(WAIT)
        status = farm.status()
    assert fine.result() == 8
    counts = {name: status[name] for name in ("deaths", "timed_out", "retried", "given_up")}
    assert counts == {"deaths": 2, "timed_out": 1, "retried": 1, "given_up": 2}
    found = said("export", "--on", "farm", str(tmp_path / "tables"))
    tables = {Path(name).name: read(Path(name)) for name in found["files"]}
    names = ("key", "class", "stage", "priority", "attempts", "timed out", "deaths")
    assert [tuple(row[name] for name in names) for row in tables["jobs.csv"]] == [
        ("fine", "pow", "finished", "3", "1", "0", "0"),
        ("", "_exit", "failed", "0", "2", "0", "2"),
        ("", "sleep", "failed", "0", "1", "1", "0"),
    ]
    assert "status 7" in tables["jobs.csv"][1]["causes"]
    kinds = Counter(row["event"] for row in tables["exceptions.csv"])
    assert kinds["failed"] == 2
    assert kinds["timed out"] == 1
    assert kinds["lost"] == 2
    assert tables["decisions.csv"]
    overall = tables["classes.csv"][-1]
    assert (overall["class"], overall["finished"], overall["deaths"]) == ("all", "1", "2")
    path = tmp_path / "home" / "grids" / "farm.sqlite"
    done = called("runs", "export", str(path), str(tmp_path / "more"))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == len(tables)
    assert read(tmp_path / "more" / "jobs.csv") == tables["jobs.csv"]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_slots_in_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    words = ("--name", "farm", "--machines", "big,small", "--slots", "big=2", "--json")
    with subprocess.Popen([*COMMAND, "grid", "serve", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        paused = called("machines", "pause", "big", "--run", "farm")
        assert (paused.returncode, paused.stdout) == (0, "big is paused\n")
        states = {
            each["name"]: each["state"] for each in said("machines", "--on", "farm")["machines"]
        }
        assert states == {"big/1": "paused", "big/2": "paused", "small": "up"}
        shown = grid("status", "--on", "farm").stdout
        assert "3 of 3 slots of 2 machines up" in shown
        assert "2 paused" in shown
        assert called("machines", "resume", "big", "--run", "farm").returncode == 0
        there = said("submit", "--on", "farm", "--machine", "big", "--wait", "--", "true")
        assert there["machine"] in ("big/1", "big/2")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
