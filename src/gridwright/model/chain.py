"""Jobs that are chains of applications: templates, customers, and how estimates are perturbed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from .error import InputError
from .mode import CHAINS
from .record import Array, Count, NonNegative, OneOrList, Positive, PositiveOrInfinite, Record

if TYPE_CHECKING:
    from .system import System

Name = Annotated[str, Field(strict=True, min_length=1)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Times = Annotated[NDArray[np.float64], Array(tuple[tuple[PositiveOrInfinite, ...], ...])]

PLURAL = {"template": "templates", "customer": "customers"}
"""A system file has one ``[[template]]`` for each of the ``templates`` of a system."""
DERIVED = ("classes", "arrivals", "rates")
"""Parts of a system that follow from its templates."""


class Template(Record):
    """A type of job: applications that run one after the other.

    >>> Template(name="scan", rate=0.05, times=[[4, 7], [10, 5]], latency=30).applications
    2
    """

    name: Name
    rate: Positive
    """Jobs per tick."""
    times: Times
    """Estimated times to compute, in ticks: a row per application, a column per column of nodes;
    infinite where the nodes cannot run the application."""
    latency: Positive
    """The acceptable time from arrival to finish, in ticks."""
    customer: Name | None = None
    overlap: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0
    """The share of an application that the next one may overlap: it can start when the rest is
    done, and cannot end before it."""

    @model_validator(mode="after")
    def _has_applications(self) -> Self:
        if self.times.size == 0:
            raise ValueError("times is empty; expected a row for each application")
        for number, row in enumerate(self.times, start=1):
            if np.isinf(row).all():
                raise ValueError(
                    f"times, row {number} is all infinite; expected a time somewhere: no node can "
                    "run that application"
                )
        return self

    @property
    def applications(self) -> int:
        """The number of its applications."""
        return len(self.times)


class Customer(Record):
    """A customer, and how many of its jobs may be late.

    Of the jobs that arrive in a window of time, fewer than ``max_failures``, or less than
    ``max_share`` of them, may exceed their acceptable latency. A list has one limit per window and
    is repeated.

    >>> Customer(name="bank", max_failures=2, window=100).limits(4).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """

    name: Name
    max_failures: OneOrList[Count] | None = None
    max_share: OneOrList[Share] | None = None
    window: Positive = 1.0

    @model_validator(mode="after")
    def _has_one_limit(self) -> Self:
        if self.max_failures is not None and self.max_share is not None:
            raise ValueError("max_failures and max_share are both given; expected one of them")
        if () in (self.max_failures, self.max_share):
            raise ValueError("a list of limits is empty; expected one for each window")
        return self

    def limits(self, windows: int) -> NDArray[np.float64]:
        """Return the limit β^max of each window, jobs or a share of them; NaN without a limit."""
        limit = self.max_share if self.max_failures is None else self.max_failures
        return np.resize(np.array(np.nan if limit is None else limit, dtype=float), windows)


class RandomTemplates(Record):
    """Templates that are drawn anew for every replication.

    Each has a mean time ``mean`` + ``mean_spread`` · g, a variation of its applications
    ``task_cv`` + ``task_cv_spread`` · g, a rate ``rate`` + ``rate_spread`` · g (at least 0), with
    g standard normal within (−1, 1), and ``applications`` ± up to ``applications_spread`` of them.
    Its times come from the coefficient-of-variation method, in whole ticks; ``allowance`` × mean
    time × applications is its acceptable latency.

    ``method``: ``printed``, as described; ``calibrated`` (times 0.9 as long, 0.3 of the variation
    of applications, 1.25 of that of machines) and ``entrywise`` (a mean drawn for every entry,
    whole shapes, one application fewer at most) were fitted to published tables.

    >>> RandomTemplates(count=3, mean=20, applications=4, rate=0.01).machine_cv
    0.4
    """

    count: Annotated[int, Field(strict=True, ge=1, le=10_000)]
    mean: Positive
    mean_spread: NonNegative = 0.0
    applications: Annotated[int, Field(strict=True, ge=1, le=1000)]
    applications_spread: Annotated[int, Field(strict=True, ge=0, le=999)] = 0
    rate: Positive
    rate_spread: NonNegative = 0.0
    task_cv: Positive = 0.4
    task_cv_spread: NonNegative = 0.0
    machine_cv: Positive = 0.4
    allowance: Positive = 1.5
    method: Literal["printed", "calibrated", "entrywise"] = "printed"

    @model_validator(mode="after")
    def _stays_positive(self) -> Self:
        for key in ("mean", "task_cv", "applications"):
            value, spread = getattr(self, key), getattr(self, f"{key}_spread")
            if spread >= value:
                raise ValueError(f"{key}_spread is {spread:g}; expected less than {key}, {value:g}")
        return self


class Perturbation(Record):
    """The errors of the estimates of times, arrival rates and up-times.

    A time becomes, with g standard normal within (−1, 1), U uniform there and v the variation:
    ``printed``, ((1 − v) v g + 1 + v U + 1) / 2 of the estimate; ``halved``, the same without the
    factor v before g; ``mixture``, (1 − v)(1 + g) + v (1 + U) of it; at least one tick each.
    ``arrivals`` and ``uptimes`` are the largest relative errors I of every template's rate and of
    every node's mean up-time: once a replication, × (1 + E) with E uniform within [−I, I].

    >>> Perturbation(variation=0.4).reading
    'printed'
    """

    reading: Literal["printed", "halved", "mixture"] = "printed"
    variation: Share = 0.0
    arrivals: Share = 0.0
    uptimes: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0


class Links(Record):
    """How long the output of an application takes to another node, in ticks.

    One number, or a matrix [column, column] from the node that has it to the node that needs it.
    On the same node it takes no time.

    >>> Links(latency=[[1, 5], [5, 1]]).between(2).tolist()
    [[1.0, 5.0], [5.0, 1.0]]
    """

    latency: Annotated[
        Annotated[NonNegative, Tag("\0one")]
        | Annotated[tuple[tuple[NonNegative, ...], ...], Tag("\0several")],
        Discriminator(lambda value: "\0several" if isinstance(value, list | tuple) else "\0one"),
    ]

    def between(self, columns: int) -> NDArray[np.float64]:
        """Return the latency [column, column]; raise if it has another shape."""
        if not isinstance(self.latency, tuple):
            return np.full((columns, columns), self.latency)
        if len(self.latency) != columns or any(len(row) != columns for row in self.latency):
            raise ValueError(
                f"[links] latency has {len(self.latency)} rows; expected a number, or {columns} "
                f"rows of {columns} numbers, from column to column"
            )
        return np.array(self.latency)


class ChainTables(Record):
    """The parts of a system that only policies for chains understand."""

    templates: tuple[Template, ...] = ()
    random_templates: RandomTemplates | None = None
    customers: tuple[Customer, ...] = ()
    perturbation: Perturbation | None = None
    links: Links | None = None
    one_at_a_time: Annotated[bool, Field(strict=True)] = False


def in_plural(values: Any) -> Any:
    """Rename the keys ``template`` and ``customer`` of a file to those of a system."""
    if not isinstance(values, dict) or not values.keys() & PLURAL.keys():
        return values
    return {PLURAL.get(key, key): value for key, value in values.items()}


def chain_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Return the classes, arrivals and rates that follow from templates; empty without any.

    A template is a class, and its rate on a machine is the rate of whole jobs there, 0 if the
    machine cannot run all applications.
    """
    given, drawn = values.get("templates"), values.get("random_templates")
    if not given and drawn is None:
        return {}
    try:
        if drawn is not None:
            random = RandomTemplates.model_validate(drawn)
            return {
                "classes": tuple(str(number) for number in range(1, random.count + 1)),
                "arrivals": [random.rate] * random.count,
                "rates": [[1 / (random.mean * random.applications)]] * random.count,
            }
        assert isinstance(given, list | tuple)
        return _from_templates([Template.model_validate(each) for each in given])
    except (ValidationError, AssertionError):
        # only the templates are wrong, so that nothing else is reported
        return {"classes": ("1",), "arrivals": [1.0], "rates": [[1.0]]}


