"""Build the state of a central system at time 0: what is true, and what the policy believes."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np
from numpy.random import Generator

from ..allocation import Situation, groups_of
from ..model import Distribution, Floats, InputError, MarkovChain, System
from ..policies import Policy
from ..policies.view import CLASS, MACHINE, TALLIES, records
from ..statistics import BINS
from .central_state import COUNT, SERVER, STREAM, TICKET, State
from .driver import Streams, free_pool
from .event_log import EVENT
from .sampling import Cycle, Shapes

POOL = 1024
MOST_CLASSES = 62


def is_static(system: System) -> bool:
    """Tell whether machines neither fail nor change."""
    return system.failures is None and not any(
        isinstance(a, MarkovChain) for a in system.availability
    )


def make_state(
    system: System, policy: Policy, streams: Streams
) -> tuple[State, list[tuple[str, Distribution | Cycle]]]:
    """Build the state at time 0; also the distributions that its shapes stand for."""
    classes, machines = system.shape
    if classes > MOST_CLASSES:
        raise InputError(f"{classes} classes are too many to simulate; at most {MOST_CLASSES}")
    shapes = Shapes()
    nominal, arrivals = _beliefs(system, streams.beliefs)
    server, chain = _servers(system, policy, shapes, streams.faults)
    believed = system.believed
    view = records(machines, MACHINE)
    doubt = 0.0 if system.assumed is None else system.assumed.inaccuracy.availability
    server["believed"] = believed.mean_availability
    server["doubt"], server["told"] = doubt, policy.use_availability
    errors = streams.faults.uniform(-doubt, doubt, machines) if doubt else np.zeros(machines)
    view["up"], view["serving"] = True, -1
    view["availability"] = np.clip(believed.mean_availability * (1 + errors), 0, 1)
    present = view["availability"].copy() if policy.use_availability else np.ones(machines)
    watched = records(classes, CLASS)
    watched["arrival"], watched["oldest"] = arrivals, np.inf
    watched["cost"] = system.holding_costs
    stream = _streams(system, shapes)
    size = 1 << max(machines - 1, 1).bit_length()
    tree = np.zeros(2 * size, np.int64)
    tree[size:] = np.arange(size)
    for k in range(size - 1, 0, -1):
        tree[k] = tree[2 * k]
    count = records(1, COUNT)
    count["oldest"] = count["newest"] = -1
    count["planned"] = policy.planner is not None
    count["same_work"] = system.failures is not None and system.failures.same_work
    count["sending"] = 0.0 if system.delays is None else system.delays.sending
    kinds, table = shapes.tables()
    rate = np.ascontiguousarray(nominal * view["availability"])
    true = system.effective if is_static(system) else system.nominal  # else machines have speeds
    state = State(
        machines=view,
        classes=watched,
        rate=rate,
        nominal=nominal,
        expected=np.divide(1.0, rate, out=np.full_like(rate, np.inf), where=rate > 0),
        assigned=np.zeros((classes, machines), np.int64),
        plan=np.zeros((classes, machines)),
        memory=policy.memory(system.shape),
        tally=np.zeros(TALLIES),
        server=server,
        stream=stream,
        ticket=free_pool(POOL, TICKET),
        count=count,
        truth=np.array(true, order="C"),  # a read-only one would be compiled anew
        due=np.full(size, np.inf),
        tree=tree,
        ends=np.full((machines + 1, 3), -1, np.int64),
        pattern=np.zeros(machines, np.int64),
        group=groups_of(nominal),
        present=present,
        shapes=kinds,
        table=table,
        chain=chain,
        responses=np.zeros((0, BINS), np.int64),
        trace=records(0, EVENT),
    )
    state.plan[:] = make_plan(policy, state)
    _start_idle(state)
    return state, shapes.distributions


def make_plan(policy: Policy, state: State) -> Floats:
    """Ask the policy's planner for a plan of the situation as it is."""
    if policy.planner is None:
        return (state.nominal > 0).astype(float)
    return policy.plan(situation_of(state))


def situation_of(state: State) -> Situation:
    """Describe the state to a planner."""
    return Situation(state.nominal, state.classes["arrival"].copy(), state.present, state.group)


