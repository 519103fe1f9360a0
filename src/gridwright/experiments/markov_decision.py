"""Optimal control of small systems with exponential times: policy iteration.

A model has states numbered from 0, the empty system; in every state a cost per time unit, that of
the tasks there; and, given a choice of actions, rates from state to state. Times between events are
exponential, so the mean cost is that of a Markov chain.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import Floats

Integers = NDArray[np.int64]

SMALL, LARGE = 2000, 20_000
"""With three classes or more, fewer equations than the first number are solved directly, and fewer
than the second if iterations do not converge: their factors take much time and memory. With two,
models of almost a million states took 12 to 20 s and 1.1 to 1.8 GB, with one to three machines."""
NO_PIVOTS: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""The diagonal of such a matrix dominates its rows: other pivots would only fill the factors."""
SOLVED = 1e-11
"""Relative accuracy of a solution by iteration."""
DROPPED = 0.1
"""Entries of incomplete factors below this share of their column are left out."""
FILL = 2
"""How many times the entries of the matrix incomplete factors may have."""
MOST_STEPS = 500
"""Iterations after which it is given up."""
BETTER = 1e-10
"""An action replaces another only if it is better by this share of the values."""


NEVER = 1e200
"""The value of a state from which the chain may never get to state 0: more than any other."""


class Chain(NamedTuple):
    """Rates from state to state under a choice of actions."""

    source: Integers
    target: Integers
    rate: Floats


class UnsolvedError(Exception):
    """The equations of a model could not be solved."""


def solve(model: Preemptive | Pull, actions: Any, accuracy: float = 1e-9) -> tuple[float, Any]:
    """Return the least mean cost and the actions that have it; good first actions save time.

    Actions are improved until they gain less than a share.
    """
    mean = np.inf
    known, classes = np.zeros((len(model.cost), 2)), len(model.queues.counts)
    while True:
        found, value, known = evaluate(model.chain(actions), model.cost, classes, known)
        better = model.improve(value, actions)
        same = all(np.array_equal(a, b) for a, b in zip(better, actions, strict=True))
        if same or found > mean * (1 - accuracy):
            return min(found, mean), actions
        actions, mean = better, found


def evaluate(
    chain: Chain, cost: Floats, classes: int, near: Floats
) -> tuple[float, Floats, Floats]:
    """Return the mean cost of a chain, and how much more it costs to start in each state than in 0.

    What it costs, and how long it takes, to get to state 0 from each other one: two systems of
    linear equations with one matrix, for the states that the chain enters. The values of the
    others follow from these. The solutions [state, 2] are returned too; ``near`` has those of a
    similar chain, which save time. A chain that may never get back to state 0 has no answer.
    """
    from scipy.sparse import csr_matrix, diags

    states = len(cost)
    out = np.bincount(chain.source, chain.rate, states)
    rates = csr_matrix((chain.rate, (chain.source, chain.target)), (states, states))
    stuck = _stuck(rates)
    if stuck[0]:
        raise UnsolvedError
    entered = np.unique(np.append(0, chain.target))
    rest = entered[1:][~stuck[entered[1:]]]
    inner = rates[rest][:, rest]
    sides = np.column_stack([cost[rest], np.ones(len(rest))])
    found = np.zeros((states, 2))
    found[rest] = _solve_equations((diags(out[rest]) - inner).tocsc(), sides, near[rest], classes)
    spent, taken = found.T
    leaving = np.asarray(rates[0].todense()).ravel()
    mean = (cost[0] + leaving @ spent) / (1 + leaving @ taken)
    value = spent - mean * taken
    value = (cost - mean + rates @ value) / out
    value -= value[0]
    value[stuck] = NEVER
    return float(mean), value, found


def _stuck(rates: Any) -> NDArray[np.bool_]:
    """Tell from which states the chain may never get to state 0.

    Some of them cannot occur, such as those where a machine serves a class that it cannot serve.
    The equations have no solution there, or by the last bit of a sum a wrong one.
    """
    from scipy.sparse.csgraph import breadth_first_order

    stuck = np.ones(rates.shape[0], np.bool_)
    stuck[breadth_first_order(rates.T, 0, return_predecessors=False)] = False
    while (more := ~stuck & (rates @ stuck > 0)).any():
        stuck |= more
    return stuck


def _solve_equations(matrix: Any, sides: Floats, near: Floats, classes: int) -> Floats:
    """Solve the equations of one or two classes, or a few, directly, and others by iteration.

    If iterations do not converge, the equations are solved directly unless they are too many.
    """
    if classes < 3 or len(sides) < SMALL:
        return _solve_directly(matrix, sides)
    found = _solve_by_iteration(matrix, sides, near)
    if found is not None:
        return found
    if len(sides) < LARGE:
        return _solve_directly(matrix, sides)
    raise UnsolvedError


