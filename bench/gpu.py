"""Simulated tasks a second on a GPU, and against one core of this computer's processor.

Each row simulates many replications of one system under one policy. The seconds are those of the
launches; compiling and copying are left out, as they are on the CPU. Where NVIDIA's profiler
``ncu`` is installed, a second run reads the counters of the GPU: how much of the bandwidth of its
memory and of its second cache is used, and how many of the 32 threads of a warp are active.
"""

import csv
import shutil
import subprocess
import sys
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

    @property
    def length(self) -> float:
        """How many time units a run has."""
        return self.tasks / float(load(self.system).arrival_rates.sum())


ROWS = {
    "2.B": Row("2.B", "pas", 65_536, 20_000),
    "2.C1": Row("2.C1", "pas", 65_536, 10_000),
    "3.A": Row("3.A:alpha1:5", "lpas_dg", 65_536, 5_000),
    "3.F": Row("3.F:alpha:1", "lpas_dg", 8_192, 5_000),
}


COUNTERS = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "{:.0f} % of the memory's bandwidth",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "{:.0f} % of the second cache's",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "{:.1f} of 32 threads active",
}
LAUNCHES = 3
"""How many launches are counted, after the first one, which is empty."""


def main(*names: str) -> None:
    """Print a line for each row."""
    try:
        find_device()
    except InputError as error:
        print(f"  skipped: {error}")
        return
    for name in names or ROWS:
        row = ROWS[name]
        found = _on_the_gpu(row)
        there = sum(each.tasks for each in found) / sum(each.seconds for each in found)
        here = _on_one_core(row)
        mean = np.array([each.mean_number for each in found])
        half = 1.96 * mean.std() / np.sqrt(len(mean))
        print(
            f"  {name:5} {row.policy:8} {row.replications:6,} replications "
            f"{there / 1e9:7.3f} billion tasks a second, {there / here:6.1f} × one core; "
            f"mean number {mean.mean():.4f} ± {half:.4f}; {_counted(name)}",
            flush=True,
        )


def _on_the_gpu(row: Row) -> list[Replication]:
    system = load(row.system)
    seeds = [np.random.SeedSequence(1, spawn_key=(k,)) for k in range(row.replications)]
    found: list[Replication] = []
    job = Job(system, find(row.policy), seeds, row.length)
    launch(find_device(), [job], partial(_keep, found))
    return found


def _counted(name: str) -> str:
    """Return what the counters of the GPU say about a row, in words."""
    profiler = shutil.which("ncu")
    if profiler is None:
        return "no counters without ncu"
    only = ["--kernel-name", "regex:run_", "--launch-skip", "1", "--launch-count", str(LAUNCHES)]
    what = [sys.executable, "-m", "bench.gpu", name]
    command = [profiler, "--csv", "--metrics", ",".join(COUNTERS), *only, *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    begins = [k for k, line in enumerate(lines) if line.startswith('"ID"')]
    if not begins:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        return f"no counters; ncu said: {said[-1]}"
    rows = list(csv.DictReader(lines[begins[0] :]))
    words = []
    for counter, text in COUNTERS.items():
        values = [
            float(each["Metric Value"].replace(",", ""))
            for each in rows
            if each["Metric Name"] == counter
        ]
        words.append(text.format(np.mean(values)))
    return ", ".join(words)


def _keep(found: list[Replication], job: int, number: int, replication: Replication) -> None:
    found.append(replication)


def _on_one_core(row: Row) -> float:
    """Return the tasks a second of one core, with the same random numbers."""
    system, policy = load(row.system), find(row.policy)
    tasks, began = 0, 0.0
    for k in range(4):
        if k == 1:
            began = thread_time()  # the first one compiles
        seed = np.random.SeedSequence(1, spawn_key=(k,))
        run = replicate(system, policy, horizon=10 * row.length, seed=seed, rng="philox")
        tasks += run.tasks if k else 0
    return tasks / (thread_time() - began)


if __name__ == "__main__":
    _on_the_gpu(ROWS[sys.argv[1]])
