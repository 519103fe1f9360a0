"""Events in any order and with any numbers: what a grid believes stays finite."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright.grid import Corrections, Journal, Mapper, Send, Settings, statistics
from gridwright.grid.executors import Ended, Event, MachineDown, MachineUp, Reading, Started
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.grid.journal import IN_MEMORY
from gridwright.grid.time_limit import Overdue
from gridwright.grid.turn import Submission
from gridwright.policies import find

ODD = st.sampled_from([float("nan"), float("inf"), -float("inf"), -1e300, 1e300, -1.0, 0.0])
TIMES = st.floats(0, 20) | ODD
MACHINES, JOBS, ATTEMPTS = st.integers(0, 1), st.integers(0, 5), st.integers(1, 3)
EVENTS = st.one_of(
    st.builds(Started, MACHINES, JOBS, ATTEMPTS, TIMES),
    st.builds(Ended, MACHINES, JOBS, ATTEMPTS, TIMES, st.just(b""), st.sampled_from(["", "no"])),
    st.builds(Reading, MACHINES, TIMES, TIMES),
    st.builds(MachineDown, MACHINES, st.just("gone"), st.booleans()),
    st.builds(MachineUp, MACHINES),
    st.builds(Overdue, st.builds(Send, JOBS, MACHINES, ATTEMPTS)),
    st.integers(0, 1),  # a job of this class is submitted
)


class Silent(FakeExecutor):
    """An executor that runs nothing: events are made up by the test."""

    async def open(self, tell: Callable[[Event], None], resolution: float = 0.0) -> None:
        """Tell of no machine."""

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        """Run nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "mct", "pas_dg"])
@settings(max_examples=60, deadline=None)
@given(
    events=st.lists(EVENTS, min_size=10, max_size=60),
    retries=st.sampled_from([None, 1]),
    then=st.sampled_from(["resubmit", "duplicate", "wait", "fail"]),
    guessed=st.booleans(),
)
def test_no_event_makes_a_grid_believe_nonsense(
    policy: str, events: list[Any], retries: int | None, then: str, guessed: bool
) -> None:
    chosen = Settings(
        on_timeout=then, retries=retries, guessed=guessed, corrections=Corrections(every_arrivals=1)
    )
    ticks = count(1)
    journal = Journal(IN_MEMORY)
    mapper = Mapper(
        find(policy),
        Silent(["a", "b"], lambda *attempt: 1.0),
        journal,
        ["x", "y"],
        [[1.0, 2.0], [3.0, 0.0]],
        [1.0, 1.0],
        chosen,
        clock=lambda: next(ticks) * 0.01,
        zero=0.0,
    )

    async def hear() -> None:
        await mapper.open()
        numbers = count()
        for event in events:
            if isinstance(event, int):
                event = Submission(next(numbers), event, b"", Future())
            mapper.hear(event)
            await asyncio.sleep(0)

    asyncio.run(hear())
    assert mapper.broken == ""
    book, learner = mapper.book, mapper.beliefs.learner
    believed = (book.nominal, book.rate, book.classes["arrival"], book.machines["availability"])
    learnt = (learner.count, learner.time, learner.wasted, learner.turns)
    for numbers in (*believed, *learnt, book.machines["work"]):
        assert np.isfinite(numbers).all()
        assert (numbers >= -1e-9).all()
    assert ((book.nominal > 0) == [[True, True], [True, False]]).all(), "who can run what is kept"
    found = statistics(journal)
    assert not np.isinf(found.rates).any()
    assert not np.isinf(list(found.overall.as_json().values())).any()
    journal.close()
