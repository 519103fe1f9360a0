"""The twin of a run: its jobs and failures again, in virtual time, as the model describes them.

Differences between a real run and its model are put into the twin one cause at a time. This shows
how much each cause contributes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np

from ..grid import Journal, Statistics, statistics
from ..grid.event import Entry
from ..grid.executors.virtual import FakeExecutor, run_virtually
from ..grid.job import Job, Stage
from ..grid.journal import IN_MEMORY
from ..grid.peer import PeerJob
from ..grid.peer_network import CHANGE, PeerNetwork
from ..model import Floats
from ..policies import PEER
from ..simulation.live import Happened
from .changes import Change, peer_of, rates_after
from .conduct import ACTIONS, Action, Conduct
from .experiment import LOOPS, Experiment
from .loop_model import loop_of, modelled, outcome
from .runs import Run
from .workload import Fault, JobList

CAUSES = ("arrivals", "execution", "overhead", "failures", "operators")
"""Causes of differences from the model, in the order in which the twin gets them."""


@dataclass(frozen=True)
class Causes:
    """How a run differs from its model; by default it does not."""

    arrivals: JobList | None = None
    """The jobs at the times when they were really submitted."""
    execution: Floats | None = None
    """Real over ideal execution time [class, machine]."""
    overhead: tuple[float, ...] = (0.0, 0.0)
    """Time units from sending a job to its start, and from its end until the grid knows; also of a
    message between machines that decide for themselves."""
    failures: tuple[Fault, ...] | None = None
    """The real failures, detected as in the run."""
    operators: tuple[Action, ...] = ()
    """What operators did to machines."""


SHAKEN = 8
"""Twins that show the effect of small timing changes."""
MOMENT = 0.001
"""Standard deviation of these changes, in time units."""
UNEXPLAINED = "unexplained"
"""What remains of the difference between a run and its twin after all causes."""
TWINS = 1 + len(CAUSES) + SHAKEN
"""How many twins a comparison simulates: a plain one, one for each cause, and shaken ones."""
LEAST_TOLD = 0.01
"""The share of a twin after which its progress is told again."""


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
        found[UNEXPLAINED] = self.run - last
        return found


def virtually(
    experiment: Experiment,
    jobs: JobList | None = None,
    faults: tuple[Fault, ...] | None = None,
    causes: Causes | None = None,
    until: float | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> Statistics:
    """Conduct an experiment in virtual time, as in the model except for some causes.

    ``progress`` is called with the share of the jobs that have started.

    >>> experiment = Experiment(system="MGST.HiHi:1", policy="gcmu", duration=50)
    >>> 0.2 < virtually(experiment).overall.response < 0.4
    True
    """
    jobs = experiment.job_list() if jobs is None else jobs
    faults = experiment.faults() if faults is None else faults
    causes = causes or Causes()
    if causes.arrivals is not None:
        jobs = causes.arrivals
    if experiment.chosen_policy().kind in LOOPS:
        return _looped(experiment, causes, until)
    if experiment.chosen_policy().kind is PEER:
        faults = faults if causes.failures is None else causes.failures
        return _without_scheduler(experiment, jobs, faults, causes, until)
    system, ratio = experiment.system, causes.execution
    effective = system.effective
    detection = "immediate"
    if causes.failures is not None:
        faults, detection = causes.failures, experiment.detection
    works, kinds = jobs.works, jobs.task_classes
    length = experiment.duration if until is None else until
    told, number = 0.0, max(int((jobs.times < length).sum()), 1)

    def duration(job: int, machine: int, attempt: int) -> float:
        nonlocal told
        if (share := job / number) >= told:
            told = share + LEAST_TOLD
            progress(min(share, 1.0))
        kind = kinds[job]
        time = works[job] / effective[kind, machine]
        return float(time if ratio is None else time * ratio[kind, machine])

    executor = FakeExecutor(experiment.machine_names(), duration, *causes.overhead[:2])
    # Virtual time has a time unit of one second.
    chosen = experiment.replace(time_unit=1.0, duration=length, detection=detection, resolution=0.0)
    with closing(Journal(IN_MEMORY)) as journal:
        conduct = Conduct(chosen, executor, journal, jobs, faults, actions=causes.operators)
        run_virtually(conduct.run())
        journal.describe(classes=list(system.classes), machines=executor.machines)
        return statistics(journal, length)


def _without_scheduler(
    experiment: Experiment,
    jobs: JobList,
    faults: tuple[Fault, ...],
    causes: Causes,
    until: float | None,
) -> Statistics:
    """Let the books of the machines decide in virtual time, with the same jobs and changes."""
    system, names = experiment.system, experiment.machine_names()
    length, changed = experiment.duration if until is None else until, list[Change]()
    assert jobs.homes is not None

    policy, (before, after, latency) = experiment.chosen_policy(), (*causes.overhead, 0.0)[:3]

    def duration(job: PeerJob, machine: int) -> float:
        own = rates_after(system, machine, changed)
        ratio = 1.0 if causes.execution is None else causes.execution[job.task_class, machine]
        return float(job.size / (own.nominal[job.task_class] * own.availability) * ratio)

    network = PeerNetwork(
        len(names),
        lambda machine: peer_of(system, policy, machine, changed, seed=experiment.seed),
        duration,
        lambda sender, to: latency,
        before,
        after,
    )

    def change(new: Change) -> None:
        changed.append(new)
        network.change(new.machine, rates_after(system, new.machine, changed))

    for each in experiment.changes():
        network.at(each.time, partial(change, each), CHANGE)
    for number, time in enumerate(jobs.times.tolist()):
        job, home = Job(number, int(jobs.task_classes[number]), time), int(jobs.homes[number])
        network.at(time, partial(network.submit, job, home, float(jobs.works[number])))
    for fault in faults:
        network.at(fault.start, partial(network.fail, fault.machine))
        network.at(fault.end, partial(network.repair, fault.machine))
    network.run(length)
    with closing(Journal(IN_MEMORY)) as journal:
        sent = dict(network.messages)
        journal.describe(classes=list(system.classes), machines=names, messages=sent)
        known = network.jobs.jobs.values()
        rows = [
            (job, system.classes[job.task_class], names[job.machine] if job.machine >= 0 else None)
            for job in known
        ]
        journal.write([], rows, [(job.number, b"") for job in known])
        return statistics(journal, length)


def _looped(
    experiment: Experiment,
    causes: Causes,
    until: float | None,
    noise: Callable[[], float] = lambda: 0.0,
) -> Statistics:
    """Let the loop of a batch or chain system decide in virtual time."""
    system, names = experiment.system, experiment.machine_names()
    length = experiment.duration if until is None else until
    ratio, delay = causes.execution, sum(causes.overhead[:2])

    def takes(start: Happened) -> float:
        factor = 1.0 if ratio is None else float(ratio[start.task_class, start.machine])
        return start.length * factor + delay + noise()

    policy = experiment.chosen_policy()
    loop = loop_of(experiment.imposed, policy, experiment.duration, experiment.seed)
    record = modelled(loop, length, takes)
    with closing(Journal(IN_MEMORY)) as journal:
        found = outcome(loop, length)
        journal.describe(classes=list(system.classes), machines=names, outcome=found)
        record.write(journal, system, names, list(record.jobs), [])
        return statistics(journal, length)


def twin(
    run: Run, causes: Causes | None = None, progress: Callable[[float], None] = lambda done: None
) -> Statistics:
    """Return the statistics of a run's jobs and failures in the model, until the same time."""
    return virtually(run.experiment, run.jobs, run.faults, causes, run.until, progress)


