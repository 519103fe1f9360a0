"""Rates that change during an experiment without a scheduler: drawn as the simulator draws them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..grid.peer import Peer, Rates
from ..model import Floats, System
from ..policies import Policy


class Change(NamedTuple):
    """A rate of one machine that changes."""

    time: float
    machine: int
    what: str
    """``arrivals``, ``rates`` or ``availability``."""
    task_class: int
    """Of which class, −1 for an availability."""
    value: float
    """A factor of the first rate, or the availability."""


def draw_changes(
    system: System, duration: float, rng: np.random.Generator | None = None, *, seed: int = 0
) -> tuple[Change, ...]:
    """Draw the changes of a system in the order of their time.

    >>> system = System(arrivals=[[1.0]], rates=[[2.0]], changes={"mean_interval": 9, "rates": [2]})
    >>> [(change.what, change.value) for change in draw_changes(system, 10.0, seed=2)]
    [('rates', 2.0)]
    """
    changes = system.changes
    if changes is None:
        return ()
    rng = np.random.default_rng([seed, 2_000_000]) if rng is None else rng
    classes, machines = system.shape
    choices = [
        (what, factors)
        for what, factors in (("arrivals", changes.arrivals), ("rates", changes.rates))
        if factors
    ]

    def one_of(values: Any) -> float:
        return float(values[int(rng.random() * len(values))])

    found, time = [], float(rng.standard_exponential()) * changes.mean_interval
    while time < duration:
        following = time + float(rng.standard_exponential()) * changes.mean_interval
        if choices:
            pair, which = divmod(
                int(rng.random() * len(choices) * classes * machines), len(choices)
            )
            what, factors = choices[which]
            found.append(Change(time, pair % machines, what, pair // machines, one_of(factors)))
        if changes.availability:
            found += [
                Change(time, j, "availability", -1, one_of(changes.availability))
                for j in range(machines)
            ]
        time = following
    return tuple(found)


def rates_after(system: System, machine: int, changes: Iterable[Change]) -> Rates:
    """Return the rates of a machine after some changes."""
    nominal, arrivals = system.nominal[:, machine].copy(), system.arrivals[:, machine].copy()
    availability, version = float(system.mean_availability[machine]), 0
    for change in changes:
        if change.machine != machine:
            continue
        version += 1
        i = change.task_class
        if change.what == "arrivals":
            arrivals[i] = system.arrivals[i, machine] * change.value
        elif change.what == "rates":
            nominal[i] = system.nominal[i, machine] * change.value
        else:
            availability = change.value
    return Rates(version, tuple(nominal.tolist()), tuple(arrivals.tolist()), availability)


def peer_of(
    system: System, policy: Policy, machine: int, changes: Iterable[Change], *, seed: int
) -> Peer:
    """Return the book of a machine that is up, after some changes, with nothing to do."""
    peer = Peer(
        machine,
        policy,
        system.nominal,
        system.arrivals,
        system.mean_availability,
        rates_change=bool(system.changes and system.changes.rates),
        rng=np.random.default_rng([seed, machine]),
    )
    peer.change(rates_after(system, machine, changes))
    return peer


def arrival_rates(system: System, changes: Iterable[Change]) -> list[tuple[float, Floats]]:
    """Return the arrival rates [class, machine] from the start and from each time they change."""
    found = [(0.0, np.array(system.arrivals, dtype=float))]
    for change in changes:
        if change.what == "arrivals":
            where = change.task_class, change.machine
            rates = found[-1][1].copy()
            rates[where] = system.arrivals[where] * change.value
            found.append((change.time, rates))
    return found
