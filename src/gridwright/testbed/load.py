"""A load: processes that really occupy a share of this computer's CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from ..grid.cpu import LOAD
from ..model import InputError
from . import occupy

__all__ = ["Load"]


class Load:
    """Occupies a share of this computer's CPU, to make an availability of ``1 - share`` real.

    One process for each processor works and rests in turn, fifty times a second, by its own CPU
    time. A busy machine gives each process its fair part at most, so that beside one job on every
    processor no more than half can be had. The grid's agent sees a load as foreign. It ends with
    this process, in whatever way that ends.

    Parameters
    ----------
    share
        The share of each processor, from 0 to 1.
    cores
        How many processors; all unless given.

    Examples
    --------
    >>> with Load(0.25, cores=1) as load:
    ...     len(load.pids)
    1
    """

    def __init__(self, share: float, cores: int | None = None) -> None:
        there = _cores()
        if cores is not None and not 1 <= cores <= len(there):
            raise InputError(f"cores is {cores}; this computer has 1 to {len(there)}")
        self.share = _checked(share)
        self.cores = there[:cores]
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """The processes at work."""
        return [process.pid for process in self._processes]

    def start(self) -> None:
        """Begin."""
        if self._processes:
            return
        for core in self.cores:
            self._processes.append(
                subprocess.Popen(
                    # without site-packages, it is at work in a few milliseconds
                    [sys.executable, "-I", "-S", occupy.__file__, LOAD, str(core)],
                    stdin=subprocess.PIPE,
                    bufsize=0,
                )
            )
        self.change(self.share)

    def change(self, share: float) -> None:
        """Occupy another share from now on."""
        self.share = _checked(share)
        for process in self._processes:
            if process.stdin is not None:
                try:
                    process.stdin.write(f"{share}\n".encode())
                except BrokenPipeError:
                    continue  # somebody has killed it

    def stop(self) -> None:
        """End, and leave nothing behind."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _checked(share: float) -> float:
    if not 0 <= share <= 1:
        raise InputError(f"share is {share:g}; expected a number from 0 to 1")
    return float(share)


def _cores() -> list[int]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
