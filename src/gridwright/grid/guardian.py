"""The guardian of a worker: it ends the processes of its jobs, and makes its machine slower.

It ends the worker and every process that the jobs have started, daemons too, when the worker dies,
when the process that started it dies, or on SIGTERM. Then it ends in the same way as the worker. It
has no lock and no thread in common with the jobs, so nothing that a job does can stop it from doing
so.

A machine of availability *a* runs its jobs for the share *a* of the time. The guardian stops and
continues their processes, many times a second: this needs no privilege, takes no processor from
other machines, and holds for any share, while a load beside a job gets at most half of a processor.

The module imports little, and nothing of this package.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

LOOK = 1.0
"""Seconds after which a guardian checks its parent even without a signal."""
SOON = 0.05
"""Seconds between checks of a guardian whether all processes are gone."""
PATIENCE = 5.0
"""Seconds after which a guardian gives up on processes that it cannot kill."""
SUBREAPER, PARENT_DEATH = 36, 1
"""Numbers of options of ``prctl``: adopt orphans; get a signal when the parent dies."""
CYCLE, LONGEST = 0.02, 1.0
"""Seconds in which a slow machine runs and rests once; the most for a very slow one."""
SHORTEST = 0.005
"""The least seconds for which it runs, because to stop and to continue take time too."""
MOMENT = 1e-4
"""The least seconds between two steps."""
ARREARS = 0.2
"""The most seconds that are made up for later; more would show as a pause."""


class Pace(ctypes.Structure):
    """How fast a machine is: numbers that its processes share.

    The process that started the guardian sets ``share``, and the worker ``working``. While it
    works and the share is below 1, the guardian adds up the other two.
    """

    share: float
    """The share of the time in which jobs may run."""
    working: float
    """1 while there is a job that uses the processor, otherwise 0."""
    watched: float
    """Seconds in which the guardian made jobs slower."""
    stopped: float
    """Seconds of these in which they were stopped."""

    _fields_ = [(name, ctypes.c_double) for name in ("share", "working", "watched", "stopped")]

    @classmethod
    def of(cls, file: int) -> Pace:
        """Return the numbers in a file, shared by all processes that have opened it."""
        return cls.from_buffer(mmap.mmap(file, ctypes.sizeof(cls)))


def guard(line: socket.socket, parent: int, pace: Pace) -> None:
    """Fork. Return in the child; in the parent, watch the child and end with it."""
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGCONT}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    _prctl(SUBREAPER, 1)
    _prctl(PARENT_DEATH, signal.SIGCONT)  # it also wakes a guardian that was stopped
    own, worker = os.getpid(), os.fork()
    if worker == 0:
        os.setpgid(0, 0)
        _prctl(PARENT_DEATH, signal.SIGKILL)
        if os.getppid() != own:  # the guardian died before we asked for the signal
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        return
    line.close()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # closing the terminal ends the grid, not us
    with suppress(OSError):  # the child has done it, or is gone
        os.setpgid(worker, worker)
    _watch(worker, parent, watched, pace)
    _end(_sweep(worker))


def _watch(worker: int, parent: int, signals: set[signal.Signals], pace: Pace) -> None:
    """Return when the worker has died, the parent has died, or SIGTERM has come."""
    looks = os.WEXITED | os.WNOHANG | os.WNOWAIT
    brake = Brake(pace, partial(_send, worker))
    while os.getppid() == parent:
        came = signal.sigtimedwait(signals, brake.step(time.monotonic()))
        while (ended := os.waitid(os.P_ALL, 0, looks)) is not None:
            if ended.si_pid == worker:
                return  # not reaped yet: its group keeps its number
            os.waitpid(ended.si_pid, 0)
        if came is not None and came.si_signo == signal.SIGTERM:
            return


class Brake:
    """Stops and continues the processes of a worker, so that they run for a share of the time.

    It adds up for how long they still have to be stopped, as measured: if it is late once, the
    next run or the next rest is longer.
    """

    def __init__(self, pace: Pace, send: Callable[[int], None]) -> None:
        self.pace, self.send = pace, send
        self.share, self.owed, self.last = 1.0, 0.0, 0.0
        self.is_on = self.is_stopped = False

    def step(self, now: float) -> float:
        """Stop or continue them if it is time to; return the seconds until the next step."""
        passed, self.last = now - self.last, now
        if self.is_on:
            self.pace.watched += passed
            self.pace.stopped += passed * self.is_stopped
            self.owed += passed * (1 - self.share - self.is_stopped)
            self.owed = min(max(self.owed, -ARREARS), ARREARS)
        share = min(max(self.pace.share, 1e-6), 1.0)
        self.is_on = bool(self.pace.working) and share < 1
        most = share * (1 - share) * min(max(CYCLE, SHORTEST / share), LONGEST)
        if share != self.share:  # begin anywhere in the cycle: short jobs are right on average
            self.share, self.owed = share, most * os.urandom(1)[0] / 256
        if self.is_stopped and (self.owed <= 0 or not self.is_on):
            self._switch(signal.SIGCONT)
        elif self.is_on and not self.is_stopped and self.owed >= most:
            self._switch(signal.SIGSTOP)
        if not self.is_on:
            return LOOK
        left = self.owed / share if self.is_stopped else (most - self.owed) / (1 - share)
        return max(left, MOMENT)

    def _switch(self, number: signal.Signals) -> None:
        self.is_stopped = number == signal.SIGSTOP
        self.send(number)


def _sweep(worker: int) -> int:
    """Kill the worker and its descendants; return the exit code of the worker.

    A process whose parent is dead becomes a child of the guardian, so killing children until there
    are none left reaches all of them.
    """
    with suppress(ProcessLookupError):
        os.killpg(worker, signal.SIGKILL)  # all at once, so that none can fork first
    status, end = int(signal.SIGKILL), time.monotonic() + PATIENCE
    with suppress(ChildProcessError):  # no child is left
        while time.monotonic() < end:
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):  # a process of another user
                    os.kill(child, signal.SIGKILL)
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                status = ended[1] if ended[0] == worker else status
            signal.sigtimedwait({signal.SIGCHLD}, SOON)
    return os.waitstatus_to_exitcode(status)


def _send(worker: int, number: int) -> None:
    """Send a signal to the worker and the processes of its jobs."""
    with suppress(OSError):  # they have ended
        os.killpg(worker, number)


def _children() -> list[int]:
    with suppress(OSError), open("/proc/thread-self/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]
    return []


def _end(code: int) -> None:
    """Exit in the same way as the worker."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code if code > 0 else 0)


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
