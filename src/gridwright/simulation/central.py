"""The mechanism of push and pull policies: one scheduler decides about single tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..model import Floats, InputError, MarkovChain, System
from ..policies import Policy
from . import event_loop, preemption, pull, push
from .central_setup import is_static, make_plan, make_state, situation_of
from .central_state import State
from .driver import Conditions, Mechanism
from .interrupts import ASK, MAKE_PLAN
from .planning import Planning, choose_planner, pointed
from .sampling import arrival_hook

MOST_WINDOWS = 10_000_000
"""The most times that arrival rates are measured in a run: 6,000 of them, with a plan each, and
240,000 tasks take 0.6 CPU seconds."""


class Central(Mechanism):
    """A push or pull system.

    Push systems whose machines neither fail nor change start with the loop that has no event list.
    If the policy holds a task back there, the replication starts again with the other loop. That
    loop makes plans itself, so it also runs where arrival rates are measured: there are many plans.
    """

    most: ClassVar[int] = 1 << 25  # tickets take about 2 GB then
    events_per_step = staticmethod(event_loop.events_per_step)

    def __init__(
        self,
        system: System,
        policy: Policy,
        conditions: Conditions,
        *,
        event_list: bool | None = None,
    ) -> None:
        super().__init__(system, policy, conditions)
        if event_list is None:
            event_list = policy.kind.pulls or not is_static(system) or system.delays is not None
            event_list |= system.arrivals_window is not None
        if conditions.horizon > MOST_WINDOWS * (system.arrivals_window or np.inf):
            raise InputError(
                f"[assumed] arrivals are measured over {system.arrivals_window:g} time units, and "
                f"a run of {conditions.horizon:g} has more than {MOST_WINDOWS:,} of these; choose "
                "a longer time, or a shorter run"
            )
        self.counts_at_once = not event_list
        self.plans: dict[bytes, Floats] = {}
        self.state, self.distributions = make_state(system, policy, self.streams)
        self.go, self.rest = self._with_event_list() if event_list else self._without_event_list()

    def slices(self) -> Iterator[tuple[float, bool, float]]:
        """Cut the run where other arrival rates are believed too."""
        changes = self._changes_of_beliefs()
        at, believe = next(changes, (np.inf, lambda: None))
        for until, is_sample, done in super().slices():
            while at < until:
                yield at, False, done
                believe()
                at, believe = next(changes)
            yield until, is_sample, done
            if at == until < self.conditions.horizon:
                believe()
                at, believe = next(changes)

    def _changes_of_beliefs(self) -> Iterator[tuple[float, Any]]:
        """Return when other arrival rates are believed, and what to do then."""
        if self.system.follows_profile:
            for at, rates in self._changes_of_rates():
                yield at, partial(self._believe, rates)
        elif (window := self.system.arrivals_window) is not None:
            before = np.zeros(len(self.state.classes), np.int64)
            for number in itertools.count(1):
                yield number * window, partial(self._believe_measured, window, before)

    def _believe_measured(self, window: float, before: NDArray[np.int64]) -> None:
        """Let the policy believe the arrival rates of the last window, and note how many came.

        A class of which none came counts as half a task: a plan for none would leave it waiting.
        """
        came = np.array(self.state.classes["arrived"])
        rates = np.maximum(came - before, 0.5) / window
        before[:] = came
        self.plans.clear()  # such rates hardly come again
        self._believe(rates)

    def _changes_of_rates(self) -> Iterator[tuple[float, Floats]]:
        """Return when arrival rates change, and those from then on."""
        profile = self.system.profile
        assert profile is not None
        factors = profile.rows(len(self.state.classes))
        first = self.state.classes["arrival"].copy()  # as believed in the first period
        rates = np.roll(first * (factors / factors[:, :1]).T, -1, axis=0)
        ends = np.cumsum(profile.durations)
        for cycle in itertools.count():
            yield from zip((cycle * ends[-1] + ends).tolist(), rates, strict=True)

    def _believe(self, rates: Floats) -> None:
        """Let the policy know other arrival rates, and make a plan for them."""
        self.state.classes["arrival"] = rates
        if self.policy.planner is not None and self.counts_at_once:
            self.plan()
            self.state.count[0].replans += 1
        elif self.policy.planner is not None:
            self.state.count[0].pending = MAKE_PLAN

    @staticmethod
    def check(system: System, policy: Policy) -> None:
        """Refuse delays that not all policies have, and lost work that would have to be kept."""
        late, failures = system.delays, system.failures
        if late is not None and policy.preempts:
            raise InputError(
                f"[delays] are for policies that do not interrupt tasks; {policy} does: simulate "
                f"{policy.name}:preempt=false, or leave out [delays]"
            )
        if late is not None and not policy.kind.pulls and (late.sending or np.any(late.timeout)):
            raise InputError(
                f"[delays] sending and timeout are for pull policies; {policy.name} is a "
                f"{policy.kind} policy"
            )
        keeps = failures is not None and failures.same_work and not policy.kind.pulls
        if keeps and late is not None and np.any(late.after) and _changes(system):
            raise InputError(
                "[failures] same_work, [delays] after and availabilities that change are for pull "
                f"policies only, if all three are given; {policy.name} is a {policy.kind} policy"
            )

    @property
    def hooks(self) -> dict[str, Any]:
        """The functions that make the loop with an event list a push or a pull system."""
        if self.policy.preempts:
            return preemption.HOOKS
        return pull.ORDERS[self.policy.options["idle"]] if self.policy.kind.pulls else push.HOOKS

    @property
    def plans_anew(self) -> bool:
        """Whether the situation that planners know changes during a run."""
        if self.system.failures is not None or self.system.believes_anew:
            return True
        return bool(self.state.server["period"].any())

    def planner(self) -> tuple[Any, Planning]:
        """Return the function that makes new plans during a run, and its arrays."""
        now, arrivals = situation_of(self.state), np.zeros(len(self.state.classes))
        return choose_planner(self.policy, now, arrivals, compiled=self.plans_anew)

    def _without_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        conditions, streams = self.conditions, self.streams
        rest = (conditions.warmup, conditions.horizon, streams.tasks, streams.policy)
        return self.linked(push.loop, self.state.shapes, **arrival_hook(self.state.shapes)), rest

    def _with_event_list(self) -> tuple[Any, tuple[Any, ...]]:
        state = self.state
        go = self.linked(event_loop.loop, state.shapes, **self.hooks, **arrival_hook(state.shapes))
        make_plan, planning = self.planner()
        if not self.conditions.interpreted:
            make_plan = pointed(make_plan, situation_of(state), planning, state.plan)
        return go, (self.conditions.warmup, make_plan, planning, *self.streams[:4])

    def fallback(self) -> Mechanism:
        """Start again with an event list: the policy holds a task back."""
        return Central(self.system, self.policy, self.conditions, event_list=True)

    def occupied(self, now: float) -> Floats:
        """Leave out the time in which a queued task or its result is on its way."""
        server = np.asarray(self.state.server)
        ends = np.minimum(now, server["finish"] - server["lag"])
        return np.maximum(ends - server["begun"], 0.0)

    def plan(self) -> None:
        """Make the plan that the loop asks for, or take it from an equal situation before."""
        key = self.state.present.tobytes() + self.state.classes["arrival"].tobytes()
        if key not in self.plans:
            self.plans[key] = make_plan(self.policy, self.state)
        self.state.plan[:] = self.plans[key]
        self.state.count[0].pending = ASK

    def forget(self) -> None:
        """Start the statistics again at the end of the warm-up."""
        super().forget()
        stream = self.state.stream
        stream["area"] = -stream["inside"] * self.state.count["now"]

    def measured(self) -> dict[str, Any]:
        return central_figures(self.state, self.conditions)


def _changes(system: System) -> bool:
    """Tell whether the availability of a machine changes."""
    return any(isinstance(each, MarkovChain) for each in system.availability)


def central_figures(state: State, conditions: Conditions) -> dict[str, Any]:
    """Return what is counted in the state of a central system, as fields of ``Replication``.

    With the states of many runs, the runs are the first axis of everything.
    """
    count, stream = np.asarray(state.count)[..., 0], np.asarray(state.stream)
    area = stream["area"] + stream["inside"] * conditions.horizon
    return {
        "class_number": area / (conditions.horizon - conditions.warmup),
        "lost": stream["lost"].sum(axis=-1),
        **{name: count[name] for name in ("held", "asked", "replans", "interrupted")},
        "tally": state.tally.copy(),
        "permitted": np.count_nonzero(state.plan, axis=-1).astype(float),
        "memory": state.memory.copy(),
    }
