"""The book of a Dask scheduler: a compiled policy, which knows how long inputs take to move."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..allocation import Situation
from ..allocation.planner import compile_simplex
from ..compiler.link import entry
from ..grid.beliefs import Floats
from ..grid.book import Book
from ..grid.executors import dask_internals as internals
from ..policies import PUSH, Policy

LOG = logging.getLogger("gridwright.dask").info


LATENCY = 0.01
"""Seconds that moving the inputs of a task takes at least."""


class PlacedBook(Book):
    """A book whose policy knows how long it takes to move the inputs of tasks."""

    def __init__(self, policy: Policy, start: float = 0.0, *, is_compiled: bool = False) -> None:
        super().__init__(policy, np.zeros((0, 0)), [], up=False, start=start)
        self.moves: dict[int, Floats] = {}
        """Seconds to move the inputs of a job to each machine."""
        self.is_compiled = is_compiled

    def call_compiled(self) -> None:
        """Call the compiled policy for the arrays that the book has now."""
        if self.is_compiled:
            self.decide = entry(self.policy.decide, 0, self.view(), *self.arguments)

    def ask(self, subject: int, level: int) -> int:
        """Ask the policy; times include moving the inputs of the tasks in question."""
        if not self.moves:
            return super().ask(subject, level)
        classes = (subject,) if self.policy.kind is PUSH else range(len(self.waiting))
        before = []
        for i in classes:
            queue = self.waiting[i]
            if queue and (move := self.moves.get(queue.first().number)) is not None:
                before.append((i, self.expected[i].copy(), self.rate[i].copy()))
                self.expected[i, : len(move)] += move
                able = np.isfinite(self.expected[i]) & (self.rate[i] > 0)
                self.rate[i, able] = 1.0 / self.expected[i, able]
        try:
            return super().ask(subject, level)
        finally:
            for i, expected, rate in before:
                self.expected[i], self.rate[i] = expected, rate


def compile_policy(policy: Policy) -> bool:
    """Compile a policy and its planner; return False if it must run in plain Python."""
    book = PlacedBook(policy)
    try:
        compile_simplex()
        if policy.planner is not None and policy.is_shipped:
            policy.plan(Situation(np.ones((1, 1)), np.ones(1), np.ones(1), np.arange(1)))
        entry(policy.decide, 0, book.view(), *book.arguments)
    except Exception as error:
        LOG("%s runs in plain Python: %s", policy.name, error)
        return False
    return True


def times_to_move(scheduler: Any, task: Any, workers: Mapping[Any, Sequence[int]]) -> Floats:
    """Return the seconds that it takes to move the inputs of a task to the slots of workers."""
    found = np.zeros(1 + max((max(slots) for slots in workers.values()), default=-1))
    for worker, slots in workers.items():
        time = internals.move_time(scheduler, task, worker)
        found[list(slots)] = time + LATENCY if time > 0.0 else 0.0
    return found
