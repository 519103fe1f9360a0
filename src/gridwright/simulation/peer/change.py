"""Rates that change: what is in service goes on as it began, what waits will go at the new rate."""

from numpy.random import Generator

from .knowledge import learn
from .queue import leave
from .state import PeerState

__all__ = ["alter"]

ALLOCATES_NOTHING = True


def alter(p: PeerState, warmup: float, horizon: float, events: Generator) -> None:
    """Change rates as the system says, and draw when they change next."""
    d = p.diary[0]
    now = d.change
    d.change = now + events.standard_exponential() * d.interval
    d.changes += 1
    for j in range(len(p.version)):
        if p.central.due[j] <= now:
            leave(p, j, now, warmup, horizon)
    classes, machines = p.arrival.shape
    arrivals, rates = len(p.arrival_factors), len(p.rate_factors)
    if arrivals + rates > 0:
        kinds = int(arrivals > 0) + int(rates > 0)
        n = int(events.random() * kinds * classes * machines)
        i, j = n // kinds // machines, n // kinds % machines
        if arrivals > 0 and n % kinds == 0:
            _change_arrival(p, i, j, now, events)
        else:
            _change_rate(p, i, j, events)
        _tell(p, j)
    if len(p.availabilities) > 0:
        for j in range(machines):
            p.speed[j] = p.availabilities[int(events.random() * len(p.availabilities))]
            _tell(p, j)


def _change_arrival(p: PeerState, i: int, j: int, now: float, events: Generator) -> None:
    q = p.central.stream[i]
    factor = p.arrival_factors[int(events.random() * len(p.arrival_factors))]
    p.arrival[i, j] = p.first_arrival[i, j] * factor
    if p.diary[0].redraw:
        p.error_arrival[i, j] = 1.0 + p.diary[0].doubt_arrivals * (2.0 * events.random() - 1.0)
    total = 0.0
    for k in range(p.arrival.shape[1]):
        total += p.arrival[i, k]
        p.arrival_sum[i, k] = total
    # the same arrivals as before, on a clock that goes faster or slower
    q.next = now + (q.next - now) / (q.gap * total)
    q.gap = 1.0 / total


def _change_rate(p: PeerState, i: int, j: int, events: Generator) -> None:
    factor = p.rate_factors[int(events.random() * len(p.rate_factors))]
    p.nominal_now[i, j] = p.first_rate[i, j] * factor
    if p.diary[0].redraw:
        p.error_rate[i, j] = 1.0 + p.diary[0].doubt_rates * (2.0 * events.random() - 1.0)


def _tell(p: PeerState, j: int) -> None:
    """Let a machine know its own rates; the tasks that wait there will take another time."""
    s = p.central
    p.version[j] += 1
    learn(p, j, j)
    work = 0.0
    for i in range(len(p.load)):
        s.truth[i, j] = p.nominal_now[i, j] * p.speed[j]
        s.expected[i, j] = p.expected[j, i, j]
        if p.there[i, j] > 0:
            work += p.there[i, j] * s.expected[i, j]
    s.machines[j].work = work