def gap(
    run: Run, plain: Statistics | None = None, progress: Callable[[float], None] = lambda done: None
) -> Gap:
    """Compare a run with its twin, and split the difference by cause.

    ``plain`` is the twin, if it is known. ``progress`` is called with the share that is done.
    """
    found, steps, so_far = causes_of(run), {}, Causes()

    def part(number: int) -> Callable[[float], None]:
        return lambda done: progress((number + done) / TWINS)

    alike = (twin(run, progress=part(0)) if plain is None else plain).overall.response
    for k, cause in enumerate(CAUSES, start=1):
        if cause != "operators" or found.operators:
            so_far = replace(so_far, **{cause: getattr(found, cause)})
            steps[cause] = twin(run, so_far, part(k)).overall.response
        part(k)(1.0)
    shaken = [alike]
    for seed in range(SHAKEN):
        k = TWINS - SHAKEN + seed
        shaken.append(_shaken(run, seed, part(k)))
        part(k)(1.0)
    return Gap(run.statistics().overall.response, alike, steps, min(shaken), max(shaken))


def _shaken(run: Run, seed: int, progress: Callable[[float], None]) -> float:
    """Return the mean response of a twin with small timing changes."""
    rng = np.random.default_rng(seed)
    if run.experiment.chosen_policy().kind in LOOPS:
        noise = partial(_later, rng)
        return _looped(run.experiment, Causes(), run.until, noise).overall.response
    times = np.sort(np.abs(run.jobs.times + rng.normal(0, MOMENT, len(run.jobs))))
    return twin(run, Causes(arrivals=run.jobs.at(times)), progress).overall.response


