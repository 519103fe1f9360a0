"""Calibrations that go on in the background, one at a time: how fast machines in truth are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from ..model import InputError
from ..testbed import Calibrations, calibrate
from .background import Background

__all__ = ["Calibrating", "Calibrator"]

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
