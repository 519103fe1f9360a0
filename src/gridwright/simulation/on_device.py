"""A push or pull system whose loop a device runs: its arrays, and the hooks of its kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..model import InputError
from ..statistics import BINS
from .central import Central
from .central_setup import situation_of
from .central_state import TICKET, State
from .device_arrays import leaves
from .driver import TASKS_PER_SLICE, free_pool
from .kernel import run_events, run_push
from .plan_table import looked_up, with_answers
from .planning import SOLVING, plan_in_python
from .sampling import BUFFERED, arrival_hook, samplers

TASKS_PER_SLICE_THERE = 4000
"""A slice is at most about this many tasks of a run."""
ROOM = 256
"""Tickets of a run at first, or two for each machine; there are many runs."""
CONSTANT = ("nominal", "truth", "group", "chain")
CONSTANT_WITHOUT_EVENTS = ("rate", "expected", "plan", "tree", "ends", "pattern", "present")
CONSTANT_WITHOUT_BUFFERS = ("shapes", "table")
"""Arrays that no loop writes to: always, without an event list, and without draws from Python."""


class OnDevice(Central):
    """A push or pull system whose loop a device runs."""

    effort = TASKS_PER_SLICE / TASKS_PER_SLICE_THERE
    kernel: Callable[..., None]
    room: tuple[Any, ...] = ()
    """The arrays of the planner, with an event list."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if self.system.follows_profile:
            raise InputError("[assumed] arrivals = 'present' is for simulations on the CPU")
        room = 1 << (max(ROOM, 2 * self.system.shape[1]) - 1).bit_length()
        self.replace(ticket=free_pool(room, TICKET))
        if self.conditions.tails:
            self.replace(responses=np.zeros((len(self.state.stream), BINS), np.int64))

    def _without_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        self.kernel, self.hooks_there = run_push, self._samplers()
        return _elsewhere, ()

    def _with_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        make_plan, planning = self.planner()
        if make_plan is plan_in_python and self.plans_anew and self.policy.planner is not None:
            raise InputError(
                f"{self.policy}: its planner is plain Python, which does not run on a GPU"
            )
        self.kernel, self.room = run_events, (planning,)
        self.hooks_there = {**self._samplers(), **self.hooks, "make_plan": make_plan}
        return _elsewhere, ()

    def plan_ahead(self, runs: int) -> None:
        """Solve all situations that planners will meet, if so many runs make it worth it."""
        server = self.state.server
        is_known = not (self.is_drawn or server["period"].any() or server["doubt"].any())
        if not is_known or self.hooks_there.get("make_plan") not in SOLVING:
            return
        failures = self.conditions.horizon / (server["mean_uptime"] + server["mean_repair"])
        plans = 2 * runs * float(failures.sum())
        found = with_answers(situation_of(self.state), self.room[0], plans, os.cpu_count() or 1)
        if found is not None:
            self.room = (found,)
            self.hooks_there |= {"solved": looked_up}

    def _samplers(self) -> dict[str, Any]:
        shapes = self.state.shapes
        return {**samplers(shapes), **arrival_hook(shapes), "decide": self.policy.decide}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays of the run, as the kernel takes them."""
        return (self.state, *self.room)

    @property
    def shared(self) -> frozenset[int]:
        """The fields of the state that no run changes: runs that start alike share them."""
        names = list(CONSTANT)
        if self.counts_at_once:
            names += CONSTANT_WITHOUT_EVENTS
        if not (self.state.shapes["kind"] == BUFFERED).any():
            names += CONSTANT_WITHOUT_BUFFERS
        planned = [f for f, each in enumerate(leaves(self.arrays)) if self._is_constant(each)]
        return frozenset([*map(State._fields.index, names), *planned])

    def _is_constant(self, array: Any) -> bool:
        """Tell whether an array of the planner stays as it is: groups, solutions made before."""
        return any(
            array is each
            for planning in self.room
            for each in (
                planning.answers,
                planning.place,
                planning.room.member,
                planning.room.begin,
                planning.room.place,
                planning.room.block,
            )
        )

    @property
    def is_drawn(self) -> bool:
        """Whether the state at time 0 is drawn, so that each replication has its own."""
        return self.system.assumed is not None or bool((self.state.server["chain"] >= 0).any())

    @property
    def key(self) -> Any:
        """What runs that are launched together have in common."""
        values = [
            (each.shape, each.tobytes()) if isinstance(each, np.ndarray) else (type(each), each)
            for each in self.arguments
        ]
        return self.kernel, tuple(sorted(self.hooks_there.items())), tuple(values)


def _elsewhere(*_: Any) -> int:
    raise AssertionError("a device runs this loop")