def _beliefs(system: System, rng: Generator) -> tuple[Floats, Floats]:
    """Return the nominal rates and arrival rates that planners and policies see."""
    believed = system.believed
    nominal, arrivals = np.array(believed.nominal, order="C"), believed.arrival_rates.copy()
    if system.follows_profile and system.profile is not None:
        arrivals = system.arrivals * system.profile.rows(len(arrivals))[:, 0]
    if system.assumed is not None:
        wrong = system.assumed.inaccuracy
        nominal = nominal * (1 + rng.uniform(-wrong.rates, wrong.rates, nominal.shape))
        arrivals *= 1 + rng.uniform(-wrong.arrivals, wrong.arrivals, arrivals.shape)
    return nominal, arrivals


def _servers(system: System, policy: Policy, shapes: Shapes, rng: Generator) -> tuple[Any, Floats]:
    server = records(system.shape[1], SERVER)
    for field in ("finish", "fault", "shift"):
        server[field] = np.inf
    for field in ("ticket", "head", "tail", "next", "prev", "older", "newer", "chain"):
        server[field] = -1
    if system.delays is not None:
        for field, delay in system.delays.parts().items():
            if field != "sending":
                server["period" if field == "reporting" else field] = system.per_machine(delay)
        if not policy.kind.pulls:
            server["lag"] = server["after"]
    server["mean_uptime"] = np.inf
    server["turn"] = np.arange(len(server))
    set_failures(server, system, shapes)
    return server, _chains(system, server, rng)


def set_failures(server: Any, system: System, shapes: Shapes) -> None:
    """Write down how long machines stay up and how long repairs take."""
    if system.failures is None:
        return
    for field in ("mean_uptime", "mean_repair"):
        server[field] = system.per_machine(getattr(system.failures, field))
    for field in ("uptime", "repair"):
        spread = system.per_machine(getattr(system.failures, field))
        server[field] = [shapes.number("faults", each) for each in spread]


def _chains(system: System, server: Any, rng: Generator) -> Floats:
    """Write every distinct chain down once, and start each machine's in its long-run state."""
    rows: list[list[float]] = []
    first: dict[int, int] = {}
    static = is_static(system)
    widest = max(
        (len(a.states) for a in system.availability if isinstance(a, MarkovChain)), default=1
    )
    for machine, chain in enumerate(system.machine_availability):
        if not isinstance(chain, MarkovChain):
            server[machine].speed = 1.0 if static else chain
            continue
        if id(chain) not in first:
            first[id(chain)] = len(rows)
            rows += [_chain_row(chain, state, widest) for state in range(len(chain.states))]
        stage = int(np.searchsorted(np.cumsum(chain.stationary), rng.random(), side="right"))
        server[machine].chain = first[id(chain)]
        server[machine].stage = min(stage, len(chain.states) - 1)
        server[machine].speed = chain.states[server[machine].stage]
    return np.array(rows) if rows else np.zeros((1, 4))


def _chain_row(chain: MarkovChain, state: int, widest: int) -> list[float]:
    odds = np.array(chain.transition[state])
    stay = float(odds[state])
    odds[state] = 0
    cumulative = np.cumsum(odds) / odds.sum() if stay < 1 else np.ones(len(odds))
    cumulative[np.flatnonzero(odds)[-1] if stay < 1 else 0 :] = 2.0  # never passed by rounding
    log_stay = log(stay) if stay > 0 else -inf
    row = [chain.states[state], log_stay, chain.step, *cumulative.tolist()]
    return row + [2.0] * (widest - len(chain.states))


def _streams(system: System, shapes: Shapes) -> Any:
    stream = records(len(system.classes), STREAM)
    stream["gap"] = 1 / (system.arrivals if system.arrivals.ndim == 1 else system.arrival_rates)
    if system.profile is not None:
        durations, rows = system.profile.durations, system.profile.rows(len(stream))
        cycles = [Cycle(durations, tuple(row.tolist()), system.profile.random) for row in rows]
        stream["cycle"] = [shapes.number("tasks", each) for each in cycles]
        stream["period"] = len(durations) - 1  # which ends when the first one begins
    stream["head"] = stream["tail"] = -1
    for field, shape in (("gap_shape", system.interarrival), ("work_shape", system.execution)):
        stream[field] = [shapes.number("tasks", each) for each in system.per_class(shape)]
    return stream


def _start_idle(state: State) -> None:
    """List every machine as idle, in order; the loop finds their patterns."""
    machines = len(state.machines)
    server, count = state.server, state.count[0]
    server["idle"] = True
    server["since"] = np.arange(machines)
    server["older"] = np.arange(-1, machines - 1)
    server["newer"] = np.append(np.arange(1, machines), -1)
    count.oldest, count.newest, count.order = 0, machines - 1, machines
