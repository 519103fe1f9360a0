"""Run MGST's experiments on real processes as its testbed ran, and set them beside its columns.

    python tools/as_run.py [--time-unit SECONDS] [--at-once RUNS] [EXPERIMENT…]

``MGST-n-as-run`` has the facts. A machine is taken by a job for its delays too, as on the testbed,
so they are part of the time that the job takes on it. The policy knows the assumed rates only. The
delay after a job does not count in its response. Only the second that the mapper takes to send a
job is left out: our mapper sends in a millisecond.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gridwright.catalogue import entries, find, results
from gridwright.testbed import Experiment, conduct

PRINTED = {"lpas_dg": "LPAS_DG", "gcmu": "Gcmu", "fcfs": "FCFS"}


def experiment(name: str, time_unit: float) -> Experiment:
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
        duration=entry.horizon,
        corrections=False,
        timeout=timeout,
        detection="timeout" if timeout else "immediate",
    )


def measured(name: str, time_unit: float) -> tuple[str, list[float]]:
    """Run an entry; return the response of each class, and overall, until the jobs end."""
    with TemporaryDirectory() as folder:
        run = conduct(experiment(name, time_unit), path=Path(folder) / "run.sqlite")
        found = run.statistics()
        delays = find(name).system.delays
        assert delays is not None
        means = [each.response for each in (*found.classes.values(), found.overall)]
        return name, [mean - float(np.mean(delays.after)) for mean in means]


def printed(name: str) -> list[str]:
    """Return the testbed's own column: the classes, and overall."""
    number, _, policy = name.removeprefix("MGST-").partition("-as-run:")
    cells = results(src="K", case=int(number), platform="testbed", policy=PRINTED[policy])
    means = [cell for cell in cells if cell["metric"] in ("W_class", "W_mean")]
    means.sort(key=lambda cell: cell.get("class", 99))
    return [f"{cell['value']:.2f}" if "value" in cell else cell["status"] for cell in means]


def main() -> None:
    """Run the experiments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-unit", type=float, default=3.0)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--longest", type=float, default=90.0, help="leave out longer runs")
    parser.add_argument("experiments", nargs="*", type=int)
    chosen = parser.parse_args()
    numbers = chosen.experiments or list(range(1, 13))
    names = [
        entry.name
        for number in numbers
        for entry in entries()
        if entry.name.startswith(f"MGST-{number}-as-run:")
        and (entry.horizon or 0) <= chosen.longest
    ]
    print("| | policy | run, classes 1 to 4 | overall | testbed, classes 1 to 4 | overall |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor(chosen.at_once, get_context("spawn")) as pool:
        for name, ours in pool.map(measured, names, [chosen.time_unit] * len(names)):
            number, _, policy = name.removeprefix("MGST-").partition("-as-run:")
            own, theirs = [f"{mean:.2f}" for mean in ours], printed(name)
            halves = [f"{', '.join(each[:4])} | {each[4]}" for each in (own, theirs)]
            print(f"| {number} | {PRINTED[policy]} | {' | '.join(halves)} |", flush=True)


if __name__ == "__main__":
    main()
