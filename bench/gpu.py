"""Simulated tasks a second on a GPU, and against one core of this computer's processor.

Each row simulates many replications of one system under one policy. The seconds are those of the
launches; compiling and copying are left out, as they are on the CPU.
"""

from functools import partial
from time import thread_time
from typing import NamedTuple

import numpy as np

from gridwright import InputError, load
from gridwright.experiments.device import find_device
from gridwright.policies import find
from gridwright.simulation import Job, Replication, launch, replicate

__all__ = ["ROWS", "main"]


class Row(NamedTuple):
    """A system under a policy: how often on the GPU, and how many tasks a run has."""

    system: str
    policy: str
    replications: int
    tasks: float


ROWS = {
    "2.B": Row("2.B", "pas", 65_536, 20_000),
    "2.C1": Row("2.C1", "pas", 65_536, 10_000),
    "3.A": Row("3.A:alpha1:5", "lpas_dg", 65_536, 5_000),
    "3.F": Row("3.F:alpha:1", "lpas_dg", 8_192, 5_000),
}


def main(*names: str) -> None:
    """Print a line for each row."""
    try:
        device = find_device()
    except InputError as error:
        print(f"  skipped: {error}")
        return
    for name in names or ROWS:
        row = ROWS[name]
        system, policy = load(row.system), find(row.policy)
        length = row.tasks / float(system.arrival_rates.sum())
        seeds = [np.random.SeedSequence(1, spawn_key=(k,)) for k in range(row.replications)]
        found: list[Replication] = []
        launch(device, [Job(system, policy, seeds, length)], partial(_keep, found))
        there = sum(each.tasks for each in found) / sum(each.seconds for each in found)
        here = _on_one_core(row, length)
        mean = np.array([each.mean_number for each in found])
        half = 1.96 * mean.std() / np.sqrt(len(mean))
        print(
            f"  {name:5} {row.policy:8} {row.replications:6,} replications "
            f"{there / 1e9:7.3f} billion tasks a second, {there / here:6.1f} × one core; "
            f"mean number {mean.mean():.4f} ± {half:.4f}",
            flush=True,
        )


def _keep(found: list[Replication], job: int, number: int, replication: Replication) -> None:
    found.append(replication)


def _on_one_core(row: Row, length: float) -> float:
    """Return the tasks a second of one core, with the same random numbers."""
    system, policy = load(row.system), find(row.policy)
    tasks, began = 0, 0.0
    for k in range(4):
        if k == 1:
            began = thread_time()  # the first one compiles
        seed = np.random.SeedSequence(1, spawn_key=(k,))
        run = replicate(system, policy, horizon=10 * length, seed=seed, rng="philox")
        tasks += run.tasks if k else 0
    return tasks / (thread_time() - began)
