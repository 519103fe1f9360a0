"""Evaluate a run: compare it with its twin, with simulations and with published results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np

from ..allocation.lost_work import with_same_work
from ..catalogue import Cell, remarks_on, results_of
from ..grid import Statistics
from ..grid.export_tables import TIME_TITLES, TIMES, Rows, event_tables, known, write_tables
from ..grid.job import Stage
from ..grid.journal_queries import Figures
from ..model import Floats, InputError
from ..model.error import file_errors
from ..simulation import replicate
from .experiment import Experiment
from .runs import Run
from .twin import TWINS, Gap, gap, twin

LONG = 20_000.0
"""Time units of the run whose mean is the long-run mean."""
WITHOUT_END = 5
"""The system is unstable if the mean of a long run is more than this times that of short ones."""
SHORT_RUNS = 200
"""How many runs as long as the real one are simulated."""


class Expectation(NamedTuple):
    """The mean responses of simulated runs of the same experiment."""

    long_run: float
    """The mean response of a long run."""
    low: float
    """The 2.5th percentile of the mean responses of runs of this length."""
    high: float
    """The 97.5th percentile."""

    @property
    def settles(self) -> bool:
        """Whether the system is stable: a long run does not respond ever more slowly."""
        return self.long_run <= WITHOUT_END * self.high


class Report(NamedTuple):
    """A run, and what it is compared with."""

    run: Run
    statistics: Statistics
    twin: Statistics
    gap: Gap
    expected: Expectation | None
    published: dict[str, dict[str, str]]
    """The published testbed and simulation results, by class or overall."""
    rates: Floats
    """Actual execution rates [class, machine], in mean jobs per time unit of execution."""
    state: str
    """Of the run, when the report was begun: a run may go on meanwhile."""
    late_answers: int
    lengths: dict[str, float]
    """The mean work of the submitted jobs, by class and overall; 1 is desired."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as ``--json`` prints it."""
        experiment, system, measured = self.run.experiment, self.run.system, self.statistics
        fared = _fared(measured)
        fared["jobs"]["late_answers"] = self.late_answers
        return {
            "run": self.run.number,
            "name": experiment.name,
            "system": system.name,
            "policy": self.run.about["policy"],
            "executor": experiment.executor,
            "time_unit": experiment.time_unit,
            "state": self.state,
            "until": measured.until,
            **fared,
            "rates": {"desired": system.effective.tolist(), "actual": self.rates.tolist()},
            "arrivals": {
                "desired": system.arrival_rates.tolist(),
                "actual": [each.arrival_rate for each in measured.classes.values()],
            },
            "machines": list(measured.machines),
            "executed": measured.executed.tolist(),
            "overhead_ratios": measured.overhead.tolist(),
            "job_lengths": self.lengths,
            "simulated": _fared(self.twin),
            "gap": {
                "relative": self.gap.relative,
                "shares": self.gap.shares,
                "low": self.gap.low,
                "high": self.gap.high,
            },
            "expected": None if self.expected is None else self.expected._asdict(),
            "published": self.published,
        }


COUNTS = (
    *("finished", "failed", "cancelled", "unfinished"),
    *("lost", "resubmitted", "timed_out", "deaths"),
)
MEANS = ("response", "waiting", "communication", "execution", "notification")


def _fared(found: Statistics) -> dict[str, Any]:
    """Return the statistics of all jobs and of each class, as ``--json`` prints them."""

    def words(figures: Figures) -> dict[str, Any]:
        counts = {name: getattr(figures, name) for name in COUNTS}
        means = {f"mean_{name}": getattr(figures, name) for name in MEANS}
        return {"jobs": {"submitted": figures.arrived, **counts}, **means, **figures.tails}

    classes = [{"name": name, **words(each)} for name, each in found.classes.items()]
    kinds = {"messages": dict(found.messages), "outcome": dict(found.outcome)}
    counted = {name: counts for name, counts in kinds.items() if counts}
    return {**words(found.overall), **counted, "classes": classes}


