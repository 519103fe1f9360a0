"""Who is asked when: what makes a book that of a pull grid, or of a push grid.

The same rules as the simulator's, in plain Python: a test drives both through the same events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..policies import PULL, PUSH, Kind
from .job import Decision

if TYPE_CHECKING:
    from .state import GridState

__all__ = [
    "MECHANISMS",
    "Pull",
    "Push",
]


class Pull:
    """Jobs wait centrally; a machine that is free asks for one."""

    def __init__(self, book: GridState) -> None:
        self.book = book
        self.idle: dict[int, None] = {
            j: None for j in range(len(book.machines)) if book.machines[j].up
        }
        """The idle machines, in the order in which they became idle."""
        self.in_turn = book.policy.options["idle"] in ("every", "rotate", "blocking")

    def placed(self, task_class: int) -> None:
        """Let idle machines ask, when a job waits."""
        match self.book.policy.options["idle"]:
            case "every":
                self._ask_every()
            case "rotate":
                self._ask_in_turn()
            case "blocking":
                while self.idle and self._asks(next(iter(self.idle))):
                    pass
            case order:
                self._ask_first(task_class, order)

    def freed(self, machine: int) -> None:
        """Let a machine that has nothing to do ask."""
        if not self.book.can_take(machine):
            return
        if self.in_turn:
            self.idle[machine] = None
            self.placed(-1)
        elif not self._asks(machine):
            self.idle[machine] = None

    def retried(self, task_class: int, machine: int) -> None:
        """Let idle machines ask for a job that was stopped, and its own machine last."""
        self.placed(task_class)
        self.freed(machine)

    def go_on(self) -> None:
        """Nothing is broken off: no event takes long."""

    def gone(self, machine: int) -> None:
        """Forget a machine that takes no more jobs."""
        self.idle.pop(machine, None)

    def returned(self, task_class: int) -> None:
        """Let idle machines ask for the job of a machine that is gone."""
        if task_class >= 0 and not self.book.pending:
            self.placed(task_class)

    def recalled(self) -> None:
        """Let idle machines ask: there is a new plan."""
        if self.in_turn:
            self.placed(-1)
        elif self.book.policy.options["idle"] == "fastest":
            for i in range(len(self.book.classes)):
                self.placed(i)
        else:
            for machine in list(self.idle):
                self._asks(machine)

    def _ask_first(self, i: int, order: str) -> None:
        book = self.book
        able = [j for j in self.idle if book.plan[i, j] > 0.0 and book.nominal[i, j] > 0.0]
        if order == "fastest":
            able.sort(key=lambda j: -book.rate[i, j])  # stable: of equals, the longest idle
        unfit = None  # the last one that took nothing: those alike are passed over
        for j in able:
            if not book.waiting[i]:
                return
            alike = (book.rate[i, j], book.plan[i, j])
            if order != "fastest" or alike != unfit:
                unfit = None if self._asks(j) else alike

    def _ask_every(self) -> None:
        for machine in sorted(self.idle):
            if any(self.book.waiting):
                self._asks(machine)

    def _ask_in_turn(self) -> None:
        for machine in list(self.idle):
            if not any(self.book.waiting):
                return
            if not self._asks(machine):
                del self.idle[machine]
                self.idle[machine] = None

    def _asks(self, machine: int) -> bool:
        """Let a machine ask, and give it what it is answered; tell whether there is something."""
        book = self.book
        possible = [
            i
            for i, queue in enumerate(book.waiting)
            if queue and book.plan[i, machine] > 0.0 and book.nominal[i, machine] > 0.0
        ]
        if not possible:
            return False
        book.asked += 1
        choice = int(book.policy.decide(machine, book.view(), *book.arguments))
        book.decisions.append(Decision(book.now, machine, tuple(possible), choice, book.plans))
        if choice < 0:
            return False
        if choice not in possible:
            book.refusals += 1
            return False
        self.idle.pop(machine, None)
        book.give(choice, machine)
        return True


class Push:
    """A job is sent to a machine when it arrives, and queues there."""

    def __init__(self, book: GridState) -> None:
        self.book = book
        self.held: set[int] = set()
        """Classes that the policy has held back since the offers began."""
        self.is_offering = False
        """Whether offers were broken off,"""
        self.is_outdated = False
        """and something has happened since: those held back are offered once more."""

    def placed(self, task_class: int) -> None:
        """Offer what waits to the policy, oldest first, until it holds back the rest."""
        if self.is_offering:
            self.is_outdated = True
        else:
            self.held.clear()
        self._offer()

    def go_on(self) -> None:
        """Go on with offers that were broken off."""
        if self.is_offering:
            self._offer()
        else:
            self.placed(-1)

    def _offer(self) -> None:
        book, self.is_offering = self.book, False
        left = {i for i, queue in enumerate(book.waiting) if queue} - self.held
        while left:
            i = min(left, key=lambda k: (book.classes[k].oldest, k))
            j = int(book.policy.decide(i, book.view(), *book.arguments))
            possible = book.takers(i)
            book.decisions.append(Decision(book.now, i, possible, j, book.plans))
            if j in possible:
                book.give(i, j)
                left = {k for k in left if book.waiting[k]}
            else:
                left.discard(i)
                self.held.add(i)
                book.refusals += j >= 0
            if left and book.enough():
                self.is_offering = book.unfinished = True
                return
        if self.is_outdated:
            self.is_outdated = False
            self.held.clear()
            self._offer()

    def freed(self, machine: int) -> None:
        """Start the next job of a machine's own queue; offer what waits."""
        book = self.book
        is_free = book.running[machine] is None and book.can_take(machine)
        if is_free and book.own[machine]:
            book.send(book.own[machine].popleft())
        if not book.pending:
            self.placed(-1)

    def retried(self, task_class: int, machine: int) -> None:
        """Offer a job that was stopped, after its machine has started its next one."""
        self.freed(machine)

    def gone(self, machine: int) -> None:
        """Nothing is kept of machines."""

    def returned(self, task_class: int) -> None:
        """Offer the jobs of a machine that is gone."""
        if not self.book.pending:
            self.placed(task_class)

    def recalled(self) -> None:
        """Offer what waits: the plan may permit more now."""
        self.placed(-1)


MECHANISMS: dict[Kind, type[Pull] | type[Push]] = {PULL: Pull, PUSH: Push}
