"""The jobs of a soak: what they do, and how they should end."""

import ctypes
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["FINISH", "HUGE", "KINDS", "STUCK", "SlowToUnpickle", "job", "plan"]

KINDS = {
    "quick": 0.954,
    "fails": 0.01,
    "forks": 0.01,
    "slow to unpickle": 0.008,
    "huge result": 0.002,
    "huge error": 0.002,
    "bad result": 0.003,
    "poison": 0.005,
    "garbage": 0.003,
    "endless": 0.002,
    "endless, in C": 0.001,
}
"""Kinds of jobs, and the share of each."""
FINISH = {"quick", "forks", "slow to unpickle", "huge result", "bad result"}
"""Those that end well, unless their machine was killed too often. The others fail."""
STUCK = {"garbage", "endless", "endless, in C"}
"""Those that do not end by themselves."""
HUGE = 8_000_000
"""Bytes of a huge result."""


class SlowToUnpickle:
    """Takes a while to unpickle."""

    def __reduce__(self) -> tuple[Callable[[float], None], tuple[float]]:
        return time.sleep, (0.3,)


class BadResult:
    """Raises SystemExit when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return sys.exit, (3,)


def job(kind: str, number: int, log: str, seconds: float, _: object = None) -> Any:
    """Write down that it runs, and do what its kind does."""
    line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, f"{number}\n".encode())
    os.close(line)
    if kind == "fails":
        raise ValueError("as it should")
    if kind == "huge error":
        raise ValueError("x" * 50_000_000)
    if kind == "huge result":
        return bytes(HUGE)
    if kind == "bad result":
        return BadResult()
    if kind in ("forks", "endless", "poison") and os.fork() == 0:
        if number % 2:
            os.setsid()
        time.sleep(100_000)
    if kind == "poison":
        os.kill(os.getpid(), signal.SIGKILL if number % 2 else signal.SIGSEGV)
    if kind == "garbage":
        write_garbage()
    if kind == "endless, in C":
        ctypes.PyDLL(None).sleep(100_000)
    time.sleep(100_000 if kind in ("endless", "garbage") else seconds)
    return number


def write_garbage() -> None:
    """Write to every socket of this process."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.write(int(name), bytes(range(256)) * 9)


def plan(jobs: int, seed: int, longest: float = 0.03) -> list[tuple[str, float]]:
    """Return the kind of every job and the seconds that a quick one takes; each kind is there."""
    rng = random.Random(seed)
    kinds = [*KINDS, *rng.choices(list(KINDS), list(KINDS.values()), k=jobs)][:jobs]
    rng.shuffle(kinds)
    return [(kind, rng.uniform(0.002, longest)) for kind in kinds]