def _solve_directly(matrix: Any, sides: Floats) -> Floats:
    """Factorise the matrix."""
    from scipy.sparse.linalg import splu

    try:
        return np.asarray(splu(matrix, permc_spec="MMD_AT_PLUS_A", **NO_PIVOTS).solve(sides))
    except RuntimeError:  # singular, or almost
        raise UnsolvedError from None


def _solve_by_iteration(matrix: Any, sides: Floats, near: Floats) -> Floats | None:
    """Iterate, with factors from which small entries are left out; None if that does not converge.

    The full factors of many equations would take long, and not fit into the memory.
    """
    from scipy.sparse.linalg import LinearOperator, bicgstab, spilu

    try:
        factors = spilu(
            matrix, drop_tol=DROPPED, fill_factor=FILL, permc_spec="NATURAL", **NO_PIVOTS
        )
    except RuntimeError:  # singular
        return None
    rows, inverse = matrix.tocsr(), LinearOperator(matrix.shape, factors.solve)
    found = np.empty_like(sides)
    for k, side in enumerate(sides.T):
        with np.errstate(all="ignore"):  # what does not converge may become infinite
            found[:, k], fault = bicgstab(
                rows, side, x0=near[:, k], rtol=SOLVED, maxiter=MOST_STEPS, M=inverse
            )
        if fault != 0 or not np.isfinite(found[:, k]).all():
            return None
    return found


