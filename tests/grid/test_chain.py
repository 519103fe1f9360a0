"""Chain policies on a grid: the simulator's decisions, and chains of your own functions."""

import inspect
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from gridwright import InputError, JobLostError, System, simulate
from gridwright.grid import Book, Grid, Send, Stage, connect, here, service
from gridwright.grid.chain import chains_of
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.grid.job import Options
from gridwright.policies import find
from gridwright.simulation import KINDS

from .conftest import WAIT, events, journalled

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this

INF = float("inf")
TWO: list[dict[str, Any]] = [
    {"name": "a", "rate": 0.09, "times": [[3, 5, 7], [6, 2, INF], [4, 4, 3]], "latency": 30},
    {"name": "b", "rate": 0.06, "times": [[2, 9, 4]], "latency": 8},
    {"name": "c", "rate": 0.05, "times": [[5, 5, 5], [3, 1, 2]], "latency": 20},
]
FAILING = {"mean_uptime": 60, "mean_repair": 12}
LENGTH = 400.0
MOST = 10
"""More stages than a chain has."""


@pytest.mark.parametrize(
    "policy", ["chain_fcfs", "chain_mct", "chain_rr", "chain_rr:by=application"]
)
@pytest.mark.parametrize("failures", [None, FAILING])
def test_the_two_worlds_are_one(policy: str, failures: Any) -> None:
    """Driven by the ends and arrivals of a simulation, the book sends the same stages on."""
    system = System(templates=TWO, failures=failures)
    run = simulate(system, policy, LENGTH, 1, seed=3, trace=True).replications[0]
    known = chains_of(find(policy), {"templates": TWO}, system.machines)
    assert known is not None
    book = Book(find(policy), known.rates(), np.ones(6), times=known)
    at_work: dict[int, Send] = {}
    stage: Counter[int] = Counter()
    sent: list[tuple[float, int, int]] = []
    started, assigned = [], []
    now, said = 0.0, list[Any]()

    def end_tick() -> None:
        for word in [*said, *book.send_ahead(now)]:
            if isinstance(word, Send):
                at_work[word.machine] = word
                sent.append((now, word.job // MOST, word.machine))
        said.clear()

    for e in run.trace:
        kind, task, machine = KINDS[e.kind], int(e.task), int(e.machine)
        if e.time != now:
            end_tick()
            now = float(e.time)
        match kind:
            case "arrival":
                first = int(known.shown[e.task_class].first)
                for k in range(int(known.shown[e.task_class].applications)):
                    needs = {task * MOST + k - 1: Stage.waiting} if k else {}
                    options = Options(chain=task * MOST if k else -1, stage=k + 1)
                    said += book.submit(now, task * MOST + k, first + k, options, needs=needs)
            case "finish":
                word = at_work.pop(machine)
                assert word.job == task * MOST + stage[task]
                stage[task] += 1
                answer = book.finished(now, word.job, word.attempt)
                assert answer is not None
                said += answer
            case "failure":
                at_work.pop(machine, None)
                said += book.machine_down(now, machine)
            case "repair":
                said += book.machine_up(now, machine)
            case "start":
                started.append((now, task, machine))
            case "assignment":
                assigned.append((now, int(e.task_class), machine))
    if now < LENGTH:  # nothing begins at the end
        end_tick()
    assert sent == started
    assert len(sent) > 100
    chosen = [(d.time, known.where[d.asked][0], d.choice) for d in book.decisions if d.choice >= 0]
    assert chosen == assigned
    assert bool(failures) == any(job.lost for job in book.jobs.values())
    assert book.refusals == run.refusals


SCAN = {"name": "scan", "rate": 0.1, "times": [[0.1, 9], [9, 0.1], [0.1, 9]], "latency": 600}
PLAIN = {"name": "plain", "rate": 0.1, "times": [[0.1, 0.1]] * 3, "latency": 600, "customer": "us"}


def open_grid(path: Path, policy: str, template: Any) -> Grid:
    customers = [{"name": "us"}] if "customer" in template else []
    chains = {"templates": [template], "customers": customers}
    return Grid(policy, ["one", "two"], journal=path, chains=chains, retries=1)


def note_here(before: Any) -> list[str | None]:
    """Return the machines of this stage and of those before it."""
    return [*before, here()]


def dies_once(path: Path) -> str:
    if path.exists():
        return "alive"
    path.touch()
    os._exit(7)


@pytest.mark.usefixtures("no_process_stays_behind")
def test_chains_of_your_own_functions(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with open_grid(path, "chain_mct", SCAN) as grid:
        found = [grid.submit_chain([note_here] * 3, [k]) for k in range(5)]
        for k, each in enumerate(found):
            assert each.result(WAIT) == [k, "one", "two", "one"], "each stage where it is fastest"
        wrong = grid.submit_chain([str, int, note_here], "x")
        with pytest.raises(ValueError, match="invalid literal") as caught:
            wrong.result(WAIT)
        failed = wrong.number - 1
        assert caught.value.__notes__ == [f"stage 2 of its chain failed: job {failed}"]
        lost = grid.submit_chain([os._exit, str, str], 7)
        with pytest.raises(JobLostError, match=r"\(stage 1 of its chain\) was given up after 2"):
            lost.result(WAIT)
        again = grid.submit_chain([dies_once, str.upper, list], tmp_path / "died")
        assert again.result(WAIT) == list("ALIVE"), "it is tried again"
        with pytest.raises(ValueError, match="invalid literal"):
            grid.result(wrong.number)
        status = grid.status()
    assert status["ended"] == {"finished": 5 * 3 + 1 + 3, "failed": 2 + 3, "cancelled": 0}
    assert status["deadlines"] == {"on time": 6, "late": 0, "discarded": 0}
    kept = journalled(path)
    assert kept[wrong.number].error.startswith(f"stage 2 of its chain failed: job {failed}\n")
    assert [e.detail for e in events(path) if e.job == wrong.number][-1] == f"job {failed}"


def test_chains_under_a_central_policy(tmp_path: Path) -> None:
    with Grid("fcfs", ["one"], journal=tmp_path / "j.sqlite") as grid:
        assert grid.submit_chain([pow, str, int], 2, 5).result(WAIT) == 32
        keyed = grid.options(key="power")
        one = keyed.submit_chain([pow, str], 3, 3)
        assert one.result(WAIT) == "27"
        assert keyed.submit_chain([pow, str], 3, 3).number == one.number
        assert grid.result("power.1") == 27


@pytest.mark.usefixtures("no_process_stays_behind")
def test_chains_of_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    about: Any = {"journal": tmp_path / "j.sqlite", "chains": {"templates": [SCAN]}}
    farm = service.ServedGrid("chain_mct", ["one", "two"], **about)
    served = service.serve(farm, "farm")
    try:
        with connect("farm") as grid:
            keyed = grid.options(key="scan it")
            found = keyed.submit_chain([note_here] * 3, ["k"])
            assert found.result(WAIT) == ["k", "one", "two", "one"], "each where it is fastest"
            assert keyed.submit_chain([note_here] * 3, ["k"]).number == found.number
            wrong = grid.submit_chain([str, int, note_here], "x")
            with pytest.raises(ValueError, match="invalid literal") as caught:
                wrong.result(WAIT)
            assert caught.value.__notes__ == [
                f"stage 2 of its chain failed: job {wrong.number - 1}"
            ]
            with pytest.raises(InputError, match="'scan' has 3 stages; 2 functions were given"):
                grid.submit_chain([abs, str], 1)
            with pytest.raises(InputError, match="a chain policy; use submit_chain"):
                grid.submit(abs, 1)
    finally:
        served.close()
        farm.close()
    kept = journalled(tmp_path / "j.sqlite")
    assert [kept[k].job.options.stage for k in range(3)] == [1, 2, 3]
    assert [kept[k].job.options.deadline for k in range(3)] == [None, None, 600.0]


KILLED = f"""
import os, sys, time
from pathlib import Path
from typing import Any
from gridwright.grid import Grid

{inspect.getsource(open_grid)}
folder = Path(sys.argv[1])

def first(number):
    with (folder / "ran").open("a") as file:
        file.write("first\\n")
    return number + 1

def second(number):
    (folder / "begun").touch()
    while not (folder / "gate").exists():
        time.sleep(0.01)
    return number * 2

grid = open_grid(folder / "j.sqlite", "chain_rr", {PLAIN})
last = grid.submit_chain([first, second, str], 20)
while not (folder / "begun").exists():
    time.sleep(0.01)
print(last.number, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("no_process_stays_behind")
def test_a_killed_grid_loses_no_stage(tmp_path: Path) -> None:
    path, pipe = tmp_path / "j.sqlite", subprocess.PIPE
    about: Any = {"stdin": pipe, "stdout": pipe, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], **about) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "2"
        os.killpg(other.pid, signal.SIGKILL)
    stages = [kept.job.stage for kept in journalled(path).values()]
    assert stages == ["finished", "sent", "blocked"]
    (tmp_path / "gate").touch()
    with open_grid(path, "chain_rr", PLAIN) as grid:
        assert set(grid.unfinished) == {1, 2}
        assert grid.unfinished[2].result(WAIT) == "42"
    assert (tmp_path / "ran").read_text() == "first\n", "what had ended is not run again"
    ends = Counter(e.job for e in events(path) if e.kind in ("finished", "failed"))
    assert ends == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize(
    ("policy", "about", "words"),
    [
        ("chain_mct", {}, "chain_mct is a chain policy, which must know the chains; give chains="),
        ("chain_mct", {"chains": 3}, "chains is 3; expected a table"),
        ("chain_mct", {"chains": {"templates": []}}, "chains has no templates"),
        ("chain_mct", {"chains": {"templates": [{"name": "a"}]}}, "rate"),
        ("chain_mct", {"chains": {"templates": TWO}}, "times in 3 columns; expected 2, one for"),
        ("chain_mct", {"chains": {"templates": [SCAN, SCAN]}}, "has template 'scan' twice"),
        ("chain_mct", {"chains": {"templates": [PLAIN]}}, "unknown customer 'us'"),
        ("chain_mct", {"chains": {"templates": [SCAN | {"overlap": 0.5}]}}, "overlap is for"),
        ("chain_mct", {"chains": {"templates": [SCAN]}, "classes": ["a"]}, "leave them out"),
        ("chain_mct", {"chains": {"templates": [SCAN]}, "batch": {}}, "batch is for batch pol"),
        ("fcfs", {"chains": {"templates": [SCAN]}}, "chains is for chain policies; fcfs is a pull"),
    ],
)
def test_wrong_input(policy: str, about: dict[str, Any], words: str, tmp_path: Path) -> None:
    executor = FakeExecutor(["one", "two"], lambda *_: 0.0)
    with pytest.raises(InputError, match=words) as wrong:
        Grid(policy, on=executor, journal=tmp_path / "j.sqlite", **about)
    assert "\n" not in str(wrong.value)


def test_wrong_chains(tmp_path: Path) -> None:
    executor, path = FakeExecutor(["one", "two"], lambda *_: 0.0), tmp_path / "j.sqlite"
    chains: Any = {"templates": [SCAN, SCAN | {"name": "slow"}]}
    with Grid("chain_mct", on=executor, journal=path, chains=chains) as grid:
        with pytest.raises(InputError, match="runs chain_mct, a chain policy; use submit_chain"):
            grid.submit(abs, 1)
        for wrong, words in (
            (grid, "name the template: scan, slow"),
            (grid.options(task_class="scam"), "no template 'scam'; did you mean 'scan'"),
            (grid.options(task_class="scan"), "'scan' has 3 stages; 2 functions were given"),
        ):
            with pytest.raises(InputError, match=words):
                wrong.submit_chain([abs, str], 1)
        with pytest.raises(InputError, match="there is no function"):
            grid.submit_chain([])
        assert not journalled(path)
