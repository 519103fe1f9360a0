"""A long run, written down as if it had been conducted: there is no time to wait for one."""

import numpy as np

from gridwright.grid.event import Entry
from gridwright.grid.job import Job, Stage
from gridwright.testbed import Experiment, JobList, new_run


def write_long_run(jobs: int, piling: float = 0.0) -> int:
    """Write the journal of a run of so many jobs into $GRIDWRIGHT_HOME; return its number.

    ``piling`` is by how much the response grows per time unit.
    """
    experiment = Experiment(system="MGST.HiHi:4", policy="lpas_dg", name="long", duration=jobs / 10)
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, experiment.duration, jobs))
    drawn = JobList(times, rng.integers(0, 4, jobs), rng.exponential(1, jobs))
    with new_run(experiment, jobs=drawn, faults=()) as run:
        classes, machines = experiment.system.classes, list(experiment.system.machines)
        for begin in range(0, jobs, 10_000):
            entries, standing, works = [], [], []
            for k in range(begin, min(begin + 10_000, jobs)):
                job = Job(k, int(drawn.task_classes[k]), float(times[k]), Stage.finished, attempt=1)
                job.free = job.heard_free = job.assigned = job.sent = job.submitted + 0.1
                job.started, job.ended = job.sent + 0.01, job.sent + 0.5
                job.ended += piling * job.submitted
                job.heard = job.settled = job.ended + 0.01
                machine = machines[k % len(machines)]
                standing.append((job, classes[job.task_class], machine))
                works.append((k, b""))
                entries += [
                    Entry(job.submitted, "submitted", k),
                    Entry(job.started, "started", k, 1, machine),
                    Entry(job.ended, "finished", k, 1, machine),
                ]
            run.journal.write(entries, standing, works)
        up = [Entry(0.0, "up", machine=name) for name in machines]
        run.journal.write(up)
        run.journal.describe(ended=experiment.duration)
        return run.number
