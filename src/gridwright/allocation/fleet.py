"""Fleets: what one more machine of each group is worth, and the cheapest fleets for a load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import InputError, System, did_you_mean, mode
from .allocation import Allocation, groups_of, long_run_situation
from .highs import check_time
from .long_run import long_run_of
from .lost_work import lost_work_of, never_done, without_end
from .planner import solve
from .simplex import Floats, Integers
from .workspace import NEGLIGIBLE, make_workspace

ROUNDING = 1e-9
"""Share by which a load may be above its limit."""
PricesGiven = Mapping[str, float] | Sequence[float] | None
"""The price of a machine of each group, by name or in order; by default every machine costs 1."""


class Addition(NamedTuple):
    """What one more machine of a group is worth."""

    group: str
    price: float
    load: float
    """The long-run load of the system with this machine."""
    relief: float
    """By how much the long-run load falls."""

    @property
    def price_per_point(self) -> float:
        """The price of one percentage point of load; infinite if the load does not fall."""
        return self.price / (100 * self.relief) if self.relief > 0 else np.inf

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {**self._asdict(), "price_per_point": self.price_per_point}


class Fleet(NamedTuple):
    """Numbers of machines of the groups of a system, and what they come to."""

    counts: tuple[int, ...]
    price: float
    load: float
    """The long-run load of the system with these machines."""


def one_more(found: Allocation, prices: PricesGiven = None) -> list[Addition]:
    """Return what one more machine of each group is worth: the new load, and its price.

    It fails like the others of its group, and has their CPU availability.

    >>> from gridwright import System, allocate
    >>> first, second = one_more(allocate(System(arrivals=[3], rates=[[4, 1]])), [5, 1])
    >>> round(first.load, 3), round(second.load, 3)
    (0.333, 0.5)
    >>> round(first.price_per_point, 2), round(second.price_per_point, 2)
    (0.19, 0.1)
    """
    system, each = found.system, prices_of(found.system, prices)
    check_counts(system)
    now, every = long_run_situation(system, found.down), long_run_situation(system)
    added = []
    for column, group in enumerate(system.groups):
        first = int(np.argmax(system.column == column))
        slots = system.sizes[column] // system.counts[column]
        new = np.repeat(first, slots)
        rates = np.hstack([now.rates, every.rates[:, new]])
        availability = np.append(now.availability, every.availability[new])
        after = now._replace(rates=rates, availability=availability, group=groups_of(rates))
        capacity = solve(after, make_workspace(after))
        before = 1 / found.long_run_capacity if found.long_run_capacity > 0 else np.inf
        load = 1 / capacity if capacity > 0 else np.inf
        relief = before - load if np.isfinite(load) else 0.0
        added.append(Addition(group, float(each[column]), load, relief))
    return added


def prices_of(system: System, prices: PricesGiven) -> Floats:
    """Return the price of a machine of each group, in order."""
    if prices is None:
        return np.ones(len(system.groups))
    if isinstance(prices, Mapping):
        for name in prices:
            if name not in system.groups:
                hint = did_you_mean(name, system.groups) or f"; there are {_few(system.groups)}"
                raise InputError(f"prices: the system has no group {name!r}{hint}")
        if missing := [name for name in system.groups if name not in prices]:
            raise InputError(f"prices: no price of {_few(missing)}; expected one for each group")
        prices = [prices[name] for name in system.groups]
    if len(prices) != len(system.groups):
        raise InputError(
            f"prices has {len(prices)} entries; expected {len(system.groups)}, one for each group"
        )
    for name, price in zip(system.groups, prices, strict=True):
        if isinstance(price, bool) or not isinstance(price, Real) or not 0 < price < np.inf:
            raise InputError(f"the price of {name} is {price!r}; expected a number > 0")
    return np.array(prices, dtype=float)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")


def cheapest_fleets(system: System, prices: PricesGiven, load: float) -> Iterator[Fleet]:
    """Yield the fleets whose load is at most the limit, by rising price.

    The numbers of machines are those of an integer program, with a continuous allocation. To go
    on after a fleet, the rest of the counts are split into boxes without it (Lawler 1972, "A
    procedure for computing the K best solutions"). The simplex of ``allocate`` has the last word
    on every load.

    >>> from gridwright import System
    >>> fleets = cheapest_fleets(System(arrivals=[3], rates=[[4, 1]]), [4.5, 1], 0.8)
    >>> next(fleets), next(fleets).counts
    (Fleet(counts=(0, 4), price=4.0, load=0.75), (1, 0))
    """
    if not isinstance(load, Real):
        raise InputError(f"load is {load!r}; expected a number")
    if not 0 < load < 1:
        raise InputError(f"load is {load:g}; expected a number between 0 and 1")
    check_counts(system)
    if endless := never_done(system):
        raise InputError(f"no fleet can keep up: {without_end(endless)}")
    each = prices_of(system, prices)
    program = _Program(system, each, load)
    boxes: list[tuple[float, tuple[int, ...], Integers, Integers]] = []

    def consider(low: Integers, high: Integers) -> None:
        if (low <= high).all() and (counts := program.best(low, high)) is not None:
            heappush(boxes, (float(each @ counts), tuple(counts.tolist()), low, high))

    groups = len(system.groups)
    consider(np.zeros(groups, np.int64), np.full(groups, _UNLIMITED))
    while boxes:
        price, counts, low, high = heappop(boxes)
        fleet = system.with_counts(counts)
        found = long_run_of(fleet).load
        assert found is not None
        if found <= load * (1 + ROUNDING) and not never_done(fleet):
            yield Fleet(counts, price, found)
        for place, count in enumerate(counts):
            fixed = np.arange(groups) < place
            here = np.arange(groups) == place
            first, last = np.where(fixed, counts, low), np.where(fixed, counts, high)
            consider(first, np.where(here, count - 1, last))
            consider(np.where(here, count + 1, first), last)


def check_counts(system: System) -> None:
    """Refuse a system whose numbers of machines cannot be changed, or for which the LP is wrong."""
    if system.mode is not mode.CENTRAL:
        raise InputError(
            f"{system.name or 'the system'} is {system.mode.name}; fleets are sized for push and "
            "pull systems"
        )
    system.with_counts([count + 1 for count in system.counts])


_UNLIMITED = 2**40


def _by_group(system: System) -> tuple[Floats, NDArray[np.bool_]]:
    """Return how fast the machines of each group complete tasks, and which classes end there.

    Lost work may count in some fleets and be left out in others: then the faster of both rates, so
    that no fleet is missed.
    """
    whole, rates, ends = lost_work_of(system), [], []
    for group in range(len(system.groups)):
        first = int(np.argmax(system.column == group))
        others = tuple(np.flatnonzero(system.column != group).tolist())
        found = whole.rates[:, first]
        if whole.left_out:
            found = np.maximum(found, lost_work_of(system, others).rates[:, first])
        rates.append(found)
        endless = never_done(system, others)
        ends.append((found > 0) & [name not in endless for name in system.classes])
    return np.column_stack(rates), np.column_stack(ends)


class _Program:
    """The integer program: the least price of counts whose machines can hold the load."""

    def __init__(self, system: System, prices: Floats, load: float) -> None:
        import highspy

        classes, groups = system.rates.shape
        first = [int(np.argmax(system.column == g)) for g in range(groups)]
        slots = np.array(system.sizes) / np.array(system.counts)
        time = load * slots * system.mean_availability[first] * system.up_fraction[first]
        rates, ends = _by_group(system)
        pairs = np.argwhere(rates > NEGLIGIBLE * rates.max(axis=1, keepdims=True))
        self.groups = groups
        lp = highspy.HighsLp()
        # columns: the counts, then the time of group g for class i, as a share of what i needs;
        # rows: what is done of each class, the time of each group, machines on which a class ends
        lp.num_col_, lp.num_row_ = groups + len(pairs), 2 * classes + groups
        lp.col_cost_ = np.append(prices / prices.max(), np.zeros(len(pairs)))
        lp.col_lower_ = np.zeros(lp.num_col_)
        lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
        lp.row_lower_ = np.concatenate([np.ones(classes), np.zeros(groups), np.ones(classes)])
        lp.row_upper_ = np.full(lp.num_row_, highspy.kHighsInf)
        kinds = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [kinds[0]] * groups + [kinds[1]] * len(pairs)
        matrix = lp.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        enough = [classes + groups + np.flatnonzero(each) for each in ends.T]
        columns = [np.append(classes + g, rows) for g, rows in enumerate(enough)]
        columns += list(pairs + np.array([0, classes]))
        matrix.start_ = np.append(0, np.cumsum(list(map(len, columns))))
        matrix.index_ = np.concatenate(columns)
        needs = system.arrival_rates[pairs[:, 0]] / rates[pairs[:, 0], pairs[:, 1]]
        used = -needs / time[pairs[:, 1]]  # machines of the group, if they do the whole class
        matrix.value_ = np.append(
            np.ones(groups + ends.sum()), np.column_stack([np.ones(len(pairs)), used]).ravel()
        )
        self.model: Any = highspy.Highs()
        self.model.silent()
        self.model.passModel(lp)
        for option in ("mip_rel_gap", "mip_abs_gap"):
            self.model.setOptionValue(option, 0.0)

    def best(self, low: Integers, high: Integers) -> Integers | None:
        """Return the cheapest counts between limits that hold the load; None if none do."""
        import highspy

        for place in range(self.groups):
            last = highspy.kHighsInf if high[place] >= _UNLIMITED else float(high[place])
            self.model.changeColBounds(place, float(low[place]), last)
        self.model.setOptionValue("time_limit", check_time())
        self.model.run()
        status = self.model.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            values = self.model.getSolution().col_value[: self.groups]
            return np.round(np.array(values)).astype(np.int64)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status == highspy.HighsModelStatus.kTimeLimit:
            check_time()
        words = self.model.modelStatusToString(status)
        raise InputError(f"the cheapest fleet cannot be computed (HiGHS: {words})")