def report(
    run: Run,
    *,
    expected: bool = True,
    within: Sequence[float] = (),
    progress: Callable[[float], None] = lambda done: None,
) -> Report:
    """Compare a run with its twin, with simulations, and with published results.

    All of it is about one moment of the run, which may go on meanwhile.
    ``within`` are times in time units: the shares of jobs that responded within them are counted.
    ``progress`` is called with the share of the twins that are done.
    """
    run.journal.check()
    state = run.state
    with run.journal.snapshot():
        if run.until == 0:
            raise InputError(f"{run.name} has not begun: there is nothing to compare")
        plain = twin(run, progress=lambda done: progress(done / TWINS))
        return Report(
            run,
            run.statistics(within),
            plain,
            gap(run, plain, progress),
            expect(run.experiment, run.until) if expected else None,
            _published(run),
            actual_rates(run),
            state,
            len(run.journal.events("late answer")),
            job_lengths(run),
        )


def expect(experiment: Experiment, length: float, *, seed: int = 1) -> Expectation:
    """Simulate many runs of a length, and a long one; their assumed rates never change.

    A task that is lost has the same work when it starts again, as a job has in a run.
    """
    policy, system = experiment.chosen_policy(), experiment.system
    if experiment.failures != "generated":
        system = system.replace(failures=None)
    else:
        system = with_same_work(system)
    seeds = np.random.SeedSequence(seed).spawn(SHORT_RUNS + 1)

    def mean_response(horizon: float, own: np.random.SeedSequence) -> float:
        found = replicate(system, policy, horizon=horizon, seed=own)
        done = found.responded > 0
        if not done.any():
            return float("nan")
        return float(np.average(found.response[done], weights=found.responded[done]))

    means = [mean_response(length, own) for own in seeds[1:]]
    known = [mean for mean in means if mean == mean] or [float("nan")]
    low, high = np.quantile(known, [0.025, 0.975])
    return Expectation(mean_response(LONG, seeds[0]), float(low), float(high))


def actual_rates(run: Run) -> Floats:
    """Return the work per time unit of execution [class, machine]; nan where there was none."""
    names = {name: j for j, name in enumerate(run.about["machines"])}
    done, taken = np.zeros(run.system.shape), np.zeros(run.system.shape)
    finished = "number, machine, ended - started FROM job WHERE stage = ? AND started IS NOT NULL"
    if rows := run.journal.select(finished, (str(Stage.finished),)):
        numbers, machines, times = zip(*rows, strict=True)
        chosen = np.array(numbers)
        where = run.jobs.task_classes[chosen], np.array([names[each] for each in machines])
        np.add.at(done, where, run.jobs.works[chosen])
        np.add.at(taken, where, np.array(times))
    with np.errstate(invalid="ignore"):
        return np.where(taken > 0, done / np.where(taken > 0, taken, 1.0), np.nan)


def job_lengths(run: Run) -> dict[str, float]:
    """Return the mean work of the submitted jobs, by class and overall; 1 is desired."""
    came = run.journal.tally()[0]  # jobs are submitted in the order of their list
    kinds, works = run.jobs.task_classes[:came], run.jobs.works[:came]
    chosen = {name: works[kinds == i] for i, name in enumerate(run.system.classes)}
    chosen["all"] = works
    return {name: float(own.mean()) if len(own) else float("nan") for name, own in chosen.items()}


PRINTED = {"lpas_dg": "LPAS_DG", "gcmu": "Gcmu", "fcfs": "FCFS"}
"""Policies by the names under which they were published."""


def _published(run: Run) -> dict[str, dict[str, str]]:
    name = run.system.name.removesuffix(":modulo")  # the same machines in another order
    policy = PRINTED.get(run.experiment.chosen_policy().name)
    found: dict[str, dict[str, str]] = {}
    if not name.startswith("MGST.") or policy is None:
        return found
    for cell in sorted(results_of(name), key=_is_erratum):
        platform = cell.get("platform")
        is_mean = cell["metric"] in ("W_mean", "W_class") and cell.get("policy") == policy
        if not is_mean or platform not in ("testbed", "simulation"):
            continue
        whose = str(cell["class"]) if "class" in cell else "overall"
        words = f"{cell['value']:g}" if "value" in cell else str(cell.get("status", ""))
        if "lo" in cell:
            low, high = f"{cell['lo']:g}", f"{cell['hi']:g}"
            words = low if low == high else f"{low} to {high}"
        found.setdefault(whose, {}).setdefault(platform, words)
    return found


def _is_erratum(cell: Cell) -> bool:
    return any(remark.kind == "erratum" for remark in remarks_on(cell))


