"""Work that anybody may ask for without the token, and that takes a processor's time.

It is done beside the event loop, so that the page stays responsive; a few at once, so that others
have processors too; and allocations end within a time limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from ..allocation import time_limit
from ..model import InputError

__all__ = ["BusyError", "solved"]

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
