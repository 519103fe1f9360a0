"""A soak of a served grid: the service and its clients are killed, and are started again."""

import argparse
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from soak_account import Account, Keyed, keyed_account, lines
from soak_grid import DRAIN, PROGRAM, TRIES, Soak
from soak_jobs import FINISH, HUGE, STUCK, SlowToUnpickle, job, plan

from gridwright import GridClosedError, GridError, InputError, connect
from gridwright.grid.client import Client
from gridwright.grid.future import JobFuture

__all__ = ["ServedSoak", "client_of_service"]

NAME = "soak"
CLIENTS = 3
PATIENCE = 120.0
"""Seconds for which a client waits for a service that is away."""
SHARED = 20
"""One of so many quick jobs is submitted by two clients, under one key."""
TIMEOUT = 2.0
"""Seconds after which a job that never ends is stopped."""
RETRIES = 1000
"""How often an innocent job is tried again, whose machines may be killed any number of times."""
STARTS = 0.1
"""The share of the starts of a service in which it is killed at once."""


def keyed(k: int, kind: str) -> Keyed:
    """Return how a planned job is submitted, and how it should end."""
    clients = [k % CLIENTS]
    if kind == "quick" and k % SHARED == 0:
        clients.append((k + 1) % CLIENTS)
    ends_well = kind in FINISH and kind != "bad result"  # nobody can unpickle that
    return Keyed(kind, f"job-{k}", clients, "finished" if ends_well else "failed")


# a client: a program that submits its jobs by key, and writes down how each of them has ended


def client_of_service(options: argparse.Namespace) -> None:
    """Submit jobs at their times, until the end of each is written down."""
    folder, jobs = Path(options.folder), plan(options.jobs, options.seed, options.longest)
    file = folder / f"heard-{options.client}"
    known = {int(line.split()[0]) for line in lines(file)}
    submitted = {int(line) for line in lines(folder / f"tried-{options.client}")}
    left = [
        k
        for k, (kind, _) in enumerate(jobs)
        if k not in known and options.client in keyed(k, kind).clients
    ]
    ends: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    taken = 0
    with (
        _connected(options.client) as grid,
        (folder / "acknowledged").open("a", buffering=1) as said,
        file.open("a", buffering=1) as heard,
        (folder / f"tried-{options.client}").open("a", buffering=1) as tried,
    ):

        def take(seconds: float | None) -> int:
            """Wait for the end of a job, and write it down; return how many there were."""
            try:
                k, future = ends.get(timeout=seconds)
            except Empty:
                return 0
            heard.write(f"{k} {future.number} {_outcome(future, *jobs[k], k)}\n")
            return 1

        for k in left:
            while (wait := options.begin + k * options.pace - time.time()) > 0:
                taken += take(wait)
            while take(0):
                taken += 1
            tried.write(f"{k}\n")
            future = _found(grid, k) if k in submitted else None
            future = future or _submitted(grid, k, *jobs[k], str(folder / "runs"))
            said.write(f"{k} {future.number}\n")
            future.add_done_callback(partial(_put, ends, k))
        while taken < len(left):
            taken += take(None)


def _put(ends: SimpleQueue[tuple[int, Any]], k: int, future: Any) -> None:
    ends.put((k, future))


