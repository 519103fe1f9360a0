"""A load: processes that really occupy a share of this computer's CPU."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from ..grid.agent import LOAD
from ..model import InputError


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
                    # without site-packages it starts in a few milliseconds
                    [sys.executable, "-I", "-S", "-c", SCRIPT, LOAD, str(core)],
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


def occupy() -> None:
    """Occupy a share of the processor whose number is the second argument.

    This is the whole program of a load's process, which is named by the first argument. It reads
    the share to occupy from its standard input and ends when that is closed. It imports what it
    needs itself, because only its source is passed to the process.
    """
    import os
    import select
    import sys
    import time

    cycle_length = 0.02  # seconds of work and rest: others see a slower machine, not pauses
    most_arrears = 0.2  # CPU seconds that are made up for; more would show as a burst later
    name, core = sys.argv[1], int(sys.argv[2])
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(name)
        os.sched_setaffinity(0, {core})
    except (OSError, AttributeError):  # this system has neither; it works without
        pass
    share, began, used = 0.0, time.monotonic(), time.process_time()
    orders = select.poll()
    orders.register(0, select.POLLIN)
    while True:
        cycle = time.monotonic()
        # What is owed until the end of the cycle, less what was used: both errors even out.
        owed = share * (cycle + cycle_length - began) - (time.process_time() - used)
        if owed > most_arrears:
            used -= owed - most_arrears
        end = time.process_time() + min(owed, cycle_length)
        while time.process_time() < end:
            pass
        rest = cycle + cycle_length - time.monotonic() if share else 3600.0
        if orders.poll(max(1000 * rest, 0)):
            said = os.read(0, 1000).split()
            if not said:
                return
            share, began, used = float(said[-1]), time.monotonic(), time.process_time()


SCRIPT = f"{inspect.getsource(occupy)}\noccupy()"
"""The program of the processes of a load."""
