"""The twin of a run: its jobs and failures again, in virtual time, as the model describes them.

Differences between a real run and its model are put into the twin one cause at a time. This shows
how much each cause contributes.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from ..grid import Journal, Statistics, statistics
from ..grid.executors.virtual import FakeExecutor, run_virtually
from ..grid.job import Stage
from ..grid.journal import IN_MEMORY
from ..model import Floats
from .conduct import Conduct
from .experiment import Experiment
from .runs import Run
from .workload import Fault, JobList

CAUSES = ("arrivals", "execution", "overhead", "failures")
"""Causes of differences from the model, in the order in which the twin gets them."""


@dataclass(frozen=True)
class Causes:
    """How a run differs from its model; by default it does not."""

    arrivals: JobList | None = None
    """The jobs at the times when they were really submitted."""
    execution: Floats | None = None
    """Real over ideal execution time [class, machine]."""
    overhead: tuple[float, float] = (0.0, 0.0)
    """Time units from sending a job to its start, and from its end until the grid knows."""
    failures: tuple[Fault, ...] | None = None
    """The real failures, detected as in the run."""


SHAKEN = 8
"""Twins that show the effect of small timing changes."""
MOMENT = 0.001
"""Standard deviation of these changes, in time units."""


class Gap(NamedTuple):
    """The mean responses of a run and of its twin, and the causes of the difference."""

    run: float
    twin: float
    steps: dict[str, float]
    """The mean response of the twin after each further cause."""
    low: float
    """The least mean response of twins with small timing changes."""
    high: float
    """The greatest. If they are far apart, small causes have large effects."""

    @property
    def relative(self) -> float:
        """The difference of the run from its twin as a share of the twin; nan if that is 0."""
        return self.run / self.twin - 1 if self.twin else float("nan")

    @property
    def shares(self) -> dict[str, float]:
        """How much each cause adds to the mean response, and the unexplained rest."""
        found, last = {}, self.twin
        for cause, response in self.steps.items():
            found[cause] = response - last
            last = response
        found["unexplained"] = self.run - last
        return found


def virtually(
    experiment: Experiment,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
    causes: Causes | None = None,
    until: float | None = None,
) -> Statistics:
    """Conduct an experiment in virtual time, as in the model except for some causes.

    >>> experiment = Experiment(system="MGST.HiHi:1", policy="gcmu", duration=50)
    >>> 0.2 < virtually(experiment).overall.response < 0.4
    True
    """
    jobs = experiment.job_list() if jobs is None else jobs
    faults = experiment.faults() if faults is None else faults
    causes = causes or Causes()
    system, ratio = experiment.system, causes.execution
    effective = system.effective
    if causes.arrivals is not None:
        jobs = causes.arrivals
    detection = "immediate"
    if causes.failures is not None:
        faults, detection = causes.failures, experiment.detection
    works, kinds = jobs.works, jobs.task_classes

    def duration(job: int, machine: int, attempt: int) -> float:
        kind = kinds[job]
        time = works[job] / effective[kind, machine]
        return float(time if ratio is None else time * ratio[kind, machine])

    executor = FakeExecutor(experiment.machine_names(), duration, *causes.overhead)
    length = experiment.duration if until is None else until
    # Virtual time has a time unit of one second.
    chosen = experiment.replace(time_unit=1.0, duration=length, detection=detection, resolution=0.0)
    with closing(Journal(IN_MEMORY)) as journal:
        run_virtually(Conduct(chosen, executor, journal, jobs, faults).run())
        journal.describe(classes=list(system.classes), machines=executor.machines)
        return statistics(journal, length)


def twin(run: Run, causes: Causes | None = None) -> Statistics:
    """Return the statistics of a run's jobs and failures in the model, until the same time."""
    return virtually(run.experiment, run.jobs, run.faults, causes, run.until)


def gap(run: Run) -> Gap:
    """Compare a run with its twin, and split the difference by cause."""
    found, steps, so_far = causes_of(run), {}, Causes()
    for cause in CAUSES:
        so_far = replace(so_far, **{cause: getattr(found, cause)})
        steps[cause] = twin(run, so_far).overall.response
    plain = twin(run).overall.response
    shaken = [plain, *(_shaken(run, seed) for seed in range(SHAKEN))]
    return Gap(run.statistics().overall.response, plain, steps, min(shaken), max(shaken))


def _shaken(run: Run, seed: int) -> float:
    """Return the mean response of a twin with small timing changes."""
    rng = np.random.default_rng(seed)
    times = np.sort(np.abs(run.jobs.times + rng.normal(0, MOMENT, len(run.jobs))))
    return twin(run, Causes(arrivals=run.jobs.at(times))).overall.response


def causes_of(run: Run) -> Causes:
    """Measure how a run differs from its model."""
    times = run.jobs.times.copy()
    shape = run.system.shape
    taken, ideal = np.zeros(shape), np.zeros(shape)
    before: list[float] = []
    after: list[float] = []
    names = list(run.about["machines"])
    for kept in run.journal.jobs(contents=False):
        job = kept.job
        times[job.number] = job.submitted
        if job.stage == Stage.finished and isfinite(job.ended - job.started):
            i, j = int(run.jobs.task_classes[job.number]), names.index(kept.machine)
            taken[i, j] += job.ended - job.started
            ideal[i, j] += run.jobs.works[job.number] / run.system.effective[i, j]
            before.append(job.started - job.sent)
            after.append(job.heard - job.ended)
    ratio = np.where(ideal > 0, taken / np.where(ideal > 0, ideal, 1.0), 1.0)
    overhead = (
        (max(float(np.mean(before)), 0.0), max(float(np.mean(after)), 0.0)) if before else (0, 0)
    )
    return Causes(run.jobs.at(times), ratio, overhead, _real_faults(run))


def _real_faults(run: Run) -> tuple[Fault, ...]:
    """Return the failures at the times when they really began and ended."""
    names = list(run.about["machines"])
    begun: dict[int, float] = {}
    found = []
    for entry in run.journal.events("failure", "repair", "up"):
        machine = names.index(entry.machine or "")
        if entry.kind == "failure":
            begun[machine] = entry.time
        elif entry.kind == "up" and machine in begun:  # it is there when its process is
            found.append(Fault(machine, begun.pop(machine), entry.time))
    found += [Fault(machine, start, run.until + 1) for machine, start in begun.items()]
    return tuple(sorted(found, key=lambda fault: fault.start))
