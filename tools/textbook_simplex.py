"""Solve the allocation LP as textbooks do, by many rules that end at different optimal vertices.

    maximise λ  subject to  Σ_j rate[i, j] x[i, j] ≥ λ arrivals[i]  for every class i,
                            Σ_i x[i, j] ≤ availability[j]           for every machine j,  x ≥ 0.

Where machines are alike the LP has many optimal vertices. A rule says how the LP is written down,
in which order, and how the simplex method chooses; so it says which of the vertices is found.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gridwright.allocation import Situation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALL = 1e-9
"""A gain, a pivot or an allocation below this counts as 0."""
TINY = 1e-12
"""Ratios that differ by less are tied."""
STALLED = 100
"""Steps without progress after which Bland's rule takes over, so that no rule cycles."""
MOST = 20_000
"""Steps after which a rule is given up: rounding errors can keep one from its end."""
LARGE = 1e6
"""The cost of an artificial variable in the big-M method, in units of λ."""

FORMS = ("slack", "surplus", "equal", "big-M", "dual", "bounded")
"""slack: class constraints as ≤ with slacks, which are the first basis. surplus: as ≥ with surplus
and artificial variables, two phases. equal: as equations with artificial variables, two phases.
big-M: as surplus, with costs in place of a phase. dual: the dual LP, two phases. bounded: as slack
with an upper bound for λ, which makes the dual simplex method possible from the start."""
PRICING = ("dantzig", "bland", "improvement", "steepest", "devex")
TIES = ("first", "last")
LEAVING = ("variable", "row", "pivot")
"""Of tied rows the one whose variable has the lowest number, the first, that with the largest
pivot."""


class Rule(NamedTuple):
    """A formulation, an order of the variables, and how the simplex method chooses."""

    form: str = "slack"
    pricing: str = "dantzig"
    scale: str = "time"  # or "share": x counts as a share of the machine's availability
    major: str = "class"  # or "machine": which index of x changes slowest
    classes: str = "classes on"  # or "classes back": their order
    machines: str = "machines on"
    capacity: str = "last"  # or "first": where λ stands among the variables
    ties: str = "first"
    leaving: str = "variable"
    down: str = "kept"  # or "dropped": what becomes of machines that are down

    def __str__(self) -> str:
        plain = Rule(self.form, self.pricing)._replace(ties=self.ties)
        more = [WORDS[value] for value, usual in zip(self, plain, strict=True) if value != usual]
        return ", ".join([self.form, self.pricing, f"{self.ties} of ties", *more])


WORDS: dict[Any, str] = {
    "share": "in shares",
    "machine": "machine by machine",
    "first": "λ first",
    "row": "first row leaves",
    "pivot": "largest pivot leaves",
    "classes back": "classes backwards",
    "machines back": "machines backwards",
    "dropped": "machines that are down left out",
}
"""How the name of a rule says what is unusual in it."""


def rules(*, every: bool = False) -> Iterator[Rule]:
    """Give the rules: those that differ in what changes the vertex, or every combination.

    Whether λ comes first, whether variables go class by class, and which of tied rows leaves did
    not change any vertex that we looked at.
    """
    scales, many = ("time", "share"), 3 if every else 1
    majors, ends, leaving = ("class", "machine")[:many], ("last", "first")[:many], LEAVING[:many]
    orders = ("classes on", "classes back"), ("machines on", "machines back")
    for parts in product(FORMS, PRICING, scales, majors, *orders, ends, TIES, leaving):
        if parts[:2] != ("bounded", "devex"):  # devex weighs columns, this form chooses rows
            yield Rule(*parts)


def solve(rule: Rule, now: Situation) -> tuple[float, Floats]:
    """Return λ and the machine time [class, machine] of the vertex that a rule finds."""
    used = np.flatnonzero(now.availability > 0) if rule.down == "dropped" else slice(None)
    rates, limits = now.rates[:, used], now.availability[used]
    scale = np.ones_like(limits)
    if rule.scale == "share":
        scale, limits = limits, (limits > 0).astype(float)
    way = slice(None, None, -1 if rule.classes == "classes back" else 1)
    path = slice(None, None, -1 if rule.machines == "machines back" else 1)
    solver = {"dual": _by_dual, "bounded": _by_bound}.get(rule.form, _by_primal)
    ordered = (rates * scale)[way, path], now.arrivals[way], limits[path]
    capacity, found = solver(rule, *ordered)
    plan = np.zeros(now.rates.shape)
    plan[:, used] = found[way, path] * scale
    return capacity, np.where(plan > SMALL, plan, 0.0)


def _numbers(rule: Rule, classes: int, machines: int) -> Integers:
    """Give the variables x [class, machine] numbers from 0."""
    pairs = np.arange(classes * machines)
    if rule.major == "class":
        return pairs.reshape(classes, machines)
    return pairs.reshape(machines, classes).T


