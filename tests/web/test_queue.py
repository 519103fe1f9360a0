"""Background tasks: they wait for their turn, can be stopped, and record how they ended."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gridwright import InputError, load
from gridwright.allocation import long_run_of
from gridwright.policies import find
from gridwright.web.queue import Queue, Task
from gridwright.web.simulations import Simulation, Wanted


@dataclass
class Waits(Task):
    """Wait for a signal, then look whether to go on."""

    kind = "wait"

    signal: Event = field(default_factory=Event)
    began: Event = field(default_factory=Event)

    def work(self) -> None:
        self.began.set()
        assert self.signal.wait(20)
        self.go_on()


class Alone(Waits):
    kind = "alone"

    def refusal(self, others: list[Task]) -> str:
        return "one is running" if others else ""


class Hangs(Waits):
    kind = "hang"
    grace = 0.05


@dataclass
class Raises(Task):
    kind = "error"

    problem: Exception

    def work(self) -> None:
        raise self.problem


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue()
    yield made
    for kind in (Waits, Alone, Hangs):
        for task in made.all(kind):
            task.signal.set()
    made.close()


@pytest.mark.parametrize(("early", "state"), [(False, "done"), (True, "stopped")])
def test_a_task_ends_by_itself_or_early(queue: Queue, early: bool, state: str) -> None:
    task = queue.start(Waits())
    assert task.began.wait(20)
    assert (task.state, task.is_over) == ("running", False)
    if early:
        queue.stop(task)
    task.signal.set()
    assert task.ended.wait(20)
    assert (task.state, task.error, task.is_over) == (state, "", True)
    assert task.record() == {"state": state, "error": "", "share": 0.0 if early else 1.0}


def test_tasks_of_a_kind_run_one_after_the_other(queue: Queue) -> None:
    first, second, third = (queue.start(Waits()) for _ in range(3))
    other = queue.start(Alone())
    assert first.began.wait(20)
    assert other.began.wait(20), "another kind does not wait"
    assert (first.number, second.number, other.number) == (1, 2, 1)
    assert (second.state, third.state) == ("waiting", "waiting")
    queue.stop(second)
    assert second.state == "stopped", "a task that waits stops at once"
    first.signal.set()
    assert third.began.wait(20)
    assert not second.began.is_set()
    assert queue.all(Waits) == [third, second, first]
    assert queue.find(Waits, 2) is second
    assert queue.find(Waits, 4) is None


def test_a_task_may_refuse_to_wait(queue: Queue) -> None:
    first = queue.start(Alone())
    with pytest.raises(InputError, match="one is running"):
        queue.start(Alone())
    first.signal.set()
    assert first.ended.wait(20)
    assert queue.start(Alone()).number == 2


def test_a_task_that_does_not_return_is_given_up(queue: Queue) -> None:
    task, following = queue.start(Hangs()), queue.start(Hangs())
    assert task.began.wait(20)
    queue.stop(task)
    assert task.ended.wait(20)
    assert task.state == "stopped"
    assert task.error.endswith("its code is being compiled, or does not return")
    assert following.began.wait(20), "the next task begins"
    task.signal.set()
    assert task.state == "stopped"


def test_old_tasks_are_forgotten_but_none_that_waits(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridwright.web.queue.KEPT", 2)
    first, second = queue.start(Waits()), queue.start(Waits())
    with pytest.raises(InputError, match="2 waits are waiting; stop some of them first"):
        queue.start(Waits())
    queue.stop(second)
    third = queue.start(Waits())
    assert queue.all(Waits) == [third, first]


@pytest.mark.parametrize(
    ("problem", "words"),
    [(InputError("k is 0"), "k is 0"), (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0")],
)
def test_a_failure_is_recorded(queue: Queue, problem: Exception, words: str) -> None:
    task = queue.start(Raises(problem))
    assert task.ended.wait(20)
    assert (task.state, task.error) == ("failed", words)


def test_results_may_come_while_they_are_asked_for() -> None:
    simulation = Simulation(load("2.B"), (), 10.0, Wanted(system="2.B"))
    found: Any = simulation.results

    class Slow:
        def as_json(self) -> dict[str, Any]:
            found["another"] = self
            return {}

    found["one"] = Slow()
    assert simulation.result() == {"results": [{}]}


def test_verdicts_are_found_in_the_thread_of_the_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    policies = (find("mct"), find("lpas"))
    for chosen in (policies, policies[:1]):
        simulation = Simulation(load("2.B"), chosen, 10.0, Wanted(system="2.B"))
        simulation.run()
        assert (simulation.state, simulation.error) == ("done", "")
        long_run_of.cache_clear()
        lines = simulation.progress()["policies"]
        assert [line["stable"] for line in lines] == [None] * len(chosen)
        assert long_run_of.cache_info().misses == 0, "a page that shows the lines solves nothing"


def test_a_system_whose_load_takes_too_long_is_not_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gridwright.web.simulations.SECONDS", 0.0)
    long_run_of.cache_clear()
    simulation = Simulation(load("2.B"), (find("mct"),), 10.0, Wanted(system="2.B"))
    simulation.run()
    assert simulation.state == "failed"
    assert simulation.error.startswith("the allocation takes too long")
