"""A run beside its twin, worked out in a process of its own: of a long run that takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ..model import InputError

__all__ = ["report_of"]


def report_of(number: int) -> dict[str, Any]:
    """Return the report on a run, as ``gridwright runs show --json`` prints it."""
    words = ["runs", "show", str(number), "--no-expect", "--json"]
    command = [sys.executable, "-m", "gridwright", *words]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise InputError(said[-1].removeprefix("gridwright: "))
    found: dict[str, Any] = json.loads(done.stdout)
    return found
