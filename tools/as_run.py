"""Run MGST's experiments on real processes as its testbed ran, beside twins and its own columns.

    python tools/as_run.py FOLDER [--time-unit SECONDS] [--at-once RUNS] [EXPERIMENT…]

``MGST-n-as-run`` has the facts. A machine is taken by a job for its delays too, as on the testbed,
so they are part of the time that the job takes on it. The policy knows the assumed rates only. The
delay after a job does not count in its response. Only the second that the mapper takes to send a
job is left out: our mapper sends in a millisecond. Journals stay in FOLDER, and a run that is there
is not repeated. The twin has the same jobs and failures in virtual time.
"""

import argparse
import math
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from gridwright.catalogue import entries, find, results
from gridwright.testbed import Experiment, Run, conduct, twin
from gridwright.testbed.twin import Causes, causes_of

PRINTED = {"lpas_dg": "LPAS_DG", "gcmu": "Gcmu", "fcfs": "FCFS"}
POLICIES = {"lpas_dg": "LPAS_DG", "gcmu": "Gcμ", "fcfs": "FCFS"}
HEADS = (
    *("", "policy", "time units", "run", "twin", "gap", "published testbed"),
    *("run, classes 1 to 4", "published, classes 1 to 4", "unfinished", "delay, ms"),
)


def experiment(name: str, time_unit: float, longest: float = math.inf) -> Experiment:
    """Return the experiment of an entry, with its delays in the execution times."""
    entry = find(name)
    system, policy = entry.system, name.partition(":")[2]
    assert system.delays is not None
    assert entry.horizon is not None
    between = float(np.mean(system.delays.before)) + float(np.mean(system.delays.after))
    share = np.array(system.availability)  # a machine with half of a CPU takes twice as long
    rates = 1 / (1 / np.array(system.rates) + between * share)
    timeout = float(np.mean(system.delays.timeout))
    return Experiment(
        system=system.replace(rates=rates.tolist(), delays=None),
        policy=f"{policy}:idle=rotate",
        name=name,
        time_unit=time_unit,
        duration=min(entry.horizon, longest),
        corrections=False,
        timeout=timeout,
        detection="timeout" if timeout else "immediate",
    )


def journal(folder: Path, name: str) -> Path:
    """Return the file of a run."""
    return folder / f"{name.replace(':', '-')}.sqlite"


def measure(name: str, folder: Path, time_unit: float, longest: float) -> str:
    """Run an entry if it has not been run; return its name."""
    path = journal(folder, name)
    if not path.exists():
        conduct(experiment(name, time_unit, longest), path=path)
    with Run(path) as run:
        if run.state != "done":
            conduct(run)
    return name


def row(name: str, folder: Path) -> list[str]:
    """Return the cells of a run. A response ends when the execution does."""
    number, _, policy = name.removeprefix("MGST-").partition("-as-run:")
    delays = find(name).system.delays
    assert delays is not None
    after = float(np.mean(delays.after))
    with Run(journal(folder, name)) as run:
        found = run.statistics()
        model = twin(run, Causes(failures=causes_of(run).failures))
        ours, theirs = found.overall.response - after, model.overall.response - after
        cells = results(src="K", case=int(number), platform="testbed", policy=PRINTED[policy])
        means = {
            cell.get("class", 0): f"{cell['value']:.2f}" if "value" in cell else cell["status"]
            for cell in cells
            if cell["metric"] in ("W_class", "W_mean")
        }
        overall = means.pop(0)
        jobs = found.overall
        return [
            number,
            POLICIES[policy],
            f"{run.until:.0f} of {find(name).horizon:g}",
            f"**{ours:.3f}**",
            f"{theirs:.3f}",
            f"{100 * (ours / theirs - 1):+.1f} %",
            overall,
            ", ".join(f"{each.response - after:.2f}" for each in found.classes.values()),
            ", ".join(means[number] for number in sorted(means)) if overall != "unstable" else "",
            f"{jobs.unfinished} of {jobs.arrived}",
            f"{1000 * jobs.communication * run.experiment.time_unit:.1f}",
        ]


def main() -> None:
    """Run the experiments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-unit", type=float, default=3.0)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--longest", type=float, default=100.0, help="stop longer runs here")
    parser.add_argument("experiments", nargs="*", type=int)
    chosen = parser.parse_args()
    numbers = chosen.experiments or list(range(1, 13))
    names = [
        f"MGST-{number}-as-run:{policy}"
        for number in numbers
        for policy in POLICIES
        if f"MGST-{number}-as-run:{policy}" in {entry.name for entry in entries()}
    ]
    chosen.folder.mkdir(exist_ok=True)
    scale = [[each] * len(names) for each in (chosen.folder, chosen.time_unit, chosen.longest)]
    with ProcessPoolExecutor(chosen.at_once, get_context("spawn")) as pool:
        for name in pool.map(measure, names, *scale):
            print(name, "load", *(f"{load:.1f}" for load in os.getloadavg()), flush=True)
    print(f"| {' | '.join(HEADS)} |".replace("|  |", "| |"))
    print("|" + "---|" * len(HEADS))
    for name in names:
        print(f"| {' | '.join(row(name, chosen.folder))} |", flush=True)


if __name__ == "__main__":
    main()
