"""Calibrations that go on in the background, one at a time: how fast machines in truth are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock, Thread
from typing import Any

from ..experiments import Store
from ..model import InputError
from ..reproduction import (
    PUBLISHED,
    QUICK,
    Laboratory,
    Section,
    reproduce,
    runs_of,
    section_of,
    targets,
)
from ..testbed import Calibrations, calibrate
from .queue import Background

__all__ = [
    "Calibrating",
    "Calibrator",
    "Rerun",
    "Reruns",
    "report_of",
]

MOST = 100
"""Machines of one calibration."""


@dataclass
class Calibrating(Background):
    """A calibration of some machines: processes of this computer."""

    number: int
    machines: tuple[str, ...]
    repeats: int
    longest: float
    share: float = 0.0
    at: str = ""
    """The machine at work."""
    found: Calibrations | None = None

    def work(self) -> None:
        """Measure."""
        self.found = calibrate(
            self.machines, repeats=self.repeats, longest=self.longest, progress=self._note
        )
        self.share = 1.0

    def _note(self, machine: str, done: float) -> None:
        self.go_on()
        self.at, self.share = machine, done

    def as_json(self) -> dict[str, Any]:
        """Say how far it is, and what came of it."""
        return {
            "id": self.number,
            "state": self.state,
            "error": self.error,
            "share": self.share,
            "at": self.at,
            "machines": list(self.machines),
            "found": None if self.found is None else self.found.as_json(),
        }


class Calibrator:
    """The calibrations of this server; only the last is remembered."""

    def __init__(self) -> None:
        self.last: Calibrating | None = None
        self._lock = Lock()

    def start(
        self, machines: Sequence[str], *, repeats: int = 3, longest: float = 0.1
    ) -> Calibrating:
        """Begin to measure machines, each a process of this computer."""
        if not machines or len(machines) > MOST:
            raise InputError(f"{len(machines)} machines to calibrate; expected 1 to {MOST}")
        if len(set(machines)) < len(machines):
            raise InputError("two machines have the same name; expected one each")
        with self._lock:
            if self.last is not None and not self.last.is_over:
                raise InputError("a calibration is going on; stop it first")
            number = 1 if self.last is None else self.last.number + 1
            made = self.last = Calibrating(
                number, tuple(machines), repeats, longest, state="running"
            )
        Thread(target=made.run, name="calibration", daemon=True).start()
        return made

    def find(self, number: int) -> Calibrating | None:
        """Find a calibration by its number, if it was the last."""
        return self.last if self.last is not None and self.last.number == number else None

    def close(self) -> None:
        """Stop what goes on."""
        if self.last is not None:
            self.last.stop()


@dataclass
class Rerun(Background):
    """A table that is run again."""

    table: str
    quick: bool
    share: float = 0.0
    section: Section | None = None

    def work(self) -> None:
        """Simulate what the table needs and is not kept yet."""
        laboratory = Laboratory(QUICK if self.quick else PUBLISHED, store=Store())
        needed = max(len(runs_of([targets()[self.table]])), 1)

        def show(run: Any, done: float) -> None:
            self.go_on()
            self.share = min((len(laboratory.results) + done) / needed, 1.0)

        laboratory.show = show
        (found,) = reproduce(self.table, laboratory=laboratory)
        self.section, self.share = section_of(found), 1.0

    def as_json(self) -> dict[str, Any]:
        """Say how far it is, and what came of it."""
        return {
            "table": self.table,
            "quick": self.quick,
            "state": self.state,
            "error": self.error,
            "share": self.share,
            "found": None if self.section is None else self.section.as_json(),
        }


class Reruns:
    """The tables that this server runs again; of each, the last time counts."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reproduction")
        self._known: dict[str, Rerun] = {}
        self._lock = Lock()

    def start(self, table: str, *, quick: bool = True) -> Rerun:
        """Run a table again."""
        if table not in targets():
            raise InputError(f"no table {table[:80]!r}")
        with self._lock:
            known = self._known.get(table)
            if known is not None and not known.is_over:
                raise InputError(f"{table} is being run already")
            made = self._known[table] = Rerun(table, quick)
        self._pool.submit(made.run)
        return made

    def find(self, table: str) -> Rerun | None:
        """Find a table that was run again."""
        return self._known.get(table)

    def close(self) -> None:
        """Stop everything."""
        for each in list(self._known.values()):
            each.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)


AT_ONCE = BoundedSemaphore(2)
PATIENCE = 900.0
"""Seconds that a report may take."""


def report_of(number: int) -> dict[str, Any]:
    """Return the report on a run, as ``gridwright runs show --json`` prints it."""
    if not AT_ONCE.acquire(blocking=False):
        raise InputError("other reports are being made; try again in a moment")
    try:
        return _made(number)
    except subprocess.TimeoutExpired:
        raise InputError(f"the report on run {number} takes too long") from None
    finally:
        AT_ONCE.release()


def _made(number: int) -> dict[str, Any]:
    words = ["runs", "show", str(number), "--no-expect", "--json"]
    command = [sys.executable, "-m", "gridwright", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise InputError(said[-1].removeprefix("gridwright: "))
    found: dict[str, Any] = json.loads(done.stdout)
    return found
