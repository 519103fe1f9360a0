"""A load: processes that occupy a share of this computer's CPU."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from contextlib import suppress
from typing import Self

from ..grid.agent import LOAD
from ..model import InputError


class Load:
    """Occupy a share of this computer's CPU, so that its availability is ``1 - share``.

    One process for each processor works and rests in turn, fifty times a second, and measures its
    own CPU time. On a busy machine it gets at most its fair part: beside one job on every processor
    that is half. The grid's agent counts a load as foreign. A load ends when this process ends or
    is killed.

    Parameters
    ----------
    share
        The share of each processor, from 0 to 1.
    cores
        How many processors; by default all.

    Examples
    --------
    >>> with Load(0.25, cores=1) as load:
    ...     len(load.pids)
    1
    """

    def __init__(self, share: float, cores: int | None = None) -> None:
        if hasattr(os, "sched_getaffinity"):
            there = sorted(os.sched_getaffinity(0))
        else:
            there = list(range(os.cpu_count() or 1))
        if cores is not None and not 1 <= cores <= len(there):
            raise InputError(f"cores is {cores}; this computer has 1 to {len(there)}")
        self.share = _checked(share)
        self.cores = there[:cores]
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """The pids of its processes."""
        return [process.pid for process in self._processes]

    def start(self) -> None:
        """Start the processes."""
        if self._processes:
            return
        # without site-packages it starts in a few milliseconds
        command = [sys.executable, "-I", "-S", "-c", SCRIPT, LOAD]
        for core in self.cores:
            process = subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, bufsize=0)
            self._processes.append(process)
        self.change(self.share)

    def change(self, share: float) -> None:
        """Occupy another share from now on."""
        self.share = _checked(share)
        for process in self._processes:
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # somebody has killed it
                    process.stdin.write(f"{share}\n".encode())

    def stop(self) -> None:
        """Kill the processes, and wait until they have ended."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _checked(share: float) -> float:
    if not 0 <= share <= 1:
        raise InputError(f"share is {share:g}; expected a number from 0 to 1")
    return float(share)


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
