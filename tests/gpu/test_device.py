"""On a GPU: the results of a CPU, theory, users' policies, wrong input. Skipped without one."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, compare, load, simulate
from gridwright.experiments import random_systems
from gridwright.experiments.device import find_device
from gridwright.policies import policies
from gridwright.simulation import Job, Replication, launch, replicate
from gridwright.simulation.planning import PLANS


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    """Skip all tests without a GPU."""
    try:
        find_device()
    except InputError as error:
        pytest.skip(str(error))


placing = sys.modules[Job.__module__]
CENTRAL = [n for n, each in policies().items() if each.kind.is_central and each.is_shipped]
FAILING = {"mean_uptime": 30.0, "mean_repair": 3.0}
SYSTEMS = [
    *[load(name) for name in ("2.A", "2.B", "2.C1", "2.D", "3.A:alpha1:5", "3.C:alpha1:1")],
    *random_systems(8),
    *[each.replace(failures=FAILING) for each in random_systems(5, seed=2)],
    *[
        load("2.D").replace(execution=execution)
        for execution in (
            {"kind": "gamma", "shape": 0.7},
            {"kind": "lognormal", "scv": 0.5},
            {"kind": "hyperexponential", "scv": 2},
        )
    ],
]
SEEDS = [np.random.SeedSequence(9, spawn_key=(number,)) for number in range(34)]
COMPARED = {0, 31, 33}
"""Runs lie side by side in tiles of 32; these are the first and the last one of a tile, and one of
the next."""
FIGURES = ("mean_number", "response", "waiting", "queueing", "throughput", "utilisation", "number")
COUNTS = ("responded", "tasks", "lost", "refusals", "held", "asked", "replans")


@pytest.mark.parametrize("layout", ["apart", "side by side"])
@pytest.mark.parametrize("name", CENTRAL)
def test_results_are_those_of_a_cpu(
    name: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policies()[name]
    is_compiled = policy.planner is None or policy.planner in PLANS
    systems = [each for each in SYSTEMS if is_compiled or each.failures is None]
    if layout == "side by side":  # the same, however few and large they are
        monkeypatch.setattr(placing, "MANY_RUNS", 1)
        monkeypatch.setattr(placing, "MOST_BYTES", 1 << 40)
    jobs = [
        Job(system, policy, SEEDS, 300 / float(system.arrival_rates.sum()), 0.0)
        for system in systems
    ]
    found: dict[tuple[int, int], Replication] = {}
    launch(find_device(), jobs, lambda job, k, one: found.update({(job, k): one}))
    for (k, number), there in found.items():
        if number not in COMPARED:
            continue
        job = jobs[k]
        here = replicate(
            job.system, policy, horizon=job.horizon, seed=job.seeds[number], rng="philox"
        )
        for field in COUNTS:
            assert np.array_equal(getattr(there, field), getattr(here, field)), (k, field)
        for field in FIGURES:
            np.testing.assert_allclose(
                getattr(there, field), getattr(here, field), rtol=1e-9, atol=1e-12, err_msg=field
            )
    assert len(found) == len(jobs) * len(SEEDS)


def test_a_queue_follows_theory() -> None:
    queue = System(arrivals=[0.8], rates=[[1.0]])
    for policy in ("mct", "fcfs"):
        found = simulate(queue, policy, 2000, 2000, warmup=200, on="gpu")
        assert found.mean_number.overlaps(3.98, 4.02)
        assert found.stable


def test_an_unstable_system_grows_and_is_found_out() -> None:
    found = simulate(System(arrivals=[3.0], rates=[[1.0]]), "mct", 500, 8, on="gpu")
    assert found.stable is False
    assert found.mean_number.overlaps(480, 520)


def test_a_policy_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from gridwright import push\n\n\n@push\ndef mine(task_class, view, bonus=0.5):\n"
        '    """Send a task where it would finish first, with a bonus for the first machine."""\n'
        "    best, least = -1, 1e300\n"
        "    for j in range(len(view.machines)):\n"
        "        time = view.machines[j].work + view.expected[task_class, j] - bonus * (j == 0)\n"
        "        if time < least and view.plan[task_class, j] > 0.0:\n"
        "            best, least = j, time\n"
        "    return best\n"
    )
    here: Any = compare("2.B", ["mct", str(file)], 100, 4, rng="philox")
    there: Any = compare("2.B", ["mct", str(file)], 100, 4, on="gpu")
    for one, two in zip(here.results, there.results, strict=True):
        np.testing.assert_allclose(one.values("mean_number"), two.values("mean_number"), rtol=1e-9)


def test_wrong_input_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "arrays.py"
    file.write_text(
        "import numpy as np\nfrom gridwright import push\n\n\n"
        "@push\ndef arrays(task_class, view):\n"
        '    """Make an array of the times."""\n'
        "    return np.argmin(view.machines.work + view.expected[task_class])\n"
    )
    with pytest.raises(InputError, match="creates arrays, which a GPU cannot"):
        simulate("2.B", str(file), 10, 1, on="gpu")
    with pytest.raises(InputError, match="its planner is plain Python"):
        simulate("3.A:alpha1:5", "fpi", 1, 1, on="gpu")
    with pytest.raises(InputError, match="a GPU runs push and pull policies"):
        simulate("Smith", "mm", 10, 1, on="gpu")