def _from_templates(templates: list[Template]) -> dict[str, Any]:
    columns = len(templates[0].times[0])
    whole = [each.times.sum(axis=0)[:columns].tolist() for each in templates]
    return {
        "classes": tuple(each.name for each in templates),
        "arrivals": [each.rate for each in templates],
        "rates": [[1 / time for time in row] + [1.0] * (columns - len(row)) for row in whole],
    }


def check_chains(system: Any) -> None:
    """Raise if the parts of a system for chains contradict each other."""
    if system.mode is not CHAINS:
        for key in ("customers", "perturbation", "links", "one_at_a_time"):
            if getattr(system, key):
                raise ValueError(f"{key} is for chains; expected templates with it")
        return
    if system.templates and system.random_templates is not None:
        raise ValueError("there are templates, and random ones; expected one or the other")
    for template in system.templates:
        columns, first = len(template.times[0]), len(system.templates[0].times[0])
        if columns != first:
            raise ValueError(
                f"template {template.name!r} has times in {columns} columns; expected {first}, "
                f"as template {system.templates[0].name!r}"
            )
    if system.links is not None:
        system.links.between(len(system.counts))
    if system.failures is not None and any(each.overlap for each in system.templates):
        raise ValueError("an overlap of applications is for nodes that do not fail")
    if system.templates:
        runs = np.isfinite(np.concatenate([each.times for each in system.templates])).any(axis=0)
        if not runs.all():
            raise ValueError(
                f"the nodes of column {int(np.argmin(runs)) + 1} can run no application; leave "
                "them out"
            )
    names = [each.name for each in system.customers]
    if len(set(names)) < len(names):
        raise ValueError(f"customers has {max(names, key=names.count)!r} twice")
    for template in system.templates:
        whose, name = f"template {template.name!r}", template.customer
        if name is None and len(names) > 1:
            raise ValueError(f"{whose} names no customer; expected one of {', '.join(names)}")
        if name is not None and name not in names:
            known = f"there are {', '.join(names)}" if names else "there is none"
            raise ValueError(f"{whose} has an unknown customer {name!r}; {known}")
    _check_derived(system)


