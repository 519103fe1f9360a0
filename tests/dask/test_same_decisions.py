"""The scheduler plugin assigns tasks as a book does that is told of the same events."""

import copy
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")
from distributed import Client, SchedulerPlugin, get_worker

from gridwright.dask import Placement
from gridwright.grid.book import Book
from gridwright.grid.job import Send
from gridwright.policies import find

pytestmark = pytest.mark.slow

EVENTS = (
    "add_class",
    "add_machine",
    "believe",
    "cancel",
    "close",
    "finished",
    "machine_down",
    "machines_up",
    "open",
    "not_begun",
    "send_ahead",
    "submit",
    "take_plan",
)


class Assignments(SchedulerPlugin):  # type: ignore[misc]
    """Notes to which worker the scheduler sends each task."""

    name = "assignments"

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.found: list[tuple[Any, Any]] = []

    def transition(self, key: Any, start: str, finish: str, *args: Any, **details: Any) -> None:
        if finish == "processing":
            self.found.append((key, self.scheduler.tasks[key].processing_on))


CLUSTER = {"n_workers": 3}


def quick(seconds: float) -> None:
    time.sleep(seconds * (1 if get_worker().name == 0 else 3))


def slow(seconds: float) -> None:
    time.sleep(seconds * (1 if get_worker().name == 1 else 3))


@pytest.mark.parametrize("policy", ["fcfs", "gcmu", "lpas_dg", "pas_dg", "mct", "pas"])
def test_live_decisions_are_those_of_a_book(client: Client, policy: str) -> None:
    client.register_plugin(Placement(policy))
    scheduler = client.cluster.scheduler
    seen = Assignments(scheduler)
    scheduler.add_plugin(seen)
    placer = scheduler.plugins["gridwright"].placer
    events: list[tuple[str, Any, Any]] = []
    keys: dict[int, Any] = {}
    record(placer, events, keys)
    placer.book.ahead.most = 1
    first = [(worker, list(slots)) for worker, slots in placer.workers.items()]
    futures = []
    for k in range(60):
        function = slow if k % 3 else quick
        futures.append(client.submit(function, 0.004 + 0.0005 * (k % 7), pure=False))
        if k == 30:
            client.gather(futures)
        if k == 40:
            client.cluster.scale(2)
    client.gather(futures)

    book = Book(find(policy), np.zeros((0, 0)), [], up=False, start=placer.book.start)
    book.plans_beside = lambda: True
    book.ahead.most, book.ahead.brief = 1, placer.book.ahead.brief
    workers = {slot: worker for worker, slots in first for slot in slots}
    for _ in workers:
        book.add_machine(np.ones(0))
    book.machines_up(placer.book.start, sorted(workers))
    decided: list[tuple[Any, Any]] = []
    for name, args, options in events:
        said = getattr(book, name)(*args, **options) or []
        sends = [each for each in said if isinstance(each, Send)]
        decided += [(keys[each.job], workers[each.machine].name) for each in sends]
    assert sorted(decided) == sorted((key, worker.name) for key, worker in seen.found)
    assert len(decided) >= 60


def record(placer: Any, events: list[tuple[str, Any, Any]], keys: dict[int, Any]) -> None:
    """Note every event that the book of a placer is told of, and the keys of its jobs."""
    for name in EVENTS:
        call = getattr(placer.book, name)

        def noted(*args: Any, _name: str = name, _call: Any = call, **options: Any) -> Any:
            events.append((_name, copy.deepcopy(args), copy.deepcopy(options)))
            if _name == "submit":
                keys[args[1]] = next(reversed(placer.numbers))
            return _call(*args, **options)

        setattr(placer.book, name, noted)
