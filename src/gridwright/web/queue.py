"""Work that goes on in the background: how far it is, why it ended, how to end it early."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from ..allocation import time_limit
from ..model import InputError

__all__ = [
    "Background",
    "BusyError",
    "StoppedError",
    "solved",
]


class StoppedError(Exception):
    """Raised in work that is to end early."""


@dataclass(kw_only=True)
class Background(ABC):
    """Something that is run in a thread of its own, and watched from others."""

    state: str = "waiting"
    """``waiting`` for others to end, ``running``, ``done``, ``stopped`` or ``failed``."""
    error: str = ""
    stopping: Event = field(default_factory=Event)

    @abstractmethod
    def work(self) -> None:
        """Do what there is to do; ``go_on`` is to be called now and then."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ("done", "stopped", "failed")

    def stop(self) -> None:
        """End it early; what has been found stays."""
        self.stopping.set()

    def go_on(self) -> None:
        """Raise, if it is to end early."""
        if self.stopping.is_set():
            raise StoppedError

    def run(self) -> None:
        """Work to the end, whichever it is: in a thread of its own."""
        if self.is_over:
            return
        self.state = "running"
        try:
            self.work()
            self.end("done")
        except StoppedError:
            self.end("stopped")
        except InputError as error:
            self.end("failed", str(error))
        except Exception as error:  # a page that waits for ever would be worse
            self.end("failed", f"{type(error).__name__}: {error}")

    def end(self, state: str, error: str = "") -> None:
        """Note how it ended; what was given up may still come back, and changes nothing."""
        if not self.is_over:
            self.error, self.state = error, state


AT_ONCE = 2
MOST_WAITING = 20
SECONDS = 30.0

T = TypeVar("T")

_TURNS: RunVar[CapacityLimiter] = RunVar("turns")  # a limiter belongs to an event loop


class BusyError(InputError):
    """Too much is being solved already."""


async def solved(work: Callable[[], T]) -> T:
    """Return what the work returns, once it is its turn; raise if too many are waiting."""
    turns = _TURNS.get(None)
    if turns is None:
        turns = CapacityLimiter(AT_ONCE)
        _TURNS.set(turns)
    if turns.statistics().tasks_waiting >= MOST_WAITING:
        raise BusyError("the server is busy with other requests; try again in a moment")

    def limited() -> T:
        with time_limit(SECONDS):
            return work()

    return await to_thread.run_sync(limited, limiter=turns)
