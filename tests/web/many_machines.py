"""Conduct a run of many machines in real time, without a process for each: they would take minutes.

``python many_machines.py SECONDS`` conducts it in $GRIDWRIGHT_HOME. Its journal, its scheduler and
the answers to operators are those of any run; only the jobs take no CPU.
"""

import sys

from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.testbed import Experiment, conduct, new_run

MACHINES = 200


def main(seconds: float) -> None:
    """Print the number of the run, and conduct it."""
    half = MACHINES // 2
    system = {
        "name": "many machines",
        "arrivals": [20.0, 20.0],
        "rates": [[0.2, 0.4], [0.4, 0.2]],
        "counts": [half, MACHINES - half],
        "failures": {"mean_uptime": 1000.0, "mean_repair": 10.0},
    }
    experiment = Experiment(
        system=system, policy="fcfs", name="many", duration=seconds, failures="generated"
    )
    with new_run(experiment) as run:
        print(run.number, flush=True)
        jobs, rates = run.jobs, run.system.effective

        def duration(job: int, machine: int, attempt: int) -> float:
            return float(jobs.works[job] / rates[jobs.task_classes[job], machine])

        conduct(run, on=FakeExecutor(experiment.machine_names(), duration))


if __name__ == "__main__":
    main(float(sys.argv[1]))
