"""A soak of a grid: a program runs it, is killed, and is started again on the same journal."""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import cloudpickle
import numpy as np
import soak_jobs
from soak_account import Account, account, lines
from soak_jobs import FINISH, KINDS, SlowToUnpickle, job, plan

from gridwright.grid import Grid

__all__ = ["DRAIN", "PROGRAM", "TRIES", "Soak", "client", "processes"]

cloudpickle.register_pickle_by_value(soak_jobs)  # workers cannot import it

PROGRAM = str(Path(__file__).with_name("soak.py"))
MARK = "GRIDWRIGHT_SOAK"
"""The environment variable by which every process of a soak is found."""
ACTIONS = ("wait", "duplicate", "resubmit", "fail")
TIMEOUT = 2.0
"""Seconds that a job may take: every job is expected to take 1 s, and this is the time-out."""
RETRIES = 2
TRIES = 10
"""How often a program may end before its grid is ready."""
DRAIN = 180.0
"""Seconds for the last jobs to end when nothing is killed any more."""

# the client: a program that runs a grid and submits jobs until it is killed


def client(options: argparse.Namespace) -> None:
    """Submit what was not acknowledged yet, at its time; then wait until everything has ended."""
    folder, jobs = Path(options.folder), plan(options.jobs, options.seed, options.longest)
    acknowledged = folder / "acknowledged"
    done = {int(line.split()[0]) for line in lines(acknowledged)}
    pending: set[Future[Any]] = set()
    with (
        grid_of(options, folder) as grid,
        acknowledged.open("a", buffering=1) as said,
        (folder / "tried").open("a", buffering=1) as tried,
    ):
        print("ready", flush=True)
        pending.update(grid.unfinished.values())
        for k, (kind, seconds) in enumerate(jobs):
            if k in done or (options.action == "wait" and kind.startswith("endless")):
                continue  # nothing would end it; a later client submits it
            time.sleep(max(options.begin + k * options.pace - time.time(), 0))
            more = SlowToUnpickle() if kind == "slow to unpickle" else None
            tried.write(f"{k}\n")
            future = grid.options(task_class=kind).submit(
                job, kind, k, str(folder / "runs"), seconds, more
            )
            said.write(f"{k} {future.number}\n")
            pending.add(future)
            if len(pending) > 1000:
                pending = {each for each in pending if not each.done()}
        if options.action == "wait":
            time.sleep(1000)  # until it is killed: the endless jobs are still to come
        wait(pending)


def grid_of(options: argparse.Namespace, folder: Path) -> Grid:
    """Make a grid on the journal, which may have jobs of an earlier client."""
    more: dict[str, Any] = {"retries": RETRIES, "durable": True}
    if options.executor == "dask":
        more["on"] = options.address
    return Grid(
        options.policy,
        options.machines,
        classes=list(KINDS),
        rates=np.ones((len(KINDS), options.machines)),
        corrections=False,
        journal=folder / "journal.sqlite",
        timeout_factor=TIMEOUT,
        on_timeout=options.action,
        **more,
    )


# the driver


