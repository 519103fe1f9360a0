"""The twin: a run's own jobs and failures once more, in virtual time, as the model has them.

What a real run adds to the model can be put into the twin one cause at a time: that tells how much
each has to do with the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..grid import Journal, Statistics, statistics
from ..grid.executors.virtual import FakeExecutor, run_virtually
from ..grid.job import Stage
from ..grid.journal import IN_MEMORY
from .conduct import Conduct
from .experiment import Experiment
from .runs import Run
from .workload import Fault, JobList

Floats = NDArray[np.float64]

CAUSES = ("arrivals", "execution", "overhead", "failures")
"""Where a run may differ from its model, in the order in which they are put into the twin."""


@dataclass(frozen=True)
class Causes:
    """What a run added to the model. As it stands, nothing."""

    arrivals: JobList | None = None
    """The jobs at the times at which they were really submitted."""
    execution: Floats | None = None
    """How many times as long jobs [class, machine] took as they should have."""
    overhead: tuple[float, float] = (0.0, 0.0)
    """Time units from sending a job to its start, and from its end to that being known."""
    failures: tuple[Fault, ...] | None = None
    """Failures as they really were, found out as they really are."""


SHAKEN = 8
"""Twins that tell how much a moment matters."""
MOMENT = 0.001
"""Time units by which their jobs are off."""


class Gap(NamedTuple):
    """The mean response of a run and of its twin, and what lies between."""

    run: float
    twin: float
    steps: dict[str, float]
    """The twin's mean response as one cause after the other is put into it."""
    low: float
    """The least mean response of twins whose jobs come a moment earlier or later,"""
    high: float
    """and the greatest. Where these are far apart, the smallest cause has large effects."""

    @property
    def relative(self) -> float:
        """The difference of the run from its twin, as a share of the twin's; nan if that is 0.

        It is where jobs are so short that they end at the instant of their beginning.
        """
        return self.run / self.twin - 1 if self.twin else float("nan")

    @property
    def shares(self) -> dict[str, float]:
        """How much each cause adds to the mean response, and what is left unexplained."""
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
    """Conduct an experiment in virtual time, as the model has it but for some causes.

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

    before, after = causes.overhead
    executor = FakeExecutor(experiment.machine_names(), duration, before=before, after=after)
    length = experiment.duration if until is None else until
    # A time unit of one second: virtual time has no other.
    chosen = experiment.replace(time_unit=1.0, duration=length, detection=detection, resolution=0.0)
    journal = Journal(IN_MEMORY)
    try:
        run_virtually(Conduct(chosen, executor, journal, jobs, faults).run())
        journal.describe(classes=list(system.classes), machines=executor.machines)
        return statistics(journal, length)
    finally:
        journal.close()


def twin(run: Run, causes: Causes | None = None) -> Statistics:
    """Return what the model says of a run's own jobs and failures, until the same instant."""
    return virtually(run.experiment, run.jobs, run.faults, causes, run.until)


def gap(run: Run) -> Gap:
    """Say how far a run is from its twin, and which causes have how much to do with it."""
    found, steps, so_far = causes_of(run), {}, Causes()
    for cause in CAUSES:
        so_far = replace(so_far, **{cause: getattr(found, cause)})
        steps[cause] = twin(run, so_far).overall.response
    plain = twin(run).overall.response
    shaken = [plain, *(_shaken(run, seed) for seed in range(SHAKEN))]
    return Gap(run.statistics().overall.response, plain, steps, min(shaken), max(shaken))


def _shaken(run: Run, seed: int) -> float:
    """Return the mean response of a twin whose jobs are a moment off."""
    rng = np.random.default_rng(seed)
    times = np.sort(np.abs(run.jobs.times + rng.normal(0, MOMENT, len(run.jobs))))
    return twin(run, Causes(arrivals=run.jobs.at(times))).overall.response


def causes_of(run: Run) -> Causes:
    """Measure what a run added to the model."""
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
    """Return the failures at the times at which they really began and ended."""
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
