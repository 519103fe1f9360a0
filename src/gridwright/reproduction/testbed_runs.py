"""Answer printed cells of the testbed from the journals of our own runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import long_run_of
from ..allocation.lost_work import bound, with_same_work
from ..catalogue import Cell, experiment_names
from ..model import Floats, InputError, System
from ..statistics import Estimate, estimate, stability
from ..testbed import Experiment, Run, actual_rates, runs
from .question import POLICIES, Answer, entry_of, exact

BATCHES = 10
"""Parts into which a run is divided to estimate the interval of its mean."""
SAME = ("timeout", "detection", "failures", "job")
"""Fields that a run must share with the published experiment."""


class _Measured(NamedTuple):
    """The measurements of a run."""

    number: int
    until: float
    ended: Floats
    response: Floats
    task_class: NDArray[np.int64]
    submitted: Floats
    rates: Floats
    arrivals: Floats
    system: System
    busy: float
    """Machines that are busy on average."""


def sighting(cell: Cell) -> tuple[Answer | None, str]:
    """Answer a cell of the testbed from the runs in the journals; also say which, or why not."""
    find = ANSWERS.get(str(cell["metric"]))
    if find is None or "policy" not in cell or not str(cell.get("system", "")).startswith("MGST."):
        return None, "a figure of one run of the original, whose jobs are not known"
    entry, policy = entry_of(cell), POLICIES[cell["policy"]]
    found = [run for (name, used), run in _known() if (name, used) == (entry, policy)]
    if not found:
        command = f"gridwright run MGST-{cell.get('case')} --policy {policy}"
        return None, f"no run of it yet: '{command}' makes one"
    numbers = ", ".join(str(run.number) for run in found)
    return find(cell, found), f"run {numbers}, {found[-1].until:g} time units"


@cache
def _known() -> tuple[tuple[tuple[str, str], _Measured], ...]:
    """Read every finished run that was conducted as published."""
    found = []
    for path in runs():
        try:
            with Run(path) as run:
                if run.state == "done" and _is_as_published(run):
                    name = run.system.name.removesuffix(":modulo")
                    policy = run.experiment.chosen_policy()
                    found.append(((name, policy.name), _measure(run)))
        except InputError:
            continue  # from another version; 'gridwright runs' says so
    return tuple(found)


def _is_as_published(run: Run) -> bool:
    """Tell whether a run is the experiment of the catalogue, or a longer or slower one."""
    own = run.experiment
    published = _experiments().get(run.system.name)
    if published is None or own.duration < published.duration:
        return False
    if any(getattr(own, part) != getattr(published, part) for part in SAME):
        return False
    parts = own.corrections.parts()
    corrected = any(parts[name] for name in ("availability", "arrivals", "rates", "overhead"))
    plain = str(run.about["policy"]) == own.chosen_policy().name
    slow = own.time_unit >= published.time_unit / 2  # so that overhead per job is small
    return plain and slow and not corrected and run.system.assumed is None


@cache
def _experiments() -> dict[str, Experiment]:
    """Return the experiments of the catalogue by the names of their systems."""
    found = map(Experiment.find, experiment_names())
    return {each.system.name: each for each in found}


def _measure(run: Run) -> _Measured:
    kept = [each.job for each in run.journal.jobs(contents=False)]
    done = [job for job in kept if job.stage == "finished"]
    statistics = run.statistics()
    return _Measured(
        run.number,
        run.until,
        np.array([job.ended for job in done]),
        np.array([job.ended - job.submitted for job in done]),
        run.jobs.task_classes[[job.number for job in done]],
        np.array([job.submitted for job in kept]),
        actual_rates(run),
        np.array([each.arrival_rate for each in statistics.classes.values()]),
        run.system,
        sum(job.ended - job.started for job in done) / run.until,
    )


def _response(cell: Cell, found: list[_Measured]) -> Answer:
    """Answer with the mean of several runs, or of parts of a few."""
    means: list[float] = []
    for run in found:
        chosen = np.ones(len(run.response), bool)
        if "class" in cell:
            chosen = run.task_class == int(cell["class"]) - 1
        order = np.argsort(run.ended[chosen], kind="stable")
        own = run.response[chosen][order]
        parts = np.array_split(own, 1 if len(found) > 2 else BATCHES)
        means += [float(part.mean()) for part in parts if len(part)]
    if not means:
        return Answer(None, detail="no job of it has ended")
    stable = _is_stable(found)
    return Answer(estimate(means), stable, undecided=stable is None)


def _is_stable(found: list[_Measured]) -> bool | None:
    """Judge stability by the number of jobs over time; None if the runs cannot tell."""
    until = min(run.until for run in found)
    times = np.linspace(0, until, 101)
    number = [
        [float((run.submitted <= at).sum() - (run.ended <= at).sum()) for at in times]
        for run in found
    ]
    arrivals, machines = float(found[0].arrivals.sum()), found[0].rates.shape[1]
    system = with_same_work(found[0].system)
    known = long_run_of(system)
    return stability(
        times,
        np.array(number),
        arrivals,
        load=bound(system, known.load),
        settling=known.settling,
        waiting=known.queue,
        machines=machines,
        busy=min(float(np.mean([run.busy for run in found])), machines),
    ).stable


def _rate(cell: Cell, found: list[_Measured]) -> Answer:
    where = int(cell["class"]) - 1, int(cell["machine"]) - 1
    values = [float(run.rates[where]) for run in found if run.rates[where] == run.rates[where]]
    if not values:
        return Answer(None, detail="no job of this class ran there")
    return Answer(estimate(values) if len(values) > 1 else exact(values[0]))


def _arrival(cell: Cell, found: list[_Measured]) -> Answer:
    """Answer with arrivals over time; the deviation of a Poisson count is its square root."""
    time = sum(run.until for run in found)
    count = sum(run.arrivals[int(cell["class"]) - 1] * run.until for run in found)
    half = 1.96 * np.sqrt(count) / time
    mean = float(count / time)
    return Answer(Estimate(mean, mean - half, mean + half))


ANSWERS: dict[str, Callable[[Cell, list[_Measured]], Answer]] = {
    "W_mean": _response,
    "W_class": _response,
    "exec_rate_observed": _rate,
    "arrival_rate_observed": _arrival,
}
