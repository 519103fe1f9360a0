"""A user's policy: wrong code ends with one line, whenever in the run it goes wrong."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from gridwright import InputError, System, load, simulate
from gridwright.allocation import Situation
from gridwright.policies import find
from gridwright.simulation import replicate
from gridwright.simulation.central_setup import make_state
from gridwright.simulation.driver import Streams

pytestmark = pytest.mark.slow

LATE = """
import helper
import numpy as np
from gridwright import batch, chain, peer, pull, push
from gridwright.policies import assign

@{kind}
def own({subjects}, view):
    \"\"\"Go wrong after the rehearsal.\"\"\"
    if view.now > {late}:
        {statement}
    return {answer}
"""
LINE = 11
"""Where the statement stands."""
HELPER = """
import numpy as np
TABLE = np.zeros(4)

def look_up(k):
    return TABLE[k]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a policy, beside a module that it uses."""
    (tmp_path / "helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("helper", None)
    return tmp_path / "own.py"


def write(file: Path, statement: str, kind: str = "push", late: float = 100.0) -> None:
    subjects, answer = KINDS[kind]
    words = {"kind": kind, "subjects": subjects, "answer": answer, "late": late}
    file.write_text(LATE.format(statement=statement, **words))


KINDS = {
    "push": ("task_class", "task_class"),
    "pull": ("machine", "machine"),
    "peer": ("task_class, home", "home"),
    "chain": ("job, stage", "job % len(view.machines)"),
    "batch": ("waiting", "assign(waiting, view, 0, 0, int(np.argmax(view.machines.free)))"),
}
"""What a policy of a kind is asked about, and an answer."""
TEMPLATE = {"name": "a", "rate": 0.2, "times": [[2, 3]], "latency": 30}


def said_by_the_command(file: Path, *options: str) -> str:
    """Simulate in a process of its own, which must end with status 2 and one line."""
    path = os.pathsep.join([str(file.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "gridwright", "simulate", "2.B", "--policy", file.name, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    *_, last = done.stderr.replace("\r", "\n").strip().split("\n")
    return last


@pytest.mark.parametrize(
    ("statement", "file", "line"),
    [
        ("view.memory[0, 10**9] = 1.0", "own.py", LINE),
        ("return int(helper.look_up(task_class + 4))", "helper.py", 6),
    ],
)
def test_an_index_out_of_range_late_in_a_run_ends_it(
    own: Path, statement: str, file: str, line: int
) -> None:
    write(own, statement)
    said = said_by_the_command(own, "--horizon", "300", "--replications", "2")
    assert said == f"gridwright: {file}, line {line}: IndexError: index is out of bounds"


@pytest.mark.parametrize(
    ("statement", "line", "said"),
    [
        ("raise ValueError('too late')", LINE, "ValueError: too late"),
        ("return int(np.argmin(view.rate[0, :0]))", LINE - 4, "ValueError: attempt to get argmin"),
    ],
)
def test_any_error_late_in_a_run_names_its_line(
    own: Path, statement: str, line: int, said: str
) -> None:
    write(own, statement)
    with pytest.raises(InputError, match=rf"own\.py, line {line}: {said}"):
        replicate(load("2.B"), find(str(own)), horizon=300.0, seed=np.random.SeedSequence(1))


def scribbling(situation: Situation) -> np.ndarray:
    plan = (situation.rates > 0).astype(float)
    for part in situation:
        part[:] = 0
    return plan


def test_a_planner_cannot_change_the_engine() -> None:
    policy = replace(find("lpas"), planner=scribbling, planning=MappingProxyType({}))
    streams = Streams.spawn(np.random.SeedSequence(1))
    state, _ = make_state(load("2.B"), policy, streams)
    assert all(part.all() for part in (state.nominal, state.present, state.plan))


@pytest.mark.parametrize(
    ("kind", "system", "late", "horizon"),
    [
        ("pull", load("2.B"), 100.0, 300.0),
        ("peer", System(arrivals=[[0.5, 0.5]], rates=[[1.0, 1.0]]), 300.0, 600.0),
        ("chain", System(templates=[TEMPLATE]), 1100.0, 1500.0),
        ("batch", System(arrivals=[1.0], rates=[[0.6, 0.6]]), 300.0, 600.0),
    ],
)
def test_policies_of_every_kind_are_checked(
    own: Path, kind: str, system: System, late: float, horizon: float
) -> None:
    write(own, "view.memory[0, 5000] = 1.0", kind, late)
    with pytest.raises(InputError, match=rf"own\.py, line {LINE}: IndexError: index is out of bo"):
        simulate(system, str(own), horizon, 1)


@pytest.mark.parametrize("late", [-1.0, 100.0])
def test_what_is_shown_cannot_be_overwritten(own: Path, late: float) -> None:
    write(own, "view.machines[0].backlog = 0", late=late)
    with pytest.raises(InputError) as error:
        simulate("2.B", str(own), 300, 1)
    assert str(error.value).startswith(f"own.py, line {LINE}: ")
    assert "read-only" in str(error.value) or "Cannot modify what a policy is shown" in str(
        error.value
    )
    assert "\n" not in str(error.value)


DIFFERENT = """
from gridwright import push

@push
def own(task_class, view):
    \"\"\"Count beyond 64 bits.\"\"\"
    x = 1
    for _ in range(70):
        x *= 1 + int(view.now >= 0.0)
    return task_class if x % 7 == 2 else 0
"""


def test_a_policy_that_decides_differently_when_compiled_is_refused(own: Path) -> None:
    own.write_text(DIFFERENT)
    with pytest.raises(InputError, match="own decides differently in compiled code than in plain"):
        simulate("2.B", str(own), 300, 1)


SCRIBBLE = """
from gridwright import batch
from gridwright.policies import min_min
from gridwright.policies.two_phase import SOONEST, greedy

@batch
def own(waiting, view):
    \"\"\"Decide as min_min, and then overwrite all that can be overwritten.\"\"\"
    count = greedy(waiting, view, SOONEST, 0)
    if {scribble}:
        for k in range(len(waiting)):
            waiting[k].task_class = 10**9
            waiting[k].deadline = -1.0
            waiting[k].following = -7
        for j in range(len(view.machines)):
            view.machines[j].queued = 10**9
            view.machines[j].begun = 1e9
    return count
"""


def test_a_batch_policy_works_on_a_copy(own: Path) -> None:
    system = System(
        arrivals=[0.8, 0.6],
        rates=[[1.0, 0.4], [0.3, 0.9]],
        deadlines={"factor": 2, "best": 2, "discard": "both"},
    )
    numbers = []
    for scribble in (False, True):
        own.write_text(SCRIBBLE.format(scribble=scribble))
        found = simulate(system, str(own), 300, 2)
        numbers.append((found.mean_number, found.refusals))
    assert numbers[0] == numbers[1]
