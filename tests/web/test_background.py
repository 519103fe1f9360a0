"""Work in the background: however it ends, it says so."""

from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import pytest

from gridwright import InputError, load
from gridwright.allocation import long_run_of
from gridwright.policies import find
from gridwright.web.queue import Background
from gridwright.web.simulations import Simulation, Wanted


@dataclass
class Waits(Background):
    """Work that waits to be told to go on."""

    told: Event = field(default_factory=Event)
    began: Event = field(default_factory=Event)

    def work(self) -> None:
        self.began.set()
        assert self.told.wait(20)
        self.go_on()


@dataclass
class Raises(Background):
    problem: Exception

    def work(self) -> None:
        raise self.problem


@pytest.mark.parametrize(("early", "state"), [(False, "done"), (True, "stopped")])
def test_it_ends_by_itself_or_early(early: bool, state: str) -> None:
    task = Waits()
    assert (task.state, task.is_over) == ("waiting", False)
    thread = Thread(target=task.run)
    thread.start()
    assert task.began.wait(20)
    if early:
        task.stop()
    task.told.set()
    thread.join()
    assert (task.state, task.error, task.is_over) == (state, "", True)


def test_what_was_given_up_stays_so() -> None:
    task = Waits()
    thread = Thread(target=task.run)
    thread.start()
    assert task.began.wait(20)
    task.end("stopped", "given up")
    task.told.set()
    thread.join()
    assert (task.state, task.error) == ("stopped", "given up")
    task = Waits()
    task.end("stopped")
    task.run()
    assert not task.began.is_set(), "what is over does not begin"


@pytest.mark.parametrize(
    ("problem", "words"),
    [(InputError("k is 0"), "k is 0"), (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0")],
)
def test_a_failure_is_told(problem: Exception, words: str) -> None:
    task = Raises(problem)
    task.run()
    assert (task.state, task.error) == ("failed", words)


def test_results_may_come_while_they_are_asked_for() -> None:
    simulation = Simulation(1, load("2.B"), (), 10.0, Wanted("2.B", []))
    found: Any = simulation.results

    class Slow:
        def as_json(self) -> dict[str, Any]:
            found["another"] = self
            return {}

    found["one"] = Slow()
    assert simulation.result() == {"results": [{}]}


def test_verdicts_are_found_in_the_thread_of_the_simulation() -> None:
    policies = (find("mct"), find("lpas"))
    for chosen in (policies, policies[:1]):
        simulation = Simulation(1, load("2.B"), chosen, 10.0, Wanted("2.B", []))
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
    simulation = Simulation(1, load("2.B"), (find("mct"),), 10.0, Wanted("2.B", []))
    simulation.run()
    assert simulation.state == "failed"
    assert simulation.error.startswith("the allocation takes too long")
