"""Who writes a journal: a lock file beside it, and a file in the home folder that names it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from typing import IO
from weakref import WeakSet

from ..model import InputError

PATIENCE = 0.5
"""Seconds to wait for a lock: a process that checks it holds it for a moment."""


def home() -> Path:
    """Return the folder where journals are kept."""
    given = os.environ.get("GRIDWRIGHT_HOME")
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "gridwright"


class Ownership:
    """The lock of a journal. One process holds it until it releases it or ends."""

    def __init__(self, journal: Path) -> None:
        self.journal, self._absolute = journal, journal.absolute()
        self.path = Path(f"{journal}-lock")
        self._lock: IO[str] | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this process holds the lock."""
        return self._lock is not None

    def take(self) -> None:
        """Take the lock, and write our process and computer into it."""
        try:
            lock = open(  # noqa: SIM115
                self.path, "a", opener=lambda path, flags: os.open(path, flags, 0o600)
            )
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from None
        end = monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                lock.truncate(0)  # forget an owner that was killed before we hold it
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if monotonic() > end:
                    lock.close()
                    words = f"{self.journal}: another grid is writing this journal"
                    raise InputError(words) from None
            fcntl.flock(lock, fcntl.LOCK_UN)  # otherwise two processes could block each other
            sleep(0.01)
        lock.write(f"{os.getpid()} {socket.gethostname()}")
        lock.flush()
        self._lock = lock
        HELD.add(self)

    def let_go(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            with suppress(OSError):
                self.sign.unlink()
            self._lock.truncate(0)  # so that the next owner is not mistaken for us
            self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Close a lock that this process has inherited as a fork of its owner."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def kept_from_others(self) -> Iterator[None]:
        """Keep others from taking the lock for a moment; raise BlockingIOError if it is taken."""
        if not self.path.exists():
            yield
            return
        with self.path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            yield

    def is_taken(self) -> bool:
        """Tell whether a process has the lock."""
        try:
            with self.kept_from_others():
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def owner(self) -> int | None:
        """Return the process on this computer that has the lock, if one has."""
        end = monotonic() + PATIENCE
        while (said := self._said()) == "" and monotonic() < end:
            sleep(0.01)  # a process that has just taken it is about to write its name
        number, _, computer = (said or "").partition(" ")
        return int(number) if computer == socket.gethostname() and number.isdigit() else None

    def is_elsewhere(self) -> bool:
        """Tell whether a process on another computer has the lock."""
        return (self._said() or "").partition(" ")[2] not in ("", socket.gethostname())

    def _said(self) -> str | None:
        """Return the process and computer that hold the lock; "" if it is not written yet."""
        return self.path.read_text(errors="replace") if self.is_taken() else None

    # commands find the journals of running grids, wherever they are, by their signs

    @property
    def sign(self) -> Path:
        """The file in the home folder that names the journal while it is written."""
        where = str(self._absolute).encode(errors="surrogateescape")
        return home() / "running" / sha256(where).hexdigest()[:16]

    def put_up_sign(self) -> None:
        """Let commands find the journal. It is no error if the home folder cannot be written."""
        with suppress(OSError):
            self.sign.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            sign = os.open(self.sign, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with open(sign, "wb") as file:
                file.write(os.fsencode(self._absolute))


def signed() -> list[Path]:
    """Return the journals that have a sign and a writer; delete the signs of killed grids."""
    found = []
    for sign in sorted((home() / "running").glob("*")):
        with suppress(OSError):
            journal = Path(os.fsdecode(sign.read_bytes()))
            if Ownership(journal).is_taken():
                found.append(journal)
            else:
                sign.unlink()
    return found


HELD: WeakSet[Ownership] = WeakSet()
"""The locks that this process has taken."""


def _leave_all() -> None:
    for each in HELD:
        each.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)
