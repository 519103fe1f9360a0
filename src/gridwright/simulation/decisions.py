"""Runs of a push or pull system that stop at every decision, for whoever makes it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from ..compiler.link import bind, link
from ..compiler.philox import WORDS, Philox, words_of
from ..model import InputError, System, did_you_mean
from ..policies import PULL, PUSH, Policy, View
from ..policies.policy import policy_of
from ..policies.view import records
from .asking import IDLE, PULL_HOOKS, PUSH_HOOKS, WALK
from .central_setup import situation_of
from .central_state import TICKET, State, shown
from .device_arrays import Arrays
from .driver import PHILOX, Conditions, Streams, check_room
from .interrupts import ASKED, DRAWS, POOL, SLICE
from .kernel import GO, OWN, STREAMS, state_of
from .on_device import OnDevice
from .planning import pointed
from .replicate import check_system
from .sampling import arrival_hook, samplers
from .stepping import (
    class_of,
    feature_names,
    machine_of,
    permit_classes,
    permit_machines,
    step_all,
)

TICKETS = State._fields.index("ticket")


def _pull_nothing(machine: int, view: View) -> int:
    return -1


def _push_nothing(task_class: int, view: View) -> int:
    return -1


class Decisions:
    """Replications of a system, which stop together at their next decisions.

    The random numbers are those of ``simulate(…, rng="philox")``: with the decisions of a policy, a
    run is the replication of its seed.

    >>> from gridwright.simulation.decisions import Decisions
    >>> runs = Decisions(System(arrivals=[1], rates=[[2]]), "pull", 2, horizon=10)
    >>> runs.start([0, 1], [SeedSequence(1, spawn_key=(k,)) for k in range(2)])
    >>> bool(runs.is_asked.all()), runs.asking(0)
    (True, 0)
    >>> runs.step(np.array([0, 0]))  # each machine takes the task of class 0
    """

    def __init__(
        self,
        system: System,
        kind: str,
        count: int,
        *,
        horizon: float,
        idle: str = "longest",
        interpreted: bool = False,
    ) -> None:
        self.system, self.horizon, self.interpreted = system, float(horizon), interpreted
        self.policy = _placeholder(kind, idle)
        check_system(system, self.policy)
        if system.believes_anew:
            raise InputError(
                "[assumed] arrivals that are 'present' or measured are for policies, not for "
                "learners"
            )
        pulls = self.policy.kind.pulls
        classes, machines = system.shape
        self.choices = classes if pulls else machines
        self.features = feature_names(classes, machines, machines if pulls else classes)
        self.first = self._mechanism(SeedSequence(0))
        one = self.first.state
        batches = [(one, 1)] * count if self.first.is_drawn else [(one, count)]
        self.arrays = Arrays(_Here(), batches, self.first.shared)
        self.walks = records(count, WALK)
        self.words = np.zeros((count, STREAMS, WORDS), np.int64)
        self.beliefs: list[Generator] = [np.random.default_rng(0)] * count
        self.blocks: dict[int, list[tuple[int, int]]] = {}
        """Tickets that a run has got since its first ones: where they begin, and how many."""
        self.used = len(self.arrays.parts[TICKETS])
        self.reasons = np.full(count, SLICE)
        self.seen = np.zeros((count, len(self.features)), np.float32)
        self.mask = np.zeros((count, self.choices + 1), np.bool_)
        self.outcome = np.zeros((count, 2))
        self._link(PULL_HOOKS | {"next_idle": IDLE[idle]} if pulls else PUSH_HOOKS)

    def _link(self, hooks: dict[str, Any]) -> None:
        shapes, pulls = self.first.state.shapes, self.policy.kind.pulls
        hooks = {**hooks, **samplers(shapes), **arrival_hook(shapes)}
        hooks["asks"] = machine_of if pulls else class_of
        hooks["permit"] = permit_classes if pulls else permit_machines
        make_plan, self.room = self.first.planner()
        if self.interpreted:
            self.step_all, self.make_plan = bind(step_all, **hooks), make_plan
            return
        state = self.first.state
        self.step_all = link(step_all, inlined=True, **hooks)
        self.make_plan = pointed(make_plan, situation_of(state), self.room, state.plan)

    @property
    def is_asked(self) -> NDArray[np.bool_]:
        """Whether each run waits for a decision; the others are at their horizons."""
        return self.reasons == ASKED

    def asking(self, run: int) -> int:
        """Return the machine of a run that asks; in a push system, the class that is offered."""
        walk = self.walks[run]
        return int(walk.machine if self.policy.kind.pulls else walk.task_class)

    def view(self, run: int) -> View:
        """Return what a policy would be shown now."""
        own: Any = Philox(self.words[run, OWN])
        return shown(self.state(run), float(self.outcome[run, 0]), own)

    def state(self, run: int) -> State:
        """Return the state of a run; its arrays are those that the loop writes to."""
        return state_of(State(*self.arrays.parts), self.arrays.where[run])

    def start(self, runs: Sequence[int], seeds: Sequence[SeedSequence]) -> None:
        """Start some runs anew, and run them to their first decisions."""
        places = np.asarray(runs)
        self.words[places] = words_of(seeds, STREAMS)
        if self.first.is_drawn:
            for run, seed in zip(runs, seeds, strict=True):
                self._draw_start(run, seed)
        else:
            self._copy_start(places)
        for run in self.blocks.keys() & set(runs):
            self.state(run).count[0].free = 0
            for begin, size in self.blocks[run]:
                self._give(run, begin, size)
        self.walks[places] = np.zeros(1, WALK)
        self.reasons[places] = GO
        self._go()

    def step(self, answers: NDArray[np.int64]) -> None:
        """Answer every run that asks, and continue it to its next decision.

        An answer is a class, or a machine in a push system; −1 for none.
        """
        self.walks["answer"] = answers
        self.reasons[self.reasons == ASKED] = GO
        self._go()

    def _go(self) -> None:
        while True:
            self.step_all(
                State(*self.arrays.parts),
                self.arrays.where,
                self.walks,
                self.horizon,
                self.make_plan,
                self.room,
                self.words,
                self.reasons,
                self.seen,
                self.mask,
                self.outcome,
            )
            needy = np.flatnonzero((self.reasons == POOL) | (self.reasons == DRAWS)).tolist()
            if not needy:
                return
            for run in needy:
                self._grow(run) if self.reasons[run] == POOL else self._draw(run)
                self.reasons[run] = GO

    def _mechanism(self, seed: SeedSequence) -> OnDevice:
        conditions = Conditions(self.horizon, seed, rng=PHILOX)
        return OnDevice(self.system, self.policy, conditions, event_list=True)

    def _copy_start(self, places: NDArray[np.int64]) -> None:
        """Put some runs back to time 0, where all are alike."""
        for field, array in enumerate(self.first.state):
            if field not in self.first.shared and array.size:
                size = array.size
                part = self.arrays.parts[field][: size * len(self.reasons)]
                part.view(np.ndarray).reshape(-1, size)[places] = np.asarray(array).reshape(-1)

    def _draw_start(self, run: int, seed: SeedSequence) -> None:
        """Put a run back to a time 0 of its own."""
        made = self._mechanism(seed)
        for field, array in enumerate(made.state):
            self.arrays.write(field, array, run)
        streams: Any = made.streams
        self.words[run] = [each.words for each in streams[:STREAMS]]
        self.beliefs[run] = streams.beliefs

    def _grow(self, run: int) -> None:
        """Double the room of a run: it gets tickets at the end of all of them."""
        room = len(self.first.state.ticket)
        room += sum(size for _, size in self.blocks.get(run, []))
        check_room(self.first, room, self.state(run).count[0].now)
        begin, tickets = self.used, self.arrays.parts[TICKETS]
        self.used += room
        if self.used > len(tickets):  # more than needed now, since others will need some soon
            fresh = np.zeros(max(room, len(tickets) // 2), TICKET)
            self.arrays.parts[TICKETS] = np.concatenate([tickets, fresh]).view(np.recarray)
        self.blocks.setdefault(run, []).append((begin, room))
        self._give(run, begin, room)

    def _give(self, run: int, begin: int, size: int) -> None:
        """Put tickets before the free ones of a run."""
        count = self.state(run).count[0]
        first = begin - int(self.arrays.where[run, TICKETS, 0])
        block = self.arrays.parts[TICKETS][begin : begin + size]
        block["next"] = np.append(np.arange(first + 1, first + size), count.free)
        count.free = first

    def _draw(self, run: int) -> None:
        """Draw from users' own distributions for a run."""
        mechanism = copy(self.first)
        mechanism.state = self.state(run)
        streams: list[Any] = [*map(Philox, self.words[run]), self.beliefs[run]]
        mechanism.streams = Streams(*streams)
        mechanism.refill()


class _Here:
    """The memory of this computer."""

    def put(self, array: Any, times: int = 1) -> Any:
        copied = np.concatenate([array] * times)
        return copied.view(np.recarray) if array.dtype.names else copied

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        array[...] = there[first : first + len(array)]

    def write(self, there: Any, array: Any, first: int) -> None:
        there[first : first + len(array)] = array


def _placeholder(kind: str, idle: str) -> Policy:
    """Return a policy of a kind, for what depends on the kind alone."""
    if kind not in (PUSH.name, PULL.name):
        raise InputError(f"kind is {kind!r}; expected push or pull")
    if idle not in IDLE:
        hint = did_you_mean(idle, IDLE) or f"; expected {' or '.join(IDLE)}"
        raise InputError(f"no order of idle machines {idle!r}{hint}")
    if kind == PULL.name:
        return policy_of(_pull_nothing, PULL, idle=idle)
    return policy_of(_push_nothing, PUSH)
