"""Runs as separate processes, which continue without the browser and this server.

A new run is first written to a journal; then ``gridwright run --resume`` conducts it. The journal
also says which process conducts the run.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, NamedTuple

from pydantic import ValidationError

from ..catalogue import experiment_names
from ..grid import MachineState, machine_states, request
from ..grid.executors.connection import check_address, find_workers, security_of
from ..grid.journal import Journal
from ..grid.ownership import home
from ..model import InputError, did_you_mean
from ..model.record import explain
from ..testbed import Experiment, Overview, Run, export, new_run, overview, runs
from .documents import check_failures, check_policy, system_of
from .pasted_policy import is_pasted, paste_one
from .saved import load_own

MOST_AT_ONCE = 4
MOST_JOBS = 200_000
MOST_MACHINES = 100
"""Processes of a local run."""
PIECE = 2**18
"""Bytes of a download that are sent at once."""
CHANGES = (
    *("policy", "time_unit", "duration", "seed", "corrections", "failures"),
    *("timeout", "on_timeout", "detection", "resolution", "job", "on"),
)
"""What of an experiment may be changed over the web: nothing that names a file."""


def experiment_of(
    name: str = "",
    system: str | dict[str, Any] | None = None,
    own: str = "",
    code: str = "",
    **changes: Any,
) -> Experiment:
    """Make an experiment from the catalogue, a saved one or a system, with some changes.

    ``code`` defines its policy; the caller has made sure that it may run.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    executor, address = given.pop("executor", ""), given.pop("address", "")
    if "on" in given and (executor or address):
        raise InputError("executor and address are deprecated names for on; give on alone")
    if address or executor == "local":
        given["on"] = address
    elif executor == "dask":
        raise InputError("a run on a Dask cluster needs the address of its scheduler")
    unknown = set(given) - set(CHANGES)
    if unknown:
        raise InputError(f"{', '.join(sorted(unknown))} cannot be changed over the web")
    if "policy" in given:
        check_policy(given["policy"])
    if code.strip():
        given["policy"] = paste_one(code)
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
    """Return an experiment; refuse a cluster, whose answers may be code, without the token."""
    if found.executor != "local" and not trusted:
        raise InputError(CLUSTERS)
    return found


def check_size(found: Experiment) -> Experiment:
    """Return an experiment; refuse one that is too large to run here."""
    jobs = found.duration * float(found.system.arrival_rates.sum())
    if jobs > MOST_JOBS:
        raise InputError(f"about {jobs:,.0f} jobs; expected at most {MOST_JOBS:,}")
    check_failures(found)
    policy = found.chosen_policy()
    if not policy.is_shipped and not is_pasted(found.policy):
        raise InputError(
            f"policy {policy.name!r} is not shipped, and a run is another process; give its code"
        )
    if found.executor == "local" and found.system.shape[1] > MOST_MACHINES:
        raise InputError(f"{found.system.shape[1]} machines; at most {MOST_MACHINES} run here")
    return found


class Runs:
    """The runs in $GRIDWRIGHT_HOME, and how they are started and stopped."""

    def __init__(self) -> None:
        self._lock = Lock()
        """Held from the check for room until the run has started."""
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        self._done: dict[Path, tuple[int, Overview]] = {}
        """Finished runs by journal, with the time when it was last changed."""

    def all(self) -> list[Overview]:
        """Return an overview of every run, the latest first."""
        found = []
        for path in reversed(runs()):
            with suppress(FileNotFoundError):  # just deleted
                found.append(self._glance(path))
        return found

    def find(self, number: int) -> Overview | None:
        """Return an overview of a run."""
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
        """Pause a run, whoever started it: no time passes for it until it is resumed."""
        with open_journal(number) as journal:
            request(journal, "pause run", "")

    def resume(self, number: int) -> None:
        """Continue a run that was paused or stopped."""
        with self._lock:
            found = self.find(number)
            state = "not there" if found is None else found.state
            if state == "paused":
                with open_journal(number) as journal:
                    request(journal, "resume run", "")
            elif state == "stopped":
                self._check_room()
                self._conduct(number)
            else:
                raise InputError(f"run {number} is {state}; only stopped runs can be resumed")

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
        """Return the end of the log of a run's process, which says why it failed."""
        with suppress(OSError):
            return path_of(number, "log").read_text("utf-8", "replace").strip()[-2000:]
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
        words = ["run", "--resume", str(number), "--no-report"]  # Statistics makes it when asked
        with path_of(number, "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gridwright", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C here is not meant for it
            )
        self._started[number] = process
        Thread(target=process.wait, name=f"run {number}", daemon=True).start()  # else a zombie


def path_of(number: int, ending: str = "sqlite") -> Path:
    """Return the path of a run's journal; with the ending "log", that of its process's errors."""
    return home() / "runs" / f"{number}.{ending}"


def open_journal(number: int) -> closing[Journal]:
    """Open a run's journal; leaving the ``with`` block closes it."""
    return closing(Journal(path_of(number), new=False))


def machines_of(journal: Journal) -> list[MachineState]:
    """Return the state of each machine of a run; if nobody conducts it, they are off and idle."""
    found = machine_states(journal)
    if journal.is_claimed():
        return found
    off: Any = {"state": "off", "running": None, "since": journal.last()}
    return [each if each.state == "not yet up" else each._replace(**off) for each in found]


def zipped(number: int) -> Iterator[bytes]:
    """Return the tables of a run as one file, piece by piece; refuse a damaged run at once."""
    with Run.find(number) as run:
        run.journal.check()
    return _pieces(number)


def _pieces(number: int) -> Iterator[bytes]:
    """Write the file to disk, then read it: other threads may read the pieces."""
    with TemporaryDirectory() as folder:
        path, kind = Path(folder) / "all.zip", zipfile.ZIP_DEFLATED
        with Run.find(number) as run, zipfile.ZipFile(path, "w", kind, compresslevel=1) as out:
            for each in export(run, Path(folder) / "tables", originals=False):
                out.write(each, f"run-{number}/{each.name}")
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


class Available(NamedTuple):
    """A machine, or a computer that has room for many."""

    name: str
    address: str
    processors: int | None = None
    """None if unknown."""


def available_machines(address: str = "") -> list[Available]:
    """List the workers of the Dask scheduler at an address; without one, this computer."""
    if not address:
        return [Available(socket.gethostname(), "local", os.cpu_count())]
    if check_address(address)[0] == "tls":
        raise InputError(f"{address} asks for TLS, whose files an experiment file names")
    found = find_workers(address, security_of(address, None), 0)
    return [Available(name, where) for where, name in found.items()]
