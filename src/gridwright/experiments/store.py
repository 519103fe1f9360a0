"""Keep replications on disk, so that none is simulated twice.

A replication is found by its content: the system, the policy and its parameters, the run, its seed,
and the code that simulates. If any of these changes, it is simulated again.
"""

from __future__ import annotations

import io
import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.metadata import version
from logging import getLogger
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from ..compiler.computer import numba_settings, processor, toolchain
from ..model import InputError, System
from ..policies import Policy
from ..simulation import Replication

CODE = ("allocation", "compiler", "model", "policies", "simulation", "statistics")
"""The packages that a replication's numbers come from."""
MORE = "more."
DIGEST = 16
"""Bytes before a replication's own, by which a damaged one is found out."""
WARNING = getLogger("gridwright").warning


class Kept(Protocol):
    """Where replications are found: on disk, or in memory."""

    def key(
        self, system: System, policy: Policy, seed: np.random.SeedSequence, options: dict[str, Any]
    ) -> str | None:
        """Return the key of a replication; None for one that is not kept."""

    def get(self, key: str) -> Replication | None:
        """Return a replication, or None if it is not there."""

    def put(self, key: str, replication: Replication) -> None:
        """Keep a replication."""


class Store:
    """Replications by their content, in one file; a fresh store uses only its own.

    Those of a store for ``anywhere`` were simulated by the same code, on any computer.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "results.sqlite")
    >>> store.get("nothing") is None
    True
    """

    def __init__(
        self, path: Path | None = None, *, fresh: bool = False, anywhere: bool = False
    ) -> None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.path = path or home / "gridwright" / "results.sqlite"
        self.fresh, self.anywhere = fresh, anywhere
        self.mine: set[str] = set()
        self.turn = Lock()
        self.is_failing = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.database = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            finalize(self, self.database.close)
            with self._open() as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing
                database.execute(
                    "CREATE TABLE IF NOT EXISTS replication (key TEXT PRIMARY KEY, data BLOB)"
                )
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"results cannot be stored in {self.path}: {error}") from None

    def key(
        self, system: System, policy: Policy, seed: np.random.SeedSequence, options: dict[str, Any]
    ) -> str | None:
        """Return the key of a replication; see ``key_of``."""
        return key_of(system, policy, seed, options, anywhere=self.anywhere)

    def get(self, key: str) -> Replication | None:
        """Return a replication, or None if it is not there."""
        if self.fresh and key not in self.mine:
            return None
        try:
            with self._open() as database:
                rows = database.execute("SELECT data FROM replication WHERE key = ?", (key,))
                found = rows.fetchone()
            return _read(found[0]) if found else None
        except Exception:  # a damaged entry is simulated again
            return None

    def put(self, key: str, replication: Replication) -> None:
        """Keep a replication; if that is impossible, as on a full disk, say so once."""
        try:
            with self._open() as database:
                database.execute(
                    "INSERT OR REPLACE INTO replication VALUES (?, ?)", (key, _write(replication))
                )
            self.mine.add(key)
        except (OSError, sqlite3.Error) as error:
            if not self.is_failing:
                self.is_failing = True
                WARNING("results are not kept in %s: %s", self.path, error)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Use the file, one thread at a time; write what was done."""
        with self.turn, self.database:
            yield self.database


def key_of(
    system: System,
    policy: Policy,
    seed: np.random.SeedSequence,
    options: dict[str, Any],
    *,
    anywhere: bool = False,
) -> str | None:
    """Return the key of a replication: a digest of its content; None if it uses a user's code.

    A user's file may import other files, so its own text is not enough. ``anywhere`` leaves out the
    computer and the versions of other packages.
    """
    text = text_of(system)
    if options["trace"] or ".py:" in text or not policy.is_shipped:
        return None
    parts = (
        *((LOADED,) if anywhere else (engine(), processor())),
        text,
        policy.name,
        sorted(policy.parameters.items()),
        sorted({"on": None, **options, "horizon": float(options["horizon"])}.items()),
        seed.entropy,
        seed.spawn_key,
    )
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=8)
def text_of(system: System) -> str:
    """Return a system without its name as text."""
    return system.replace(name="").to_toml()


def _digest() -> str:
    """Digest the code that simulates."""
    digest = blake2b(digest_size=16)
    root = Path(__file__).parents[1]
    for file in sorted(file for package in CODE for file in (root / package).rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


LOADED = _digest()
"""Taken when the code is loaded: later edits do not run yet."""


def engine() -> str:
    """Return the digest of the code with the versions of compiler and solvers and the processor."""
    return f"{LOADED} {toolchain()} {numba_settings()} {_solvers()} {platform.machine()}"


@cache
def _solvers() -> list[str]:
    """Return the versions of the packages that solve for planners."""
    return [version(name) for name in ("highspy", "scipy")]


def _write(replication: Replication) -> bytes:
    page = io.BytesIO()
    parts = replication._asdict()
    parts |= {f"{MORE}{key}": value for key, value in parts.pop("more").items()}
    fields = {k: np.asarray(v) for k, v in parts.items() if k != "trace"}
    np.savez_compressed(page, **fields)  # type: ignore[arg-type]
    return _digest_of(page.getvalue()) + page.getvalue()


def _digest_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()


def _read(data: bytes) -> Replication:
    if _digest_of(data[DIGEST:]) != data[:DIGEST]:
        raise ValueError("it is damaged")
    with np.load(io.BytesIO(data[DIGEST:]), allow_pickle=False) as page:
        fields: dict[str, Any] = {name: page[name] for name in page.files}
    for name in fields:
        if fields[name].ndim == 0:
            fields[name] = fields[name].item()
    more = {name: fields.pop(name) for name in list(fields) if name.startswith(MORE)}
    own = MappingProxyType({name.removeprefix(MORE): value for name, value in more.items()})
    return Replication(**fields, more=own)
