"""The mechanism of peer policies: every machine decides for the tasks that arrive at it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from ..allocation import groups_of
from ..model import Floats, InputError, MarkovChain, System
from ..policies import Policy
from ..policies.view import CLASS, MACHINE, records
from .central import Central, central_figures
from .central_setup import is_static, make_state
from .central_state import State
from .driver import Conditions, Mechanism, Streams
from .event_log import START, note
from .peer_loop import events_per_step, loop
from .peer_state import DIARY, PeerState, situation
from .planning import choose_planner, pointed

MOST_MACHINES = 1000
"""Every machine keeps data on every other, so memory grows with the square of their number."""


class Peers(Mechanism):
    """A decentralised system."""

    most: ClassVar[int] = Central.most
    events_per_step = staticmethod(events_per_step)
    counts_at_once = True

    @staticmethod
    def check(system: System, policy: Policy) -> None:
        """Refuse a system in which no peer policy can run."""
        name = system.name or "the system"
        chains = any(isinstance(each, MarkovChain) for each in system.availability)
        if chains and system.changes is not None and system.changes.availability:
            raise InputError(
                f"{name} has availability that changes as a chain and in [changes]; expected one"
            )
        if system.shape[1] > MOST_MACHINES:
            raise InputError(
                f"{name} has {system.shape[1]} machines; expected at most {MOST_MACHINES}"
            )
        if system.assumed is not None and system.assumed.inaccuracy.availability:
            raise InputError(
                f"{name}: peer policies support an inaccuracy of arrivals and rates only"
            )

    def __init__(self, system: System, policy: Policy, conditions: Conditions) -> None:
        super().__init__(system, policy, conditions)
        central, self.distributions = make_state(system, policy, self.streams)
        self.state = make_peers(system, central, self.streams)
        self.ages: list[Floats] = []
        self.disputes: list[float] = []
        self.go = self.linked(loop, central.shapes)
        now = situation(self.state, 0)
        make_plan, planning = choose_planner(policy, now, self.state.load, compiled=True)
        if not conditions.interpreted:
            make_plan = pointed(make_plan, now, planning, self.state.plan[0])
        length = (conditions.warmup, conditions.horizon)
        self.rest = (*length, make_plan, planning, *self.streams[:4])

    @property
    def core(self) -> State:
        central: State = self.state.central
        return central

    def replace(self, **arrays: Any) -> None:
        self.state = self.state._replace(central=self.core._replace(**arrays))

    def plan(self) -> None:
        """Make the plan of the machine at which a task arrives."""
        home = int(self.state.diary[0].home)
        self.state.plan[home] = self.policy.plan(situation(self.state, home))
        self.state.outdated[home] = False
        self.core.count[0].replans += 1

    def sample(self, now: float) -> None:
        """Note how old the machines' knowledge is, and how far their plans differ."""
        self.ages.append(_ages(self.state, now))
        self.disputes.append(_disagreement(self.state.plan))

    def log_unfinished(self) -> None:
        """Log that the tasks now in service have begun."""
        for j, server in enumerate(self.core.server):
            if server.head >= 0 and server.begun < np.inf:  # else it is down
                ticket = self.core.ticket[server.head]
                note(self.core, server.begun, START, ticket.number, ticket.task_class, j)

    def measured(self) -> dict[str, Any]:
        diary, ages, disputes = self.state.diary[0], np.array(self.ages), np.array(self.disputes)
        more = {
            **{name: int(diary[name]) for name in ("met", "considered", "changes")},
            "view_age": float(ages.mean()),
            "disagreement": float(disputes.mean()),
            "view_ages": ages,  # [sample, machine]
            "disagreements": disputes,  # [sample]
        }
        return {
            **central_figures(self.core, self.conditions),
            "memory": self.state.memory.sum(axis=0),
            "more": MappingProxyType(more),
        }


def _ages(p: PeerState, now: float) -> Floats:
    """Return how long ago every machine heard of the others, on average."""
    machines = len(p.version)
    ages = now - p.heard
    np.fill_diagonal(ages, 0.0)
    return np.asarray(ages.sum(axis=1) / max(machines - 1, 1))


def _disagreement(plan: Floats) -> float:
    """Return the share of zeros and non-zeros in which two machines' plans differ, on average."""
    machines = len(plan)
    if machines < 2:
        return 0.0
    share = np.count_nonzero(plan, axis=0) / machines
    return float(np.mean(2 * share * (1 - share)) * machines / (machines - 1))


def make_peers(system: System, central: State, streams: Streams) -> PeerState:
    """Build the state at time 0 around that of the machines and their tasks."""
    classes, machines = system.shape
    changes, assumed = system.changes, system.assumed
    diary = records(1, DIARY)
    diary["home"] = diary["resumed"] = -1
    diary["change"] = diary["event"] = np.inf
    diary["interval"] = np.inf if changes is None else changes.mean_interval
    diary["redraw"] = changes is not None and changes.redraw_errors
    error_arrival = np.ones((classes, machines))
    if assumed is not None:
        wrong = assumed.inaccuracy
        diary["doubt_arrivals"], diary["doubt_rates"] = wrong.arrivals, wrong.rates
        if assumed.arrivals is not None:
            error_arrival *= (np.array(assumed.arrivals) / system.arrival_rates)[:, None]
        spread = (classes, machines)
        error_arrival *= 1 + streams.beliefs.uniform(-wrong.arrivals, wrong.arrivals, spread)
    rates = np.array(system.nominal, order="C")
    error_rate = np.divide(central.nominal, rates, out=np.ones_like(rates), where=rates > 0)
    rates_change = changes is not None and len(changes.rates) > 0

    def everyone(array: Floats) -> Floats:
        return np.repeat(array[None], machines, axis=0)

    known = records((machines, machines), MACHINE)
    known["up"], known["serving"] = True, -1
    known["availability"] = central.machines["availability"]
    watched = records((machines, classes), CLASS)
    watched["oldest"], watched["cost"] = np.inf, system.holding_costs
    if not is_static(system):
        central.truth[:] = system.effective
    p = PeerState(
        central=central,
        diary=diary,
        first_arrival=system.arrivals.copy(),
        first_rate=rates,
        arrival=system.arrivals.copy(),
        arrival_sum=np.cumsum(system.arrivals, axis=1),
        nominal_now=rates.copy(),
        speed=np.array(system.mean_availability),
        error_arrival=error_arrival,
        error_rate=error_rate,
        held=np.full((machines, 2), -1, np.int64),
        there=np.zeros((classes, machines), np.int64),
        version=np.zeros(machines, np.int64),
        known_version=np.zeros((machines, machines), np.int64),
        heard=np.zeros((machines, machines)),
        machines=known,
        classes=watched,
        arrivals=everyone(system.arrivals * error_arrival),
        nominal=everyone(central.nominal),
        rate=everyone(central.rate),
        expected=everyone(central.expected),
        availability=everyone(central.machines["availability"]),
        assigned=np.zeros((machines, classes, machines), np.int64),
        plan=everyone(central.plan),
        memory=np.zeros((machines, classes, machines)),
        outdated=np.full(machines, assumed is not None),
        group=np.arange(machines) if rates_change else groups_of(central.nominal),
        load=np.zeros(classes),
        arrival_factors=np.array(changes.arrivals if changes else (), dtype=float),
        rate_factors=np.array(changes.rates if changes else (), dtype=float),
        availabilities=np.array(changes.availability if changes else (), dtype=float),
    )
    for q in range(machines):
        situation(p, q)  # fills in the arrival rates that it believes
    return p
