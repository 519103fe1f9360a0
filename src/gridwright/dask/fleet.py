"""The workers of a Dask scheduler: each of their threads is a machine of the book, a slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..grid.beliefs import Beliefs
from ..grid.job import Instruction
from .book import PlacedBook
from .learning import Groups, Memory, group_of


class Fleet:
    """The workers that a scheduler uses, and their slots."""

    def __init__(
        self,
        book: PlacedBook,
        beliefs: Beliefs,
        classes: Mapping[str, int],
        groups: Groups,
        memory: Memory,
    ) -> None:
        self.book, self.beliefs, self.classes = book, beliefs, classes
        self.groups, self.memory = groups, memory
        self.workers: dict[Any, list[int]] = {}
        """The slots of each worker."""
        self.worker: list[Any] = []
        """The worker of each slot."""
        self.group_columns: dict[str, int] = {}
        """Where the learner has what is measured of each group."""
        self.open: set[Any] = set()
        """The workers that take tasks."""
        self.spare: list[int] = []
        """Slots of workers that have left."""

    def follow(self, running: set[Any], now: float) -> list[Instruction]:
        """Follow the workers that take tasks: some have come, left, paused or resumed."""
        out: list[Instruction] = []
        before, self.open = self.open, set(running)
        for worker in before - self.open:
            for machine in self.workers.get(worker, ()):
                out += self.book.close(now, machine)
        for worker in sorted(self.open - before, key=lambda each: str(each.name)):
            if worker not in self.workers:
                self._add(worker)
            machines = self.workers[worker]
            for machine in machines:
                out += self.book.open(now, machine)
            out += self.book.machines_up(now, machines)
        return out

    def _add(self, worker: Any) -> None:
        group = group_of(self.groups, str(worker.name), str(worker.host))
        learner = self.beliefs.learner
        self.workers[worker] = []
        for _ in range(max(worker.nthreads, 1)):
            rates = np.ones(len(self.classes))
            if self.spare:
                machine = self.spare.pop()
                learner.move(machine, rates, group)
                self.book.nominal[:, machine] = rates
                self.worker[machine] = worker
            else:
                machine = len(self.worker)
                self.beliefs.add_machine(rates, group)
                self.worker.append(worker)
            self.workers[worker].append(machine)
        self.book.call_compiled()
        column = self.group_columns[group] = int(learner.host[machine])
        for name, row in self.classes.items():
            self.memory.recall(learner, name, row, group, column)
        self.beliefs.has_news = True