def _check_derived(system: Any) -> None:
    """Refuse parts that contradict the templates, and parts that chains do not use."""
    parts = {"templates": list(system.templates), "random_templates": system.random_templates}
    follows = chain_defaults(parts)
    for key in DERIVED:
        if np.shape(getattr(system, key)) != np.shape(follows[key]) or not np.array_equal(
            getattr(system, key), follows[key]
        ):
            raise ValueError(f"{key} follows from the templates; leave it out")
    for key in ("execution", "interarrival", "assumed"):
        if getattr(system, key) != type(system).model_fields[key].default:
            raise ValueError(f"{key} is not for chains; [perturbation] says what is uncertain")
    if any(not isinstance(share, float) for share in system.availability):
        raise ValueError("availability of chains is constant; expected a number for each column")


def scaled_chains(system: Any, factor: float) -> dict[str, Any]:
    """Return the parts of a system that change if its jobs arrive more often by a factor."""
    if system.random_templates is not None:
        parts = system.random_templates.parts()
        rates = {key: parts[key] * factor for key in ("rate", "rate_spread")}
        return {"random_templates": {**parts, **rates}}
    templates = [{**each.parts(), "rate": each.rate * factor} for each in system.templates]
    return {"templates": templates}


def by_application(system: System) -> System:
    """Return the system with a class for each application, at the rate of its template.

    It has the same capacity: the next application may run on any node.

    >>> from gridwright import System
    >>> scan = {"name": "scan", "rate": 0.05, "times": [[4, 8], [10, 5]], "latency": 30}
    >>> by_application(System(templates=[scan]))
    System('': 2 classes, 2 machines, arrivals [0.05, 0.05])
    """
    if system.random_templates is not None:
        raise InputError(
            f"{system.name or 'the system'} draws its templates anew for every replication, "
            "so that it has no single capacity"
        )
    if not system.templates:
        return system
    parts = ("name", "groups", "counts", "slots", "availability")
    failures = system.failures
    if failures is not None:  # what a lost application does is the same either way
        failures = failures.model_copy(update={"same_work": False})
    numbered = [(each.name, k + 1) for each in system.templates for k in range(each.applications)]
    return type(system)(
        classes=[f"{name}.{number}" for name, number in numbered],
        arrivals=[each.rate for each in system.templates for _ in each.times],
        rates=1 / np.concatenate([each.times for each in system.templates]),
        failures=failures,
        **{key: getattr(system, key) for key in parts},
    )
