"""A decentralised system at time 0: every machine knows the rates as they are estimated then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...allocation import groups_of
from ...model import System
from ...policies.view import CLASS, MACHINE, records
from ..setup import Streams
from ..state import State
from .knowledge import situation
from .state import DIARY, PeerState

__all__ = ["make_peers"]

Floats = NDArray[np.float64]


def make_peers(system: System, central: State, streams: Streams) -> PeerState:
    """Build the state at time 0 around that of the machines and their tasks."""
    classes, machines = system.shape
    changes, assumed = system.changes, system.assumed
    diary = records(1, DIARY)
    diary["home"], diary["change"] = -1, np.inf
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
    watched["oldest"] = np.inf
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