def export(run: Run, folder: Path, *, originals: bool = True) -> list[Path]:
    """Write a run's tables into a folder; return their paths.

    Times are in time units since the beginning, except where a title names the time of day. Four
    of the files are copies under the names of the original testbed, if ``originals`` are wanted.
    """
    run.journal.check()
    name = run.experiment.name or run.system.name or f"run-{run.number}"
    name = "".join(each if each.isalnum() or each in "-_." else "-" for each in name)
    with run.journal.snapshot():
        paths = write_tables(folder, _tables(run, run.statistics()))
    copies = {"classes.csv": "classesStats", "jobs.csv": "jobs", "rates.csv": "mue"}
    copies["system.csv"] = "systemStats"
    for source, title in copies.items() if originals else ():
        copy = folder / f"{name}_{title}.txt"
        with file_errors(copy, "written"):
            copyfile(folder / source, copy)  # a long table is made once
        paths.append(copy)
    return paths


def _tables(run: Run, found: Statistics) -> dict[str, Rows]:
    return {
        "jobs.csv": _jobs(run),
        "generations.csv": _generations(run),
        **event_tables(run.journal),
        "classes.csv": _classes(run, found),
        "rates.csv": _rates(run),
        "system.csv": _system(run, found),
    }


def _generations(run: Run) -> Iterator[Sequence[Any]]:
    yield "job", "class", "planned", "submitted", "work"
    known = run.journal.table("job", "number", "class", "submitted")
    drawn = zip(run.jobs.times.tolist(), run.jobs.works.tolist(), strict=True)
    for (number, name, submitted), (planned, work) in zip(known, drawn, strict=False):
        yield number, name, planned, submitted, work


JOB = ("number", "class", "machine", "stage", "attempt", "lost", "timed_out", "deaths", *TIMES)


def _jobs(run: Run) -> Iterator[Sequence[Any]]:
    """Return the table of the jobs, row by row: there may be very many."""
    yield (
        *("job", "class", "machine", "stage", "attempts", "lost", "timed out", "deaths"),
        *(*TIME_TITLES, "response", "submitted at", "work", "error"),
    )
    stretches, unit = _stretches(run), float(run.about["unit"])
    final = {str(each) for each in Stage if each.is_final}
    came, ended = JOB.index("submitted"), JOB.index("ended")
    known = run.journal.table("job", *JOB, "error")
    for row, work in zip(known, run.jobs.works.tolist(), strict=False):
        *cells, error = ["" if cell is None else cell for cell in row]
        submitted, stage = row[came], row[3]
        cells[3] = stage if stage in final else "unfinished"
        origin = next(origin for since, origin in stretches if since <= submitted)
        at = datetime.fromtimestamp(origin + submitted * unit).isoformat(" ", "milliseconds")
        is_done = stage == Stage.finished and row[ended] is not None
        response = row[ended] - submitted if is_done else ""
        yield (*cells, response, at, work, error)


def _classes(run: Run, found: Statistics) -> list[list[Any]]:
    rows: list[list[Any]] = [["class", "desired arrival rate", *found.overall.as_json()]]
    for i, (name, figures) in enumerate(found.classes.items()):
        rows.append(
            [name, float(run.system.arrival_rates[i]), *map(known, figures.as_json().values())]
        )
    rows.append(
        [
            "all",
            float(run.system.arrival_rates.sum()),
            *map(known, found.overall.as_json().values()),
        ]
    )
    return rows


def _rates(run: Run) -> list[list[Any]]:
    names, machines = run.system.classes, run.about["machines"]
    desired = run.system.effective
    return [
        ["class", "machine", "desired rate", "actual rate"],
        *(
            [names[i], machines[j], float(desired[i, j]), known(rate)]
            for (i, j), rate in np.ndenumerate(actual_rates(run))
        ),
    ]


def _system(run: Run, found: Statistics) -> list[list[Any]]:
    began = datetime.fromtimestamp(run.began).isoformat(" ", "seconds")
    return [
        ["system", run.system.name],
        ["policy", run.about["policy"]],
        ["began at", began],
        ["seconds of a time unit", run.about["unit"]],
        ["time units", found.until],
        *([name, known(value)] for name, value in found.overall.as_json().items()),
    ]


def _stretches(run: Run) -> list[tuple[float, float]]:
    """Return the parts between pauses, the last first: the start, and when time 0 was by the clock.

    The clock is the time of day in seconds since 1970.
    """
    begun = run.journal.events("begun", "run resumed")
    unit = run.about["unit"]
    found = [(each.time, each.fields["clock"] - each.time * unit) for each in begun]
    return [*reversed(found), (float("-inf"), run.began)]
