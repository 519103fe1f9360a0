"""Build the state of a grid of chains at time 0; draw templates where the system asks for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..model import Distribution, Exponential, Floats, InputError, RandomTemplates, System
from ..policies import Policy
from ..policies.view import JOB, NODE, TALLIES, TEMPLATE, records
from ..statistics import BINS
from .central_setup import set_failures
from .chain_state import COUNT, SERVER, SOURCE, STREAM, TICKET, ChainState
from .driver import Streams, free_pool
from .event_log import EVENT
from .sampling import Cycle, Shapes

POOL = 256
MOST_WINDOWS = 10_000_000
READINGS = ("printed", "halved", "mixture")


def make_state(
    system: System, policy: Policy, streams: Streams, horizon: float
) -> tuple[ChainState, list[tuple[str, Distribution | Cycle]]]:
    """Build the state at time 0; also the distributions that its shapes stand for."""
    machines = system.shape[1]
    templates = templates_of(system, streams.beliefs)
    shapes = Shapes()
    server = _servers(system, shapes, streams.beliefs)
    wrong = 0.0 if system.perturbation is None else system.perturbation.arrivals
    errors = streams.beliefs.uniform(-wrong, wrong, len(templates.rate))
    rates = templates.rate * (1 + errors)
    stream = records(len(rates), STREAM)
    stream["share"] = np.cumsum(rates) / max(rates.sum(), 1e-300)
    kinds, table = shapes.tables()
    window, size = _windows(system, horizon)
    count = records(1, COUNT)
    count["by_age"], count["spare"] = policy.options["order"] == "oldest_job", POOL
    count["overlaps"] = bool(templates.overlap.any())
    count["partial"] = bool(np.isinf(templates.times).any())
    disturbed = system.perturbation
    if disturbed is not None and not (disturbed.reading == "printed" and disturbed.variation == 0):
        count["reading"] = 1 + READINGS.index(disturbed.reading)
        count["variation"] = disturbed.variation
    stages = int(templates.applications.max()) if count["reading"][0] else 1
    nodes = records(machines, NODE)
    nodes["up"], nodes["serving"], nodes["availability"] = True, -1, system.mean_availability
    nodes["column"] = system.column
    columns = len(system.counts)
    links = np.zeros((columns, columns)) if system.links is None else system.links.between(columns)
    state = ChainState(
        machines=nodes,
        jobs=records(POOL, JOB),
        templates=_shown(templates),
        times=templates.times,
        links=links,
        overlap=templates.overlap,
        memory=np.zeros((len(templates.rate), machines)),
        tally=np.zeros(TALLIES),
        server=server,
        source=_sources(system, rates),
        stream=stream,
        ticket=free_pool(POOL, TICKET, "left"),
        draws=np.zeros((POOL, stages, 2)),
        root=np.full(machines + 3, -1, np.int64),
        window=window,
        arrived=np.zeros((len(window), size), np.int64),
        failed=np.zeros((len(window), size), np.int64),
        count=count,
        shapes=kinds,
        table=table,
        responses=np.zeros((0, BINS), np.int64),
        trace=records(0, EVENT),
    )
    return state, shapes.distributions


def _servers(system: System, shapes: Shapes, rng: Generator) -> Any:
    server = records(system.shape[1], SERVER)
    server["job"] = -1
    server["finish"] = server["fault"] = server["mean_uptime"] = np.inf
    server["hands_on"] = np.inf
    if system.failures is None:
        shapes.number("faults", Exponential())  # so that the tables are not empty
        return server
    set_failures(server, system, shapes)
    wrong = 0.0 if system.perturbation is None else system.perturbation.uptimes
    server["mean_uptime"] *= 1 + rng.uniform(-wrong, wrong, len(server))
    return server


def _sources(system: System, rates: Floats) -> Any:
    """Return where jobs come from: each template, or one source for all."""
    source = records(1 if system.one_at_a_time else len(rates), SOURCE)
    total = np.array([rates.sum()]) if system.one_at_a_time else rates
    source["gap"] = np.divide(1.0, total, out=np.full(len(total), np.inf), where=total > 0)
    source["template"] = -1 if system.one_at_a_time else np.arange(len(rates))
    return source


def _shown(templates: Templates) -> Any:
    shown = records(len(templates.rate), TEMPLATE)
    shown["first"] = np.cumsum(templates.applications) - templates.applications
    for field in ("applications", "rate", "latency", "customer"):
        shown[field] = getattr(templates, field)
    return shown


def _windows(system: System, horizon: float) -> tuple[Floats, int]:
    """Return the length of each customer's window and the largest number of windows."""
    limited = [not np.isnan(customer.limits(1)[0]) for customer in system.customers]
    lengths = [customer.window for customer in system.customers]
    window = np.where(limited, lengths, horizon) if lengths else np.array([horizon])
    most = int(np.ceil(horizon / window.min())) + 1
    if most * len(window) > MOST_WINDOWS:
        raise InputError(
            f"a window of {window.min():g} ticks is too short for a horizon of {horizon:g}; "
            f"expected at most {MOST_WINDOWS:,} windows"
        )
    return window, most


