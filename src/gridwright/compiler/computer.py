"""What kind of computer this is: speeds are to be read with it."""

import os
import platform
from pathlib import Path

__all__ = [
    "computer",
    "processor_model",
]


def computer() -> str:
    """Name the architecture of this computer, its processor's model if it tells, and how many."""
    count = os.cpu_count() or 1
    words = (platform.machine(), processor_model())
    number = f"{count} processor{'' if count == 1 else 's'}"
    return ", ".join([*dict.fromkeys(filter(None, words)), number])


def processor_model(told: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor's model; empty where nobody tells."""
    try:
        lines = told.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor()
