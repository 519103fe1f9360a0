"""Published tables that are run again in the background, one at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

from ..experiments import Store
from ..model import InputError
from ..reproduction import (
    PUBLISHED,
    QUICK,
    Laboratory,
    Section,
    reproduce,
    runs_of,
    section_of,
    targets,
)
from .background import Background

__all__ = ["Rerun", "Reruns"]


@dataclass
class Rerun(Background):
    """A table that is run again."""

    table: str
    quick: bool
    share: float = 0.0
    section: Section | None = None

    def work(self) -> None:
        """Simulate what the table needs and is not kept yet."""
        laboratory = Laboratory(QUICK if self.quick else PUBLISHED, store=Store())
        needed = max(len(runs_of([targets()[self.table]])), 1)

        def show(run: Any, done: float) -> None:
            self.go_on()
            self.share = min((len(laboratory.results) + done) / needed, 1.0)

        laboratory.show = show
        (found,) = reproduce(self.table, laboratory=laboratory)
        self.section, self.share = section_of(found), 1.0

    def as_json(self) -> dict[str, Any]:
        """Say how far it is, and what came of it."""
        return {
            "table": self.table,
            "quick": self.quick,
            "state": self.state,
            "error": self.error,
            "share": self.share,
            "found": None if self.section is None else self.section.as_json(),
        }


class Reruns:
    """The tables that this server runs again; of each, the last time counts."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reproduction")
        self._known: dict[str, Rerun] = {}
        self._lock = Lock()

    def start(self, table: str, *, quick: bool = True) -> Rerun:
        """Run a table again."""
        if table not in targets():
            raise InputError(f"no table {table[:80]!r}")
        with self._lock:
            known = self._known.get(table)
            if known is not None and not known.is_over:
                raise InputError(f"{table} is being run already")
            made = self._known[table] = Rerun(table, quick)
        self._pool.submit(made.run)
        return made

    def find(self, table: str) -> Rerun | None:
        """Find a table that was run again."""
        return self._known.get(table)

    def close(self) -> None:
        """Stop everything."""
        for each in list(self._known.values()):
            each.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