class Queues:
    """The numbers of tasks of each class, with a limit on their sum; state 0 is empty."""

    def __init__(self, classes: int, most: int) -> None:
        counts = np.indices((most + 1,) * classes).reshape(classes, -1)
        counts = counts[:, counts.sum(axis=0) <= most]
        self.counts: Integers = counts[:, np.argsort(counts.sum(axis=0), kind="stable")]
        self.number = np.full((most + 2,) * classes, -1)
        self.number[tuple(self.counts)] = np.arange(self.counts.shape[1])
        one = np.eye(classes, dtype=np.int64)[:, :, None]
        self.more = np.array([self.number[tuple(self.counts + step)] for step in one])
        """[class, state]: the state with one more task, −1 where there is no room."""
        self.less = np.array([self.number[tuple(self.counts - step)] for step in one])
        """[class, state]: the state with one task less, −1 where there is none."""
        self.less[self.counts == 0] = -1

    def __len__(self) -> int:
        return self.counts.shape[1]

    def nearest(self, counts: Integers) -> Integers:
        """Return the states of counts, scaled down where they are too many."""
        total = counts.sum(axis=0)
        most = len(self.number) - 2
        fewer = np.where(total > most, counts * most // np.maximum(total, 1), counts)
        return np.asarray(self.number[tuple(fewer)])


class Preemptive:
    """Any policy: machines may interrupt tasks at any moment, and tasks may move.

    The state is the number of tasks of each class, an action which class each machine serves; no
    class has more machines than tasks.
    """

    def __init__(self, arrivals: Floats, rates: Floats, most: int, costs: Floats) -> None:
        classes, machines = rates.shape
        self.arrivals, self.queues = arrivals, Queues(classes, most)
        self.cost = costs @ self.queues.counts
        self.serving = np.array(list(product(range(-1, classes), repeat=machines)))
        """[action, machine]: a class, or −1."""
        self.on = self.serving[:, :, None] == np.arange(classes)
        self.used = self.on.sum(axis=1)
        """[action, class]: machines that serve it."""
        self.rates = rates
        self.speed = self._speed(rates)

    def _speed(self, rates: Floats) -> Floats:
        """Return how fast the tasks of a class finish [action, class]."""
        return np.asarray((self.on * rates.T).sum(axis=1))

    def first(self, good: Floats) -> Any:
        """Let the sum of the squared queues fall fastest, which keeps them all short."""
        squares = 0.5 * (self.queues.counts**2).sum(axis=0)
        idle = np.zeros(len(self.queues), np.int64)
        return self._fastest(squares, idle, self._speed(np.where(good > 0, self.rates, 0)))

    def improve(self, value: Floats, actions: Any) -> Any:
        """Take the action under which the value falls fastest."""
        return self._fastest(value, actions[0], self.speed)

    def _fastest(self, value: Floats, actions: Integers, speeds: Floats) -> Any:
        less = self.queues.less
        fall = np.where(less >= 0, value - value[less], 0.0)
        chosen = actions.copy()
        best = (speeds[actions] * fall.T).sum(axis=1)
        for action, (used, speed) in enumerate(zip(self.used, speeds, strict=True)):
            gain = speed @ fall
            gain[(used[:, None] > self.queues.counts).any(axis=0)] = -np.inf
            better = gain > best + BETTER * np.abs(gain)
            chosen[better] = action
            best[better] = gain[better]
        return (chosen,)

    def extend(self, actions: Any, fewer: Queues) -> Any:
        """Return actions for this model from those for the same one with fewer tasks."""
        return (actions[0][fewer.nearest(self.queues.counts)],)

    def chain(self, actions: Any) -> Chain:
        """Return the rates under some actions."""
        states = np.arange(len(self.queues))
        parts = []
        for i, arrival in enumerate(self.arrivals):
            there = self.queues.more[i] >= 0
            parts.append((states[there], self.queues.more[i][there], np.full(there.sum(), arrival)))
            speed = self.speed[actions[0], i]
            runs = speed > 0
            parts.append((states[runs], self.queues.less[i][runs], speed[runs]))
        return Chain(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Pull:
    """Policies without interruption: a task ends where it began; machines may stay idle.

    The state is the tasks that wait of each class and what each machine serves, after all idle
    machines have decided; they decide in their order, after every event.
    """

    def __init__(self, arrivals: Floats, rates: Floats, most: int, costs: Floats) -> None:
        classes, machines = rates.shape
        self.arrivals, self.rates, self.queues = arrivals, rates, Queues(classes, most)
        self.serving = np.array(list(product(range(-1, classes), repeat=machines)))
        """[pattern, machine]: a class, or −1."""
        self.step = (classes + 1) ** np.arange(machines - 1, -1, -1)
        """[machine]: how far the pattern's number goes up when it takes the next class."""
        served = np.append(costs, 0.0)[self.serving].sum(axis=1)  # −1 is the last: no task
        self.cost = ((costs @ self.queues.counts)[:, None] + served).ravel()
        self.shape = (len(self.queues), len(self.serving))

    def first(self, good: Floats) -> Any:
        """Let every machine take the class with the largest number waiting × rate there.

        A machine leaves a class to those that are faster at it if they would finish all that waits
        before it finishes one: otherwise the first actions may be so bad that a better choice is
        never to serve the last tasks.
        """
        actions = tuple(np.full(self.shape, -1, np.int8) for _ in self.step)
        usable = np.where(good > 0, self.rates, 0)
        for machine, found in enumerate(actions):
            idle = np.flatnonzero(self.serving[:, machine] < 0)
            rates = usable[:, machine]
            faster = np.where(usable > rates[:, None], usable, 0).sum(axis=1)
            index = self.queues.counts * rates[:, None]
            index = np.where(index >= faster[:, None], index, 0)
            found[:, idle] = np.where(index.max(axis=0) > 0, index.argmax(axis=0), -1)[:, None]
        return actions

    def improve(self, value: Floats, actions: Any) -> Any:
        """Let every machine take what leads to the least value, given what later machines do."""
        value = value.reshape(self.shape)
        chosen = [np.full(self.shape, -1, np.int8) for _ in self.step]
        for machine in reversed(range(len(self.step))):
            idle = np.flatnonzero(self.serving[:, machine] < 0)
            options = [value[:, idle]]
            for i, rate in enumerate(self.rates[:, machine]):
                taken = value[np.ix_(self.queues.less[i], idle + (i + 1) * self.step[machine])]
                possible = (self.queues.less[i] >= 0) & (rate > 0)
                options.append(np.where(possible[:, None], taken, np.inf))
            before = np.array(options)
            now = actions[machine][:, idle].astype(np.int64) + 1
            kept = np.take_along_axis(before, now[None], axis=0)[0]
            best = before.argmin(axis=0)
            least = before.min(axis=0)
            better = least < kept - BETTER * np.abs(kept)
            chosen[machine][:, idle] = np.where(better, best, now) - 1
            value = value.copy()
            value[:, idle] = np.where(better, least, kept)
        return tuple(chosen)

    def extend(self, actions: Any, fewer: Queues) -> Any:
        """Return actions for this model from those for the same one with fewer tasks."""
        return tuple(chosen[fewer.nearest(self.queues.counts)] for chosen in actions)

    def decided(self, actions: Any) -> Integers:
        """Return the state that follows each state when all idle machines have decided."""
        queue, pattern = (each.ravel().copy() for each in np.indices(self.shape))
        for machine, chosen in enumerate(actions):
            taken = chosen[queue, pattern].astype(np.int64)
            takes = taken >= 0
            queue[takes] = self.queues.less[taken[takes], queue[takes]]
            pattern[takes] += (taken[takes] + 1) * self.step[machine]
        return np.asarray(queue * self.shape[1] + pattern)

    def chain(self, actions: Any) -> Chain:
        """Return the rates under some actions."""
        after = self.decided(actions)
        queue, pattern = (each.ravel() for each in np.indices(self.shape))
        states = np.arange(len(after))
        parts = []
        for i, arrival in enumerate(self.arrivals):
            more = self.queues.more[i, queue]
            # a task that finds no room is turned away, but idle machines decide again
            target = after[np.where(more >= 0, more, queue) * self.shape[1] + pattern]
            parts.append((states, target, np.full(len(target), arrival)))
        for machine, step in enumerate(self.step):
            served = self.serving[pattern, machine]
            rate = np.where(served >= 0, self.rates[served, machine], 0)
            busy = rate > 0
            target = after[states[busy] - (served[busy] + 1) * step]
            parts.append((states[busy], target, rate[busy]))
        return Chain(*(np.concatenate(each) for each in zip(*parts, strict=True)))
