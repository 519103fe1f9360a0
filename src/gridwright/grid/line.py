"""A queue of jobs: by priority, by client, and by age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from .job import Job


class Line:
    """A queue of jobs: the highest priority first, clients in turn, then as long as they wait.

    A job that ends while it waits is skipped when its turn comes.
    """

    __slots__ = ("_gone", "_heaps", "_next", "_size", "_taken", "levels")

    def __init__(self) -> None:
        self._heaps: dict[str, list[tuple[int, float, int, Job]]] = {}
        """The jobs of each client that has any."""
        self._taken: dict[str, int] = {}
        """How many jobs of these clients were taken since they wait; a new one begins with the
        least count of the others."""
        self._gone = self._next = self._size = 0
        self.levels: Counter[int] = Counter()
        """How many jobs there are of each priority."""

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Job]:
        every = sorted(each for heap in self._heaps.values() for each in heap)
        return (job for *_, job in every if not job.stage.is_final)

    def append(self, job: Job, *, is_next: bool = False) -> None:
        """Add a job behind those of its priority, or before those that are not next."""
        self._next += 1
        self._push("", job, -1.0 if is_next else 0.0, self._next)

    def insert(self, job: Job) -> None:
        """Add a job among those of its priority and client, in the order of ``since``."""
        self._push(job.options.client, job, job.since, job.number)

    def _push(self, client: str, job: Job, time: float, number: int) -> None:
        if client not in self._heaps:
            self._heaps[client] = []
            self._taken[client] = min(self._taken.values(), default=0)
        self._size += 1
        self.levels[job.options.priority] += 1
        heappush(self._heaps[client], (-job.options.priority, time, number, job))

    def first(self) -> Job:
        """Return the first job."""
        return self._heaps[self._first_client()][0][3]

    def level(self) -> int:
        """Return the priority of the first job."""
        return self.first().options.priority

    def popleft(self) -> Job:
        """Remove the first job and return it."""
        client = self._first_client()
        job = heappop(self._heaps[client])[3]
        self._taken[client] += 1
        self._tidy(client)
        self._forget(job)
        return job

    def take(self, job: Job) -> None:
        """Remove a job, wherever it is in the queue."""
        for client, heap in self._heaps.items():
            found = next((k for k, each in enumerate(heap) if each[3] is job), -1)
            if found >= 0:
                if found == 0:
                    heappop(heap)
                else:
                    del heap[found]
                    heapify(heap)
                self._taken[client] += 1
                self._tidy(client)
                self._forget(job)
                return

    def drop(self, job: Job) -> None:
        """Note that a job of the queue has ended."""
        self._forget(job)
        self._gone += 1
        if self._gone > len(self):
            for client, heap in list(self._heaps.items()):
                self._heaps[client] = [each for each in heap if not each[3].stage.is_final]
                heapify(self._heaps[client])
                self._tidy(client)
            self._gone = 0

    def _first_client(self) -> str:
        if self._gone:
            for client in list(self._heaps):
                self._tidy(client)
        if len(self._heaps) == 1:
            return next(iter(self._heaps))
        return min(
            self._heaps, key=lambda c: (self._heaps[c][0][0], self._taken[c], self._heaps[c])
        )

    def _tidy(self, client: str) -> None:
        """Remove ended jobs from the front of a client's jobs, and a client without jobs."""
        heap = self._heaps[client]
        while heap and heap[0][3].stage.is_final:
            heappop(heap)
            self._gone -= 1
        if not heap:
            del self._heaps[client], self._taken[client]

    def _forget(self, job: Job) -> None:
        self._size -= 1
        self.levels[job.options.priority] -= 1
        if not self.levels[job.options.priority]:
            del self.levels[job.options.priority]
