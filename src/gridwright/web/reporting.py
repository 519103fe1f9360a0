"""A run beside its twin, worked out in a process of its own: of a long run that takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from threading import BoundedSemaphore
from typing import Any

from ..model import InputError

__all__ = ["report_of"]

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
