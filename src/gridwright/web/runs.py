"""Runs as processes of their own, which continue without the browser and this server.

A run is written down first and then conducted by ``gridwright run --resume``. Through its journal
it is found again, and who conducts it.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, NamedTuple

from pydantic import ValidationError

from ..catalogue import experiment_names
from ..grid import request
from ..grid.executors.connection import check_address, find_workers, security_of
from ..grid.journal import Journal
from ..grid.ownership import home
from ..model import InputError, did_you_mean
from ..model.record import explain
from ..testbed import Experiment, Overview, Run, export, new_run, overview, runs
from .documents import check_failures, check_policy, system_of
from .saved import load_own

MOST_AT_ONCE = 4
MOST_JOBS = 200_000
MOST_MACHINES = 100
"""Processes of a local run."""
CHANGES = (
    *("policy", "time_unit", "duration", "seed", "corrections", "failures"),
    *("timeout", "on_timeout", "detection", "resolution", "job", "on"),
)
"""What of an experiment may be changed over the web: nothing that names a file."""


def experiment_of(
    name: str = "", system: str | dict[str, Any] | None = None, own: str = "", **changes: Any
) -> Experiment:
    """Make an experiment of one of the catalogue, one's own, or of a system; with some changes."""
    given = {key: value for key, value in changes.items() if value is not None}
    executor, address = given.pop("executor", ""), given.pop("address", "")
    if address or executor == "local":
        given["on"] = address
    elif executor == "dask":
        raise InputError("a run on a Dask cluster needs the address of its scheduler")
    unknown = set(given) - set(CHANGES)
    if unknown:
        raise InputError(f"{', '.join(sorted(unknown))} cannot be changed over the web")
    if "policy" in given:
        check_policy(given["policy"])
    if given.get("failures", "none") not in ("none", "generated"):
        raise InputError(f"failures is {given['failures'][:40]!r}; expected none or generated")
    if given.get("on"):
        check_address(given["on"])
    try:
        if own:
            found = load_own(own).replace(**given)
        elif system is not None:
            made = system_of(system)
            found = Experiment(**{"name": made.name, "policy": "fcfs", **given, "system": made})
        elif name in experiment_names():
            found = Experiment.find(name).replace(**given)
        else:
            raise InputError(f"no experiment {name[:80]!r}{did_you_mean(name, experiment_names())}")
    except ValidationError as error:
        raise InputError(explain(error, Experiment)) from None
    return check_size(found)


CLUSTERS = "log in with the token at /login, on this computer, to use a cluster"


def check_cluster(found: Experiment, trusted: bool) -> Experiment:
    """Return an experiment, unless it is on a cluster, whose answers may be code."""
    if found.executor != "local" and not trusted:
        raise InputError(CLUSTERS)
    return found


def check_size(found: Experiment) -> Experiment:
    """Return an experiment, unless it would be too large to run here."""
    jobs = found.duration * float(found.system.arrival_rates.sum())
    if jobs > MOST_JOBS:
        raise InputError(f"about {jobs:,.0f} jobs; expected at most {MOST_JOBS:,}")
    check_failures(found)
    policy = found.chosen_policy()
    if not policy.is_shipped:
        raise InputError(f"policy {policy.name!r} was pasted here; a run is another process")
    if found.executor == "local" and found.system.shape[1] > MOST_MACHINES:
        raise InputError(f"{found.system.shape[1]} machines; at most {MOST_MACHINES} run here")
    return found


