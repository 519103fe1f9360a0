"""A grid without a scheduler in virtual time: books of machines, and messages between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from .job import Job
from .peer import Begin, Content, Decided, Handover, Message, Output, Peer, PeerJob, Rates, Taken
from .peer_jobs import Arrive, PeerJobs

END, CHANGE, ARRIVAL = range(3)
"""What comes first of what happens at the same time."""


class PeerNetwork:
    """Machines in virtual time.

    ``make(machine)`` returns the empty book of a machine, ``duration(job, machine)`` how long a job
    takes there if it begins now, ``latency(sender, receiver)`` how long a message takes. ``before``
    and ``after`` are the times from beginning a job to its start, and from its end until the
    machine knows. Messages from one machine to another keep their order.
    """

    def __init__(
        self,
        machines: int,
        make: Callable[[int], Peer],
        duration: Callable[[PeerJob, int], float],
        latency: Callable[[int, int], float] = lambda sender, receiver: 0.0,
        before: float = 0.0,
        after: float = 0.0,
    ) -> None:
        self.make, self.duration, self.latency = make, duration, latency
        self.before, self.after = before, after
        self.now = 0.0
        self.jobs = PeerJobs(machines)
        self.peers: list[Peer | None] = [None] * machines
        """The book of each machine that is up."""
        self.sent: Counter[str] = Counter()
        """Messages of books that are gone."""
        self.decisions: list[tuple[int, Decided]] = []
        """Decisions, with the machine that made each."""
        self._lives = [0] * machines
        self._last: dict[tuple[int, int], float] = {}
        self._agenda: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()
        for machine in range(machines):
            self.repair(machine)

    @property
    def messages(self) -> Counter[str]:
        """How many messages of each kind were sent between machines."""
        return sum((peer.sent for peer in self.peers if peer is not None), self.sent)

    def at(self, time: float, action: Callable[[], None], order: int = ARRIVAL) -> None:
        """Do something at a time."""
        heappush(self._agenda, (time, order, next(self._numbers), action))

    def run(self, until: float = float("inf")) -> None:
        """Let everything happen before a time."""
        while self._agenda and self._agenda[0][0] < until:
            self.now, _, _, action = heappop(self._agenda)
            action()

    def submit(self, job: Job, home: int, size: float = 1.0) -> None:
        """Let a job arrive at a machine."""
        self._arrive(self.jobs.submit(job, home, size))

    def change(self, machine: int, rates: Rates) -> None:
        """Change the rates of a machine."""
        peer = self.peers[machine]
        if peer is not None:
            peer.change(rates)

    def fail(self, machine: int) -> None:
        """Kill a machine, with its queue and all it knows."""
        peer = self.peers[machine]
        if peer is None:
            return
        self.sent += peer.sent
        self.peers[machine] = None
        self._lives[machine] += 1
        for j, other in enumerate(self.peers):
            if other is not None:
                self._notice(j, machine)
        self._arrive(self.jobs.machine_down(machine))

    def repair(self, machine: int) -> None:
        """Bring a machine back: its book is empty, and the others hear of it."""
        if self.peers[machine] is not None:
            return
        peer = self.peers[machine] = self.make(machine)
        self.jobs.up[machine] = True
        for j, other in enumerate(self.peers):
            if other is not None and other is not peer:
                self._act(j, other.gone(self.now, machine))  # if it has not noticed
                self._act(j, other.here(self.now, machine))
            elif other is None and self._lives[j]:
                self._act(machine, peer.gone(self.now, j))
        self._arrive(self.jobs.machine_up(machine))

    def _arrive(self, arrivals: list[Arrive]) -> None:
        for home, job in arrivals:
            peer = self.peers[home]
            if peer is not None:
                self._act(home, peer.arrive(self.now, job))

    def _act(self, machine: int, out: list[Output]) -> None:
        """Do what a machine says."""
        for each in out:
            match each:
                case Message(to, content):
                    self._carry(machine, to, content)
                case Begin(job):
                    self._run(job, machine)
                case Taken(job):
                    self.jobs.taken(self.now, machine, job.number)
                case Decided():
                    self.decisions.append((machine, each))

    def _carry(self, sender: int, to: int, content: Content) -> None:
        """Deliver a message, unless one of the two machines dies before.

        A job arrives even if its sender dies: it may have left before.
        """
        life, other = self._lives[sender], self._lives[to]

        def deliver() -> None:
            peer = self.peers[to]
            is_there = life == self._lives[sender] or isinstance(content, Handover)
            if peer is not None and other == self._lives[to] and is_there:
                self._act(to, peer.hear(self.now, sender, content))

        self._after(self.latency(sender, to), sender, to, deliver)

    def _after(self, delay: float, sender: int, to: int, action: Callable[[], None]) -> None:
        """Let something happen after a delay, and after all before it between two machines."""
        if delay <= 0.0:
            action()
            return
        when = max(self.now + delay, self._last.get((sender, to), 0.0))
        self._last[sender, to] = when
        self.at(when, action)

    def _notice(self, machine: int, gone: int) -> None:
        """Let a machine notice, after a while, that another is gone."""
        lives = self._lives[machine], self._lives[gone]

        def notice() -> None:
            peer = self.peers[machine]
            is_so = self.peers[gone] is None
            if peer is not None and is_so and lives == (self._lives[machine], self._lives[gone]):
                self._act(machine, peer.gone(self.now, gone))

        self._after(self.latency(gone, machine), gone, machine, notice)

    def _run(self, job: PeerJob, machine: int) -> None:
        life, sent = self._lives[machine], self.now
        started = sent + self.before
        at = started + self.duration(job, machine)

        def end() -> None:
            peer = self.peers[machine]
            if peer is not None and self._lives[machine] == life:
                times = {"sent": sent, "started": started, "at": at}
                self.jobs.ended(self.now, machine, job.number, **times)
                self._act(machine, peer.ended(self.now, job.number))

        self.jobs.started(machine, job.number, sent=sent, at=started)
        self.at(at + self.after, end, END)