@dataclass
class Soak:
    """A client that runs a grid, perhaps a cluster, and what was done to them."""

    role = "client"
    """What the program is called that runs the grid."""
    options: argparse.Namespace
    folder: Path
    mark: str = field(default_factory=lambda: uuid4().hex)
    rng: random.Random = field(default_factory=random.Random)
    begin: float = field(default_factory=time.time)
    lives: list[list[float]] = field(default_factory=list)
    """When each client was ready, and when it ended."""
    done: Counter[str] = field(default_factory=Counter)
    """What was done to the processes, and how often."""
    wrong: list[str] = field(default_factory=list)
    program: subprocess.Popen[bytes] | None = None
    """What runs the grid."""
    cluster: subprocess.Popen[bytes] | None = None
    port: int = 0
    stopped: dict[int, float] = field(default_factory=dict)
    """Processes that are stopped, and until when."""

    def run(self) -> None:
        """Run clients one after the other until every job has ended."""
        self.rng.seed(self.options.seed)
        left = 60 * self.options.minutes
        try:
            self._keep_cluster()
            self.begin = time.time()
            while left > 0:
                self._start()
                self._disturb(left)
                left -= self.lives[-1][1] - self.lives[-1][0]
                if self.program is not None and self.program.returncode == 0:
                    break  # every job has ended
            self._drain()
        finally:
            self._end()

    def account(self) -> Account:
        """Return what has become of the jobs."""
        kinds = [kind for kind, _ in plan(self.options.jobs, self.options.seed)]
        return account(self.folder, kinds, FINISH, self.lives)

    def _start(self, action: str = "") -> None:
        """Start a client, and wait until its grid is ready."""
        known = ACTIONS if not self.lives else ACTIONS[1:]
        action = action or known[len(self.lives) % len(known)]
        while not self._launch(action):  # perhaps too few workers were there
            self.done["client that was not ready"] += 1
            if self.done["client that was not ready"] > TRIES:
                raise SystemExit((self.folder / "client.log").read_text()[-2000:])
        self.lives.append([time.time(), float("inf")])
        self.done[f"client with {action}"] += 1

    def _launch(self, action: str) -> bool:
        """Start a client; return whether its grid got ready."""
        self._keep_cluster()
        words = self._words(f"--action={action}", f"--address=tcp://127.0.0.1:{self.port}")
        self.program = self._popen([sys.executable, PROGRAM, *words], "client.log")
        assert self.program.stdout is not None
        with self.program.stdout as line:
            ready = line.readline()
        if not ready:
            self.program.wait()
        return bool(ready)

    def _words(self, *more: str) -> list[str]:
        """Return the arguments of a client."""
        options, pace = self.options, 56 * self.options.minutes / self.options.jobs
        given = ("jobs", "seed", "executor", "machines", "policy", "longest")
        words = [f"--{name}={getattr(options, name)}" for name in given]
        return [*words, f"--folder={self.folder}", f"--begin={self.begin}", f"--pace={pace}", *more]

    def _popen(self, command: list[str], log: str) -> subprocess.Popen[bytes]:
        """Start a process of the soak."""
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, MARK: self.mark},
            )

    def _disturb(self, seconds: float) -> None:
        """Kill and stop processes for so many seconds at most; then kill the client."""
        assert self.program is not None
        last = time.time() + min(self.rng.uniform(0.5, 1.5) * self.options.life, seconds)
        while self.program.poll() is None and time.time() < last:
            self._wait_to_harm()
            self._keep_cluster()
            self.rng.choice(self._harms())()
        self._let_go(all_of_them=True)
        if self.program.poll() is None:
            self.done["client killed"] += 1
            self.program.kill()
        elif self.program.returncode != 0:
            self.wrong.append(f"a client ended with status {self.program.returncode}")
        self.program.wait()
        self.lives[-1][1] = time.time()

    def _wait_to_harm(self) -> None:
        end = time.time() + self.options.harm * self.rng.uniform(1 / 3, 5 / 3)
        while (left := end - time.time()) > 0:
            time.sleep(min(left, 0.2))
            self._let_go()

    def _harms(self) -> list[Callable[[], None]]:
        """Return what can be done to the processes now; what is there twice is done more often."""
        found = [self._kill_worker, self._kill_worker, self._stop_worker, self._stop_program]
        if self.cluster is not None:
            found += [self._kill_dask_worker]
            if self.rng.random() < 0.1:
                found += [self._kill_scheduler]
        return found

    def _kill_worker(self) -> None:
        self._signal("worker killed", "grid/worker.py", signal.SIGKILL)

    def _kill_dask_worker(self) -> None:
        self._signal("Dask worker killed", "multiprocessing.spawn", signal.SIGKILL)

    def _stop_worker(self) -> None:
        pid = self._signal("worker stopped", "grid/worker.py", signal.SIGSTOP)
        if pid:
            self.stopped[pid] = time.time() + self.rng.uniform(0.5, 4)

    def _stop_program(self) -> None:
        if self.program is not None:
            self._stop(self.program, self.role)

    def _stop(self, process: subprocess.Popen[bytes], role: str) -> None:
        """Stop a process for up to a second."""
        if process.poll() is None:
            self.done[f"{role} stopped"] += 1
            process.send_signal(signal.SIGSTOP)
            self.stopped[process.pid] = time.time() + self.rng.uniform(0.2, 1)

    def _kill_scheduler(self) -> None:
        if self.cluster is not None and self.cluster.poll() is None:
            self.done["scheduler killed"] += 1
            self.cluster.kill()

    def _signal(self, what: str, words: str, number: signal.Signals) -> int:
        """Send a signal to one of the processes whose command has some words in it."""
        found = sorted(pid for pid, command in processes(self.mark) if words in command)
        if not found:
            return 0
        pid = self.rng.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            self.done[what] += 1
        return pid

    def _let_go(self, *, all_of_them: bool = False) -> None:
        for pid, until in list(self.stopped.items()):
            if all_of_them or time.time() > until:
                del self.stopped[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _keep_cluster(self) -> None:
        """Start a scheduler and workers, if they are wanted and not there."""
        if self.options.executor != "dask":
            return
        if self.cluster is not None:
            if self.cluster.poll() is None:
                return
            if self.cluster.stdout is not None:
                self.cluster.stdout.close()
        self.port = self.port or free_port()
        words = ["--local", str(self.options.machines), "--port", str(self.port), "--json"]
        command = [sys.executable, "-m", "gridwright", "dask", "workers", *words]
        self.cluster = self._popen(command, "cluster.log")
        assert self.cluster.stdout is not None
        if not self.cluster.stdout.readline():
            self.wrong.append("the cluster did not start")

    def _drain(self) -> None:
        """Let a last client end everything in peace."""
        self._start("fail")
        assert self.program is not None
        try:
            status = self.program.wait(DRAIN)
            if status != 0:
                self.wrong.append(f"the last client ended with status {status}")
        except subprocess.TimeoutExpired:
            self.wrong.append(f"not every job has ended after {DRAIN:g} s in peace")
        self.lives[-1][1] = time.time()

    def _end(self) -> None:
        """End what is left of the client and the cluster."""
        self._let_go(all_of_them=True)
        if self.program is not None and self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        if self.cluster is not None:
            self.cluster.send_signal(signal.SIGINT)
            self.cluster.wait()
            if self.cluster.stdout is not None:
                self.cluster.stdout.close()


def processes(mark: str) -> Iterator[tuple[int, str]]:
    """Find the processes of a soak, and their commands."""
    wanted = f"{MARK}={mark}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            environment = Path("/proc", name, "environ").read_bytes()
            if wanted in environment.split(b"\0"):
                command = Path("/proc", name, "cmdline").read_bytes()
                yield int(name), command.replace(b"\0", b" ").decode(errors="replace")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])
