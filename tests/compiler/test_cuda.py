"""Every loop and one policy of each kind compile for a GPU, without one (``make gpu-ptx``: all)."""

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from gpu_ptx import ptx_of

from gridwright import System, load
from gridwright.compiler.cuda import CUDA, lanes
from gridwright.compiler.link import link
from gridwright.policies import PUSH, View, find
from gridwright.policies.policy import policy_of
from gridwright.simulation.kernel import run_push


def least_backlog(task_class: int, view: View) -> int:
    """Send a task to the machine with the fewest; draw among equals."""
    best, fewest = -1, 1e9
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0:
            count = view.machines[j].backlog + 0.5 * view.rng.random()
            if count < fewest:
                best, fewest = j, count
    return best


@pytest.mark.parametrize(
    ("system", "policy"),
    [
        (load("2.B"), find("lpas:tie=random")),
        (load("2.D").replace(execution={"kind": "gamma", "shape": 2}), find("mct")),
        pytest.param(load("3.A:alpha1:5"), find("lpas_dg"), marks=pytest.mark.slow),
        pytest.param(load("3.A:alpha1:5"), find("pas"), marks=pytest.mark.slow),
        pytest.param(load("2.B"), find("cmu:preempt=true"), marks=pytest.mark.slow),
        (System(arrivals=[1], rates=[[2, 3]]), policy_of(least_backlog, PUSH)),
    ],
    ids=["push", "gamma", "pull, failures", "push, failures", "preemption", "a user's"],
)
def test_it_compiles_to_ptx(system: System, policy: object) -> None:
    code = ptx_of(system, policy, (9, 0))  # type: ignore[arg-type]
    assert ".target sm_90" in code
    entry = code.partition(".visible .entry")[2].partition("\n.func")[0]
    assert "ret;" in entry
    assert ".local" not in entry, "tuples that are passed to functions would be copied"


def test_what_is_compiled_is_kept_on_disk() -> None:
    made: Any = link(run_push, made_for=CUDA(), lanes=lanes, decide=find("lpas").decide)
    digest = made.py_func.__qualname__.rpartition("_")[2]
    assert f"/code/{digest}/" in made._cache.cache_path