def _later(rng: np.random.Generator) -> float:
    return float(abs(rng.normal(0, MOMENT)))


def causes_of(run: Run) -> Causes:
    """Measure how a run differs from its model."""
    if run.experiment.chosen_policy().kind in LOOPS:
        return _loop_causes(run)
    times = run.jobs.times.copy()
    shape = run.system.shape
    taken, ideal = np.zeros(shape), np.zeros(shape)
    before: list[float] = []
    after: list[float] = []
    hops: list[float] = []
    names, speed = list(run.about["machines"]), _speeds(run.experiment)
    for kept in run.journal.jobs(contents=False):
        job = kept.job
        times[job.number] = job.submitted
        if job.stage == Stage.finished and isfinite(job.ended - job.started):
            i, j = int(run.jobs.task_classes[job.number]), names.index(kept.machine)
            taken[i, j] += job.ended - job.started
            ideal[i, j] += run.jobs.works[job.number] / speed(i, j, job.sent)
            before.append(job.started - job.sent)
            after.append(job.heard - job.ended)
            if run.jobs.homes is not None and job.attempt == 1:
                messages = 2 if run.jobs.homes[job.number] == j else 3  # asked, told, handed over
                hops.append((job.assigned - job.submitted) / messages)
    ratio = np.where(ideal > 0, taken / np.where(ideal > 0, ideal, 1.0), 1.0)
    overhead = _mean(before), _mean(after), _mean(hops)
    actions = _actions(run) if run.jobs.homes is None else ()
    return Causes(run.jobs.at(times), ratio, overhead, _real_faults(run), actions)


def _loop_causes(run: Run) -> Causes:
    """Measure how much longer tasks of batches and chains took, and how late they started."""
    names, shape = list(run.about["machines"]), run.system.shape
    taken, ideal = np.zeros(shape), np.zeros(shape)
    sent: dict[str | None, float] = {}
    started: dict[str | None, Entry] = {}
    before: list[float] = []
    for entry in run.journal.events("sent", "started", "finished"):
        if entry.kind == "sent":
            sent[entry.machine] = entry.time
        elif entry.kind == "started":
            started[entry.machine] = entry
            before.append(entry.time - sent[entry.machine])
        elif entry.machine in started:
            begun = started.pop(entry.machine)
            where = run.jobs.task_classes[entry.job or 0], names.index(entry.machine or "")
            taken[where] += entry.time - begun.time
            ideal[where] += begun.fields["length"]
    ratio = np.where(ideal > 0, taken / np.where(ideal > 0, ideal, 1.0), 1.0)
    return Causes(run.jobs, ratio, (_mean(before), 0.0), ())


def _mean(delays: list[float]) -> float:
    return max(float(np.mean(delays)), 0.0) if delays else 0.0


def _speeds(experiment: Experiment) -> Callable[[int, int, float], float]:
    """Return a function: the rate of a class on a machine at a time."""
    effective, changes = experiment.system.effective, experiment.changes()
    if not changes:
        return lambda i, j, time: float(effective[i, j])

    def speed(i: int, j: int, time: float) -> float:
        own = rates_after(experiment.system, j, [each for each in changes if each.time <= time])
        return own.nominal[i] * own.availability

    return speed


def _actions(run: Run) -> tuple[Action, ...]:
    """Return what operators did to machines; failures that they caused are among the failures."""
    names = list(run.about["machines"])
    return tuple(
        Action(entry.time, entry.kind, names.index(entry.machine), entry.fields.get("availability"))
        for entry in run.journal.events(*ACTIONS)
        if entry.machine in names
    )


def _real_faults(run: Run) -> tuple[Fault, ...]:
    """Return the failures at the times when they really began and ended."""
    names = list(run.about["machines"])
    begun: dict[int, float] = {}
    found = []
    begins = "failure" if run.jobs.homes is None else "down"  # any process may be killed
    for entry in run.journal.events(begins, "up"):
        machine = names.index(entry.machine or "")
        if entry.kind == begins:
            begun.setdefault(machine, entry.time)  # an operator may have taken it away before
        elif entry.kind == "up" and machine in begun:  # it is there when its process is
            found.append(Fault(machine, begun.pop(machine), entry.time))
    found += [Fault(machine, start, run.until + 1) for machine, start in begun.items()]
    return tuple(sorted(found, key=lambda fault: fault.start))
