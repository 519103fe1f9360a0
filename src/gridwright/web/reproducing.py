"""Published tables that are run again in the background, one at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
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

__all__ = ["Rerun", "Reruns"]


class _StoppedError(Exception):
    """Raised in a table that is to end early."""


@dataclass
class Rerun:
    """A table that is run again."""

    table: str
    quick: bool
    state: str = "waiting"
    """``waiting``, ``running``, ``done``, ``stopped`` or ``failed``."""
    error: str = ""
    share: float = 0.0
    section: Section | None = None
    stopping: Event = field(default_factory=Event)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ("done", "stopped", "failed")

    def stop(self) -> None:
        """End it early."""
        self.stopping.set()

    def run(self) -> None:
        """Simulate what the table needs and is not kept yet: in a thread of its own."""
        self.state = "running"
        try:
            laboratory = Laboratory(QUICK if self.quick else PUBLISHED, store=Store())
            needed = max(len(runs_of([targets()[self.table]])), 1)

            def show(run: Any, done: float) -> None:
                if self.stopping.is_set():
                    raise _StoppedError
                self.share = min((len(laboratory.results) + done) / needed, 1.0)

            laboratory.show = show
            (found,) = reproduce(self.table, laboratory=laboratory)
            self.section, self.share, self.state = section_of(found), 1.0, "done"
        except _StoppedError:
            self.state = "stopped"
        except Exception as error:  # a page that waits for ever would be worse
            self.state, self.error = "failed", f"{error}"

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

    def start(self, table: str, *, quick: bool = True) -> Rerun:
        """Run a table again."""
        if table not in targets():
            raise InputError(f"no table {table[:80]!r}")
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
        for each in self._known.values():
            each.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