class Runs:
    """The runs in $GRIDWRIGHT_HOME, and how they are started and stopped."""

    def __init__(self) -> None:
        self._lock = Lock()
        """Held from the look for room until it is taken."""
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        self._done: dict[Path, tuple[int, Overview]] = {}
        """Runs that have ended, as they were when their journals were last changed."""

    def all(self) -> list[Overview]:
        """Glance at every run, the latest first."""
        found = []
        for path in reversed(runs()):
            with suppress(FileNotFoundError):  # somebody has just thrown it away
                found.append(self._glance(path))
        return found

    def find(self, number: int) -> Overview | None:
        """Glance at a run."""
        path = path_of(number)
        return self._glance(path) if path.is_file() else None

    def start(self, experiment: Experiment) -> int:
        """Start a run; return its number."""
        with self._lock:
            self._check_room()
            with new_run(experiment) as run:
                number = run.number
            self._conduct(number)
        return number

    def pause(self, number: int) -> None:
        """Let no time pass for a run, whoever started it, until it is resumed."""
        with open_journal(number) as journal:
            request(journal, "pause run", "")

    def resume(self, number: int) -> None:
        """Go on with a run that was paused or stopped."""
        with self._lock:
            self._resume(number)

    def _resume(self, number: int) -> None:
        found = self.find(number)
        state = "not there" if found is None else found.state
        if state == "paused":
            with open_journal(number) as journal:
                request(journal, "resume run", "")
        elif state == "stopped":
            self._check_room()
            self._conduct(number)
        else:
            raise InputError(f"run {number} is {state}; only one that was stopped goes on")

    def stop(self, number: int, patience: float = 5.0) -> None:
        """Stop a run, whoever started it; it can be resumed."""
        process = self._started.get(number)
        begun = time.monotonic()
        asked: list[int] = []
        while time.monotonic() - begun < patience:
            with open_journal(number) as journal:
                owner, ended = journal.owner(), bool(journal.told("ended"))
                if owner is None and journal.is_elsewhere():
                    raise InputError(f"run {number} is conducted on another computer")
                free = owner is None and not journal.is_claimed()  # else it is about to say who
            if free and asked:
                self._started.pop(number, None)  # else it would seem to be starting
                return
            if free and (ended or process is None or process.poll() is not None):
                raise InputError(f"run {number} is not running")
            late = time.monotonic() - begun > patience / 2
            wanted = signal.SIGTERM if late else signal.SIGINT
            if owner is not None and wanted not in asked:
                asked.append(wanted)
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(owner, wanted)  # it holds the lock, so it is the right one
            time.sleep(0.05)
        raise InputError(f"run {number} has not stopped within {patience:g} seconds")

    def said(self, number: int) -> str:
        """Return the last that a run's process said, as of why it could not begin."""
        try:
            return log_of(number).read_text("utf-8", "replace").strip()[-2000:]
        except OSError:
            return ""

    def _glance(self, path: Path) -> Overview:
        changed = path.stat().st_mtime_ns
        if self._done.get(path, (0,))[0] == changed:
            return self._done[path][1]
        found = overview(path)
        if found.state == "done":
            self._done[path] = changed, found
        process = self._started.get(found.run)
        if found.state == "stopped" and process is not None and process.poll() is None:
            return found._replace(state="starting")
        return found

    def _check_room(self) -> None:
        busy = sum(each.state in ("running", "paused", "starting") for each in self.all())
        if busy >= MOST_AT_ONCE:
            raise InputError(f"{busy} runs are going on; stop one of them first")

    def _conduct(self, number: int) -> None:
        words = ["run", "--resume", str(number), "--no-expect", "--json"]
        with log_of(number).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gridwright", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C here is not meant for it
            )
        self._started[number] = process
        Thread(target=process.wait, name=f"run {number}", daemon=True).start()  # else a zombie


def path_of(number: int) -> Path:
    """Return where a run's journal is."""
    return home() / "runs" / f"{number}.sqlite"


def log_of(number: int) -> Path:
    """Return where a run's process says what goes wrong."""
    return home() / "runs" / f"{number}.log"


class open_journal:  # noqa: N801  # used like open
    """A run's journal, for as long as it is looked at."""

    def __init__(self, number: int) -> None:
        self.journal = Journal(path_of(number), new=False)

    def __enter__(self) -> Journal:
        return self.journal

    def __exit__(self, *_: object) -> None:
        self.journal.close()


def zipped(run: Run) -> bytes:
    """Return the tables of a run as one file."""
    page = io.BytesIO()
    with TemporaryDirectory() as folder, zipfile.ZipFile(page, "w", zipfile.ZIP_DEFLATED) as out:
        for path in export(run, Path(folder)):
            out.write(path, f"run-{run.number}/{path.name}")
    return page.getvalue()


class Available(NamedTuple):
    """A machine, or a computer that has room for many."""

    name: str
    address: str
    processors: int | None = None
    """How many it has, where that is known."""


def available_machines(address: str = "") -> list[Available]:
    """List the workers of the Dask scheduler at an address; of none: this computer."""
    if not address:
        return [Available(socket.gethostname(), "local", os.cpu_count())]
    if check_address(address)[0] == "tls":
        raise InputError(f"{address} asks for TLS, whose files an experiment file names")
    found = find_workers(address, security_of(address, None), 0)
    return [Available(name, where) for where, name in found.items()]