def _by_primal(rule: Rule, rates: Floats, arrivals: Floats, limits: Floats) -> tuple[float, Floats]:
    """Columns: x and λ, surpluses or slacks of the classes, slacks of the machines, artificials."""
    classes, machines = rates.shape
    pairs = classes * machines
    at_end = rule.capacity == "last"
    x = _numbers(rule, classes, machines) + (not at_end)
    capacity = pairs if at_end else 0
    own = 0 if rule.form == "equal" else classes
    artificial = 0 if rule.form == "slack" else classes
    real = pairs + 1 + own + machines
    rows = classes + machines
    t = np.zeros((rows + 2, real + artificial + 1))
    sign = -1.0 if rule.form == "slack" else 1.0
    for i in range(classes):
        t[i, x[i]] = sign * rates[i]
        t[i, capacity] = -sign * arrivals[i]
        if own:
            t[i, pairs + 1 + i] = -sign
        if artificial:
            t[i, real + i] = 1.0
    for j in range(machines):
        t[classes + j, x[:, j]] = 1.0
        t[classes + j, pairs + 1 + own + j] = 1.0
        t[classes + j, -1] = limits[j]
    t[rows, capacity] = 1.0
    t[rows + 1, :real] = t[:classes, :real].sum(axis=0) if artificial else 0.0
    first = real + np.arange(classes) if artificial else pairs + 1 + np.arange(classes)
    basis = np.concatenate([first, pairs + 1 + own + np.arange(machines)])
    _optimise(rule, t, basis, real, phases=bool(artificial))
    value = np.zeros(real + artificial)
    value[basis] = t[:rows, -1]
    return float(value[capacity]), value[x]


def _by_dual(rule: Rule, rates: Floats, arrivals: Floats, limits: Floats) -> tuple[float, Floats]:
    """Minimise Σ limits w subject to w[j] ≥ rates[i, j] p[i] and Σ arrivals p ≥ 1.

    The shares x are the prices of its constraints.
    """
    classes, machines = rates.shape
    pairs = classes * machines
    x = _numbers(rule, classes, machines)
    prices_last = rule.capacity == "last"
    worth = np.arange(machines) + (0 if prices_last else classes)
    price = np.arange(classes) + (machines if prices_last else 0)
    slack = classes + machines
    real, rows = slack + pairs + 1, pairs + 1
    t = np.zeros((rows + 2, real + 2))
    for i in range(classes):
        for j in range(machines):
            t[x[i, j], worth[j]] = -1.0
            t[x[i, j], price[i]] = rates[i, j]
            t[x[i, j], slack + x[i, j]] = 1.0
    t[pairs, price] = arrivals
    t[pairs, slack + pairs] = -1.0
    t[pairs, real] = t[pairs, -1] = 1.0
    t[rows, worth] = -limits
    t[rows + 1, :real] = t[pairs, :real]
    basis = np.append(slack + np.arange(pairs), real)
    _optimise(rule, t, basis, real, phases=True)
    return float(t[rows, -1]), -t[rows, slack + x]


def _by_bound(rule: Rule, rates: Floats, arrivals: Floats, limits: Floats) -> tuple[float, Floats]:
    """Columns: x and λ, then a slack for every class, every machine and the bound of λ."""
    classes, machines = rates.shape
    pairs = classes * machines
    at_end = rule.capacity == "last"
    x = _numbers(rule, classes, machines) + (not at_end)
    capacity = pairs if at_end else 0
    rows = classes + machines + 1
    real = pairs + 1 + rows
    t = np.zeros((rows + 2, real + 1))
    for i in range(classes):
        t[i, x[i]] = -rates[i]
        t[i, capacity] = arrivals[i]
    for j in range(machines):
        t[classes + j, x[:, j]] = 1.0
        t[classes + j, -1] = limits[j]
    t[rows - 1, capacity] = 1.0
    t[rows - 1, -1] = (rates @ limits / arrivals).min()
    t[:rows, pairs + 1 : real] = np.eye(rows)
    t[rows, capacity] = 1.0
    basis = pairs + 1 + np.arange(rows)
    _pivot(t, basis, rows - 1, capacity)
    how = PRICING.index(rule.pricing), rule.ties == "last", LEAVING.index(rule.leaving)
    _descend(t, basis, real, *how)
    value = np.zeros(real)
    value[basis] = t[:rows, -1]
    return float(value[capacity]), value[x]