def _connected(number: int) -> Client:
    """Connect to the service, which may be away now."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return connect(NAME, client=f"client {number}", patience=PATIENCE)
        except GridError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _found(grid: Client, k: int) -> JobFuture | None:
    """Return the future of a job that an earlier life of the client may have submitted.

    A job that has failed would run again if it were submitted again.
    """
    try:
        return grid.future(f"job-{k}")
    except InputError:
        return None


def _submitted(grid: Client, k: int, kind: str, seconds: float, log: str) -> JobFuture:
    """Submit a planned job."""
    more = SlowToUnpickle() if kind == "slow to unpickle" else None
    options: dict[str, Any] = {"key": keyed(k, kind).key, "task_class": kind}
    if kind in STUCK:
        options["timeout"] = TIMEOUT
    if kind in FINISH:
        options["retries"] = RETRIES
    return grid.options(**options).submit(job, kind, k, log, seconds, more)


def _outcome(future: JobFuture, kind: str, _: float, k: int) -> str:
    """Say how a job has ended, as its client sees it."""
    try:
        found = future.result()
    except CancelledError:
        return "cancelled"
    except GridClosedError:  # the client has lost its service for good
        raise
    except Exception:
        return "failed"
    right = len(found) == HUGE if kind == "huge result" else found == k
    return "finished" if right else "wrong"


# the driver


@dataclass
class ServedSoak(Soak):
    """A service, its clients, perhaps a cluster, and what was done to them.

    ``program`` is the service.
    """

    role = "service"
    clients: list[subprocess.Popen[bytes] | None] = field(default_factory=lambda: [None] * CLIENTS)
    """A client that is None has to be started, unless it is in ``ready``."""
    ready: set[int] = field(default_factory=set)
    """Clients that know the ends of all their jobs."""

    def run(self) -> None:
        """Run the service and its clients until every client knows the end of its jobs."""
        self.rng.seed(self.options.seed)
        try:
            self._keep_cluster()
            self._keep_service()
            self.begin = time.time()
            while time.time() < self.begin + 60 * self.options.minutes:
                self._keep_clients()
                if len(self.ready) == CLIENTS:
                    break
                self._wait_to_harm()
                self._keep_cluster()
                self.rng.choice(self._harms())()
                self._keep_service(dangerously=True)
            self._drain()
        finally:
            self._end()

    def account(self) -> Account:
        """Return what has become of the jobs."""
        kinds = [kind for kind, _ in plan(self.options.jobs, self.options.seed)]
        jobs = [keyed(k, kind) for k, kind in enumerate(kinds)]
        journal = self.folder / "grids" / f"{NAME}.sqlite"
        return keyed_account(self.folder, journal, jobs, FINISH, self.lives)

    def _keep_service(self, *, dangerously: bool = False) -> None:
        """Start the service if it is not there, and wait until it answers."""
        if self.program is not None and self.program.poll() is None:
            return
        if self.program is not None:
            self._note_end()
        words = ["--name", NAME, "--policy", self.options.policy, "--json"]
        words += ["--machines", str(self.options.machines)]
        if self.options.executor == "dask":
            words += ["--on", f"tcp://127.0.0.1:{self.port}"]
        for _ in range(TRIES):
            self._keep_cluster()
            command = [sys.executable, "-m", "gridwright", "grid", "serve", *words]
            self.program = self._popen(command, "service.log")
            if dangerously and self.rng.random() < STARTS:
                time.sleep(self.rng.uniform(0.0, 1.5))
                self.program.kill()
                self.done["service killed while it started"] += 1
            assert self.program.stdout is not None
            with self.program.stdout as line:
                if line.readline():
                    self.lives.append([time.time(), float("inf")])
                    self.done["service started"] += 1
                    return
            self.program.wait()  # it was killed, or perhaps too few workers were there
        raise SystemExit((self.folder / "service.log").read_text()[-2000:])

    def _note_end(self) -> None:
        """Note that the service has ended."""
        assert self.program is not None
        self.lives[-1][1] = time.time()
        if self.program.wait() != -signal.SIGKILL:
            self.wrong.append(f"the service ended with status {self.program.returncode}")

    def _keep_clients(self) -> None:
        """Start the clients that are not there and do not know all ends."""
        for number, client in enumerate(self.clients):
            if number in self.ready:
                continue
            if client is not None:
                if client.poll() is None:
                    continue
                if client.returncode == 0:
                    self.ready.add(number)
                    continue
                if client.returncode != -signal.SIGKILL:
                    status = client.returncode
                    self.wrong.append(f"client {number} ended with status {status}")
            words = self._words(f"--client={number}")
            self.clients[number] = self._popen([sys.executable, PROGRAM, *words], "client.log")
            self.done["client started"] += 1

    def _harms(self) -> list[Any]:
        """Return what can be done to the processes now; what is there twice is done more often."""
        found = [self._kill_worker, self._kill_worker, self._stop_worker]
        found += [self._stop_program, self._stop_client]
        if self.cluster is not None:
            found += [self._kill_dask_worker]
            if self.rng.random() < 0.1:
                found += [self._kill_scheduler]
        if self.rng.random() < self.options.harm / self.options.life:
            found = [self._kill_service]
        elif self.rng.random() < CLIENTS * self.options.harm / self.options.life:
            found = [self._kill_client]
        return found

    def _kill_service(self) -> None:
        if self.program is not None and self.program.poll() is None:
            self.program.kill()
            self.program.wait()
            self.done["service killed"] += 1

    def _some_client(self) -> subprocess.Popen[bytes] | None:
        there = [each for each in self.clients if each is not None and each.poll() is None]
        return self.rng.choice(there) if there else None

    def _kill_client(self) -> None:
        if (client := self._some_client()) is not None:
            client.kill()
            client.wait()
            self.done["client killed"] += 1

    def _stop_client(self) -> None:
        if (client := self._some_client()) is not None:
            self._stop(client, "client")

    def _drain(self) -> None:
        """Let everything end in peace, as long as clients are told of something."""
        self._let_go(all_of_them=True)
        last, told = time.time(), -1
        while len(self.ready) < CLIENTS and time.time() < last + DRAIN:
            if (size := sum(each.stat().st_size for each in self.folder.glob("heard-*"))) != told:
                last, told = time.time(), size
            self._keep_cluster()
            self._keep_service()
            self._keep_clients()
            time.sleep(0.1)
        if len(self.ready) < CLIENTS:
            self.wrong.append(f"not every client knows all ends, and none ended in {DRAIN:g} s")
            with connect(NAME, client="the soak") as grid:
                self.wrong.append(f"the grid says: {dict(grid.status())}")

    def _end(self) -> None:
        for client in self.clients:
            if client is not None and client.poll() is None:
                client.kill()
                client.wait()
        if self.program is not None and self.program.poll() is None:
            self._let_go(all_of_them=True)
            self.lives[-1][1] = time.time()
            self.program.send_signal(signal.SIGINT)
            try:
                self.program.wait(DRAIN)
            except subprocess.TimeoutExpired:
                self.wrong.append("the service does not stop")
        super()._end()
