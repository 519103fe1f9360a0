"""When the policy is asked: the rules of pull grids and of push grids (others: `batch`, `chain`).

They are the rules of the simulator in plain Python. A test drives both through the same events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..policies import BATCH, CHAIN, PULL, PUSH, Kind, check_not_preemptive
from .batch import Batch
from .chain import Chains
from .job import Decision, Job

if TYPE_CHECKING:
    from .state import GridState


class Central:
    """What the rules of pull and push grids have in common."""

    def __init__(self, book: GridState) -> None:
        self.book = book

    def settle(self) -> None:
        """Do nothing: the policy is asked at every event."""

    def entered(self, job: Job) -> None:
        """Do nothing: the policy is asked about classes and machines."""

    def watch(self, job: Job) -> None:
        """Do nothing: only batch policies know deadlines."""

    def next_deadline(self) -> float:
        """Return infinity: no job has a deadline."""
        return float("inf")

    def expire(self) -> None:
        """Do nothing: no job has a deadline."""


class Pull(Central):
    """Jobs wait centrally, and the policy is asked for a job when a machine is free."""

    def __init__(self, book: GridState) -> None:
        check_not_preemptive(book.policy)
        super().__init__(book)
        self.idle: dict[int, None] = {j: None for j in range(len(book.machines)) if book.up[j]}
        """The idle machines, in the order in which they became idle."""
        self.in_turn = book.policy.options["idle"] in ("every", "rotate", "blocking")

    def placed(self, task_class: int) -> None:
        """Ask on behalf of idle machines, because a job waits."""
        match self.book.policy.options["idle"]:
            case "every":
                for machine in sorted(self.idle):
                    if any(self.book.waiting):
                        self._asks(machine)
            case "rotate":
                for machine in list(self.idle):
                    if not any(self.book.waiting):
                        return
                    if not self._asks(machine):
                        del self.idle[machine]
                        self.idle[machine] = None
            case "blocking":
                while self.idle and self._asks(next(iter(self.idle))):
                    pass
            case order:
                self._ask_first(task_class, order)

    def freed(self, machine: int) -> None:
        """Ask on behalf of a machine that has become idle."""
        if not self.book.can_take(machine) or self.book.start_own(machine):
            return
        if self.in_turn:
            self.idle[machine] = None
            self.placed(-1)
        elif not self._asks(machine):
            self.idle[machine] = None

    def retried(self, task_class: int, machine: int) -> None:
        """Ask on behalf of idle machines for a job that was stopped, its own machine last."""
        self.placed(task_class)
        self.freed(machine)

    def go_on(self) -> None:
        """Do nothing: a pull grid never breaks off an event."""

    def gone(self, machine: int) -> None:
        """Remove a machine that takes no more jobs."""
        self.idle.pop(machine, None)

    def returned(self, task_class: int) -> None:
        """Ask on behalf of idle machines for the job of a machine that is gone."""
        if task_class >= 0 and not self.book.pending:
            self.placed(task_class)

    def recalled(self) -> None:
        """Ask on behalf of idle machines, because there is a new plan."""
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
        unfit = None  # the last one that took nothing; equal ones are skipped
        for j in able:
            if not book.waiting[i]:
                return
            alike = (book.rate[i, j], book.plan[i, j])
            if order != "fastest" or alike != unfit:
                unfit = None if self._asks(j) else alike

    def foresee(self, machine: int) -> bool:
        """Give a busy machine its next job ahead; return whether there is one."""
        if self.book.own[machine]:
            return self.book.send_own_ahead(machine)
        return self._asks(machine, ahead=True)

    def _asks(self, machine: int, *, ahead: bool = False) -> bool:
        """Ask for a job for a machine and give it; return whether there is one."""
        book = self.book
        possible = [
            i
            for i, queue in enumerate(book.waiting)
            if queue
            and book.plan[i, machine] > 0.0
            and book.nominal[i, machine] > 0.0
            and not (ahead and queue.first().stays)
        ]
        if not possible:
            return False
        book.asked += 1
        level = max(book.waiting[i].level() for i in possible)
        possible = [i for i in possible if book.waiting[i].level() == level]
        choice = book.ask_ahead(machine, level) if ahead else book.ask(machine, level)
        book.decisions.append(Decision(book.now, machine, tuple(possible), choice, book.plans))
        if choice < 0:
            return False
        if choice not in possible:
            book.refusals += not ahead
            return False
        self.idle.pop(machine, None)
        book.give(choice, machine)
        if ahead:  # further short jobs of this class travel with it, but the last ones do not
            queue = book.waiting[choice]
            for _ in range(len(queue) // (2 * len(book.running))):
                following = queue.first()
                is_next = following.options.priority == level and not following.stays
                if not is_next or not book.ahead.has_room(machine):
                    break
                book.give(choice, machine)
        return True


class Push(Central):
    """The policy is asked for a machine when a job arrives, and the job queues there."""

    def __init__(self, book: GridState) -> None:
        super().__init__(book)
        self.held: set[int] = set()
        """Classes that the policy has held back since the offers began."""
        self.is_offering = False
        """Whether offers were broken off."""
        self.is_outdated = False
        """Whether something has happened since, so that held classes are offered again."""
        self.idle: dict[int, None] = {}
        """No machine: none is given a job that the policy has given to another."""

    def foresee(self, machine: int) -> bool:
        """Send a busy machine the first job of its queue ahead; return whether it has one."""
        return self.book.send_own_ahead(machine)

    def placed(self, task_class: int) -> None:
        """Offer waiting jobs to the policy, oldest first, until it holds back the rest."""
        if self.is_offering:
            self.is_outdated = True
        else:
            self.held.clear()
        self._offer()

    def go_on(self) -> None:
        """Continue offers that were broken off."""
        if self.is_offering:
            self._offer()
        else:
            self.placed(-1)

    def _offer(self) -> None:
        book, self.is_offering = self.book, False
        left = {i for i, queue in enumerate(book.waiting) if queue} - self.held
        while left:
            i = min(left, key=lambda k: (-book.waiting[k].level(), book.oldest[k], k))
            j = book.ask(i, book.waiting[i].level())
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
        """Start the next job of the machine's queue, and offer waiting jobs."""
        book = self.book
        book.start_own(machine)
        if not book.pending:
            self.placed(-1)

    def retried(self, task_class: int, machine: int) -> None:
        """Offer a job that was stopped, after its machine has started its next job."""
        self.freed(machine)

    def gone(self, machine: int) -> None:
        """Do nothing: a push grid keeps no list of idle machines."""

    def returned(self, task_class: int) -> None:
        """Offer the jobs of a machine that is gone."""
        if not self.book.pending:
            self.placed(task_class)

    def recalled(self) -> None:
        """Offer waiting jobs: the new plan may allow more."""
        self.placed(-1)


MECHANISMS: dict[Kind, type[Pull] | type[Push] | type[Batch] | type[Chains]] = {
    PULL: Pull,
    PUSH: Push,
    BATCH: Batch,
    CHAIN: Chains,
}