def _optimise(rule: Rule, t: Floats, basis: Integers, real: int, *, phases: bool) -> None:
    """Go to an optimal vertex; the last row has the gains of phase 1, the row before those of λ."""
    how = PRICING.index(rule.pricing), rule.ties == "last", LEAVING.index(rule.leaving)
    if rule.form == "big-M":
        _climb(t, basis, real, 1.0, LARGE, *how)
    elif phases:
        _climb(t, basis, real, 0.0, 1.0, *how)
    for row in np.flatnonzero(basis >= real):
        entering = int(np.flatnonzero(abs(t[row, :real]) > SMALL)[0])
        _pivot(t, basis, row, entering)
    _climb(t, basis, real, 1.0, 0.0, *how)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _climb(
    t: Floats,
    basis: Integers,
    real: int,
    weight: float,
    penalty: float,
    pricing: int,
    last: bool,
    leaving: int,
) -> None:
    """Make steps of the simplex method until no variable gains.

    The gains are those of λ times ``weight`` and of phase 1 times ``penalty``.
    """
    rows, end = len(basis), t.shape[1] - 1
    still, reference = 0, np.ones(real)
    for _ in range(MOST):
        careful = still > STALLED
        entering, best = -1, 0.0
        for c in range(real):
            gain = 0.0
            if abs(t[rows, c]) > SMALL:
                gain += weight * t[rows, c]
            if abs(t[rows + 1, c]) > SMALL:
                gain += penalty * t[rows + 1, c]
            if gain <= SMALL:
                continue
            merit = gain
            if careful or pricing == 1:
                merit = 1.0
            elif pricing == 2:
                least = np.inf
                for r in range(rows):
                    if t[r, c] > SMALL:
                        least = min(least, max(t[r, end], 0.0) / t[r, c])
                merit = gain * least
            elif pricing == 3:
                length = 1.0
                for r in range(rows):
                    length += t[r, c] * t[r, c]
                merit = gain / np.sqrt(length)
            elif pricing == 4:
                merit = gain / np.sqrt(reference[c])
            clearly = merit > best * (1.0 + SMALL)
            tied = merit >= best * (1.0 - SMALL)
            if entering < 0 or clearly or (tied and last and not careful):
                entering, best = c, max(merit, best)
        if entering < 0:
            return
        row, step = -1, np.inf
        for r in range(rows):
            fall = t[r, entering]
            if fall <= SMALL:
                continue
            ratio = max(t[r, end], 0.0) / fall
            if row < 0 or ratio < step * (1.0 - SMALL) - TINY:
                row, step = r, ratio
            elif ratio <= step * (1.0 + SMALL) + TINY:
                step = min(step, ratio)
                if careful or leaving == 0:
                    row = r if basis[r] < basis[row] else row
                elif leaving == 2:
                    row = r if fall > t[row, entering] * (1.0 + SMALL) else row
        if row < 0:  # the LP is bounded, so that this gain is rounding
            t[rows, entering] = t[rows + 1, entering] = 0.0
            continue
        if pricing == 4:
            _refer(t, basis, reference, row, entering)
        _pivot(t, basis, row, entering)
        still = still + 1 if step < SMALL else 0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _refer(t: Floats, basis: Integers, reference: Floats, row: int, entering: int) -> None:
    """Update the weights of the devex rule before a step."""
    own, pivot = reference[entering], t[row, entering]
    for c in range(len(reference)):
        share = t[row, c] / pivot
        reference[c] = max(reference[c], share * share * own)
    if basis[row] < len(reference):
        reference[basis[row]] = max(own / (pivot * pivot), 1.0)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _descend(t: Floats, basis: Integers, real: int, pricing: int, last: bool, leaving: int) -> None:
    """Make steps of the dual simplex method until no variable is negative."""
    rows, end = len(basis), t.shape[1] - 1
    still = 0
    for _ in range(MOST):
        careful = still > STALLED
        row, best = -1, 0.0
        for r in range(rows):
            lack = -t[r, end]
            if lack <= SMALL:
                continue
            merit = lack
            if careful or pricing == 1:
                merit = 1.0
            elif pricing == 2:
                merit = lack * _cheapest(t, r, real)
            elif pricing == 3:
                length = 0.0
                for c in range(real):
                    length += t[r, c] * t[r, c]
                merit = lack / np.sqrt(length)
            if (
                row < 0
                or merit > best * (1.0 + SMALL)
                or (last and not careful and merit >= best * (1.0 - SMALL))
            ):
                row, best = r, max(merit, best)
        if row < 0:
            return
        cost = _cheapest(t, row, real)
        entering = -1
        for c in range(real):
            fall = -t[row, c]
            if fall <= SMALL or max(-t[rows, c], 0.0) / fall > cost * (1.0 + SMALL) + TINY:
                continue
            larger = fall > -t[row, entering] * (1.0 + SMALL)
            if entering < 0 or (not careful and (leaving == 1 or (leaving == 2 and larger))):
                entering = c
        _pivot(t, basis, row, entering)
        still = still + 1 if cost < SMALL else 0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _cheapest(t: Floats, row: int, real: int) -> float:
    """Return the least loss at which a variable can make up for what a row lacks."""
    least = np.inf
    for c in range(real):
        if -t[row, c] > SMALL:
            least = min(least, max(-t[-2, c], 0.0) / -t[row, c])
    return least


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _pivot(t: Floats, basis: Integers, row: int, column: int) -> None:
    """Bring a variable into the basis in place of that of a row."""
    scale = t[row, column]
    for c in range(t.shape[1]):
        t[row, c] /= scale
    for r in range(len(t)):
        factor = t[r, column]
        if r != row and factor != 0.0:
            for c in range(t.shape[1]):
                t[r, c] -= factor * t[row, c]
            t[r, column] = 0.0
    t[row, column] = 1.0
    basis[row] = column