class Templates(NamedTuple):
    """The templates of a replication, and the times of all their applications."""

    applications: NDArray[np.int64]  # [template]
    rate: Floats
    latency: Floats
    customer: NDArray[np.int64]
    times: Floats  # [row, machine]: the applications of the first template, of the second …
    overlap: Floats  # [template]


def templates_of(system: System, rng: Generator) -> Templates:
    """Return the templates of a system, drawn with a generator where it draws them."""
    drawn = system.random_templates
    found = _given(system) if drawn is None else _drawn(drawn, system, rng)
    return found._replace(times=np.ascontiguousarray(found.times / system.mean_availability))


def _given(system: System) -> Templates:
    names = [customer.name for customer in system.customers]
    templates = system.templates
    return Templates(
        np.array([each.applications for each in templates]),
        np.array([each.rate for each in templates]),
        np.array([each.latency for each in templates]),
        np.array([names.index(each.customer) if each.customer else 0 for each in templates]),
        np.concatenate([each.times[:, system.column] for each in templates]),
        np.array([each.overlap for each in templates]),
    )


def _drawn(drawn: RandomTemplates, system: System, rng: Generator) -> Templates:
    """Draw templates; customers get them in turn."""
    count, machines = drawn.count, system.shape[1]
    cv = drawn.task_cv + drawn.task_cv_spread * _bounded_normals(rng, count)
    mean = drawn.mean + drawn.mean_spread * _bounded_normals(rng, count)
    rate = drawn.rate + drawn.rate_spread * _bounded_normals(rng, count)
    spread = drawn.applications_spread
    fewer = drawn.method == "entrywise" and spread > 0
    applications = drawn.applications + rng.integers(-spread, spread + (not fewer), count)
    rows = (np.repeat(mean, applications), np.repeat(cv, applications))
    times = _times(drawn, *rows, machines, rng)
    return Templates(
        applications,
        np.maximum(rate, 0.0),
        drawn.allowance * mean * applications,
        np.arange(count) % max(len(system.customers), 1),
        np.maximum(np.floor(times), 1.0),
        np.zeros(count),
    )


def _times(
    drawn: RandomTemplates, mean: Floats, cv: Floats, machines: int, rng: Generator
) -> Floats:
    """Draw times to compute [row, machine] by the coefficient-of-variation method."""
    shape, each = 1 / cv[:, None] ** 2, 1 / drawn.machine_cv**2
    size = (len(mean), machines)
    if drawn.method == "entrywise":
        shape, each = np.maximum(np.floor(shape), 1.0), max(np.floor(each), 1.0)
        means = rng.standard_gamma(shape, size) * (mean[:, None] / shape)
        return rng.standard_gamma(each, size) * (means / each)
    if drawn.method == "calibrated":
        mean, shape, each = 0.9 * mean, shape / 0.3**2, each / 1.25**2
    means = rng.standard_gamma(shape) * (mean[:, None] / shape)
    return rng.standard_gamma(each, size) * (means / each)


def _bounded_normals(rng: Generator, size: int) -> Floats:
    """Draw from the standard normal distribution within (−1, 1)."""
    values = rng.standard_normal(size)
    while (wild := np.abs(values) >= 1).any():
        values[wild] = rng.standard_normal(np.count_nonzero(wild))
    return values
