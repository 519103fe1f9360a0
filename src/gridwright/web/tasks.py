"""Background tasks besides simulations: calibrations, reproduced tables, reports on runs."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any

from .. import __version__, reproduction
from ..experiments import Store
from ..model import InputError
from ..testbed import Calibrations, calibrate
from ..traces import duration
from .queue import Queue, Task
from .runs import open_journal, path_of

MOST_MACHINES = 100
"""Machines of one calibration."""
PATIENCE = 900.0
"""Seconds that a report may take."""
LEAST_SHARE = 0.05
"""The share of a report after which it says how long the rest takes."""


@dataclass
class CalibrationTask(Task):
    """Measure how fast machines are; each is a process of this computer."""

    kind = "calibration"

    machines: Sequence[str]
    repeats: int = 3
    longest: float = 0.1
    at: str = ""
    """The machine that is being measured."""
    found: Calibrations | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.machines) <= MOST_MACHINES:
            raise InputError(
                f"{len(self.machines)} machines to calibrate; expected 1 to {MOST_MACHINES}"
            )
        if len(set(self.machines)) < len(self.machines):
            raise InputError("two machines have the same name; expected different names")

    def refusal(self, others: list[Task]) -> str:
        """Refuse a second calibration: the two would disturb each other."""
        return "a calibration is running; stop it first" if others else ""

    def work(self) -> None:
        """Measure every machine."""
        options: Any = {"repeats": self.repeats, "longest": self.longest, "progress": self._note}
        self.found = calibrate(tuple(self.machines), **options)

    def _note(self, machine: str, done: float) -> None:
        self.go_on()
        self.at, self.share = machine, done

    def as_json(self) -> dict[str, Any]:
        """Return progress and result."""
        found = None if self.found is None else self.found.as_json()
        about = {"id": self.number, "at": self.at, "machines": list(self.machines), "found": found}
        return {**about, **self.record()}


@dataclass
class TableTask(Task):
    """Reproduce a published table once more."""

    kind = "table"

    table: str
    quick: bool = True
    section: reproduction.Section | None = None

    def __post_init__(self) -> None:
        if self.table not in reproduction.targets():
            raise InputError(f"no table {self.table[:80]!r}")

    def refusal(self, others: list[Task]) -> str:
        """Refuse a table that waits or runs already."""
        same = any(isinstance(each, TableTask) and each.table == self.table for each in others)
        return f"{self.table} is being run already" if same else ""

    def work(self) -> None:
        """Simulate what the table needs and is not stored yet."""
        scale = reproduction.QUICK if self.quick else reproduction.PUBLISHED
        laboratory = reproduction.Laboratory(scale, store=Store())
        needed = max(len(reproduction.runs_of([reproduction.targets()[self.table]])), 1)

        def show(what: str, done: float) -> None:
            self.go_on()
            self.share = min(done / needed, 1.0)

        laboratory.show = show
        (found,) = reproduction.reproduce(self.table, laboratory=laboratory)
        self.section = reproduction.section_of(found, laboratory)

    def as_json(self) -> dict[str, Any]:
        """Return progress and result."""
        found = None if self.section is None else self.section.as_json()
        return {"table": self.table, "quick": self.quick, "found": found, **self.record()}


@dataclass
class ReportTask(Task):
    """Compare a run with its simulated twin, in a process: a long run takes minutes."""

    kind = "report"
    at_once = 2

    run_number: int
    report: dict[str, Any] | None = None
    began: float = 0.0

    @property
    def left(self) -> str:
        """About how long it still takes, in words, once that can be said."""
        if self.share < LEAST_SHARE:
            return ""
        seconds = (time.monotonic() - self.began) * (1 / self.share - 1)
        return f", about {duration.in_words(round(seconds))} left"

    def refusal(self, others: list[Task]) -> str:
        """Refuse a third report: a request waits for its report."""
        busy = len(others) >= self.at_once
        return "other reports are being made; try again in a moment" if busy else ""

    def work(self) -> None:
        """Make the report in a process, note how far it is, and keep it beside the run."""
        begun, self.began = mark_of(self.run_number), time.monotonic()
        command = [sys.executable, "-m", "gridwright.web.report_process", str(self.run_number)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        said = ["the report ended without a message"]
        printed: list[str] = []
        with subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, **pipes) as process:
            readers = [
                Thread(target=printed.extend, args=(process.stdout,)),
                Thread(target=self._listen, args=(process.stderr, said)),
            ]
            for each in readers:
                each.start()
            try:
                self._wait(process)
            finally:
                process.kill()
                for each in readers:
                    each.join()
        if process.returncode:
            raise InputError(said[-1])
        self.report = json.loads("".join(printed))
        keep_report(self.run_number, self.report, begun)

    def _listen(self, lines: Iterable[str], said: list[str]) -> None:
        """Note the share that is done; keep every line that is no number."""
        for line in lines:
            try:
                self.share = float(line)
            except ValueError:
                said.append(line.strip())

    def _wait(self, process: subprocess.Popen[str]) -> None:
        """Wait for a process, unless the task is stopped or takes too long."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.go_on()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
                return
        raise InputError(
            f"the report on run {self.run_number} takes longer than {PATIENCE:g} seconds"
        )


def mark_of(number: int) -> list[Any]:
    """Return what changes whenever a run goes on, or another version makes its report."""
    with open_journal(number) as journal:
        return [__version__, *journal.select("max(rowid), max(time) FROM event")[0]]


def keep_report(number: int, report: dict[str, Any], mark: list[Any]) -> None:
    """Keep the report beside the run, unless it has gone on or the disk is full."""
    path = path_of(number, "twin.json")
    with suppress(OSError, InputError):
        if mark == mark_of(number):
            new = path.with_suffix(".new")
            new.write_text(json.dumps({"mark": mark, "report": report}), "utf-8")
            new.replace(path)


def kept_report(number: int) -> dict[str, Any] | None:
    """Return the report that was kept beside a run; None if the run has gone on since."""
    with suppress(OSError, ValueError, KeyError, TypeError, InputError):
        found = json.loads(path_of(number, "twin.json").read_text("utf-8"))
        if found["mark"] == mark_of(number) and isinstance(found["report"], dict):
            return dict(found["report"])
    return None


def report_of(queue: Queue, number: int) -> dict[str, Any]:
    """Return the report on a run that was kept, or make it, and wait for it."""
    if (kept := kept_report(number)) is not None:
        return kept
    task = queue.start(ReportTask(number))
    task.ended.wait()
    if task.report is None:
        raise InputError(task.error or f"the report on run {number} was stopped")
    return task.report
