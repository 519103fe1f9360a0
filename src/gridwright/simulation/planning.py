"""New plans inside the loop, for the planners that can be compiled."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..allocation import (
    Dense,
    Situation,
    Workspace,
    dantzig,
    dual,
    grouped,
    make_dense,
    make_dense_dual,
    make_workspace,
    plan_dantzig,
    plan_dual,
    prices,
    steady,
    tolls,
    vertex,
    weights,
)
from ..allocation.bottlenecks import optimum
from ..allocation.planner import charge, fill, moderate, permit, set_reference, spread
from ..allocation.simplex import FAILED
from ..allocation.workspace import CHANGED
from ..compiler.link import allocates_nothing, hook, point, rare, shared
from ..policies import Policy
from ..policies.choice import fastest, mark_fastest
from .central_state import State

Floats = NDArray[np.float64]


@shared
class Planning(NamedTuple):
    """What a compiled planner works with."""

    room: Workspace
    numbers: Floats  # the planner's parameters
    arrivals: Floats  # [class], scratch
    dense: Dense  # the tableau of ``dantzig`` or ``dual``; empty for others
    answers: Floats  # [situation, number], worked out before the run: see ``plan_table``
    place: NDArray[np.int64]  # [machine], what one that is up adds to the number of a situation


@hook
def solved(now: Situation, planning: Planning) -> bool:
    """Solve a situation in the workspace; tell whether there is a solution."""
    return bool(optimum(now, planning.room) != FAILED)


@allocates_nothing
def plan_in_python(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Leave the planning to Python."""
    return False


@allocates_nothing
def plan_vertex(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``vertex`` does."""
    if not solved(now, planning):
        return False
    fill(now, planning.room, plan)
    return True


@allocates_nothing
def plan_textbook(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``dantzig`` does."""
    return plan_dantzig(now, planning.dense, plan)


@allocates_nothing
def plan_textbook_dual(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``dual`` does."""
    return plan_dual(now, planning.dense, plan)


@allocates_nothing
def plan_grouped(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``grouped`` does."""
    if not solved(now, planning):
        return False
    spread(now, planning.room, plan)
    return True


@allocates_nothing
def plan_prices(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Make the plan of ``prices``, or of ``weights`` if no power is given."""
    if not solved(now, planning):
        return False
    power = planning.numbers[0] if len(planning.numbers) > 0 else np.inf
    permit(now, planning.room, plan, power)
    return True


@allocates_nothing
def plan_steady(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``steady`` does."""
    if not solved(now, planning):
        return False
    moderate(now, planning.room, plan)
    return True


@allocates_nothing
def plan_tolls(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``tolls`` does."""
    if optimum(now, planning.room) == FAILED:
        return False
    charge(now, planning.room, plan, planning.numbers[0])
    return True


@allocates_nothing
def plan_fastest(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Plan as ``fastest`` does; their number was checked when the first plan was made."""
    machines = now.rates.shape[1]
    k = int(planning.numbers[0])
    if planning.numbers[1] > 0.0:
        k = int(planning.numbers[1] * machines / 100 + 1e-9)
    mark_fastest(now, k, plan)
    return True


@rare
def situation(s: State, planning: Planning) -> Situation:
    """Describe the state to a planner."""
    for i in range(len(s.classes)):
        planning.arrivals[i] = s.classes[i].arrival
    planning.room.news[CHANGED] = s.count[0].changed
    return Situation(s.nominal, planning.arrivals, s.present, s.group)


PLANS: dict[Any, Callable[[Situation, Planning, Floats], bool]] = {
    fastest: plan_fastest,
    vertex: plan_vertex,
    dantzig: plan_textbook,
    dual: plan_textbook_dual,
    grouped: plan_grouped,
    prices: plan_prices,
    weights: plan_prices,
    steady: plan_steady,
    tolls: plan_tolls,
}
"""Planners that run compiled inside the loop; any other is called in Python."""


def is_planned_in_python(policy: Policy) -> bool:
    """Tell whether a policy has a planner that is not compiled."""
    return policy.planner is not None and policy.planner not in PLANS


SOLVING = (plan_vertex, plan_grouped, plan_prices, plan_steady)
"""Those that solve the allocation LP on groups of machines."""


def choose_planner(
    policy: Policy, now: Situation, arrivals: Floats, *, compiled: bool
) -> tuple[Any, Planning]:
    """Return the function that a loop calls for a new plan, and the arrays that it works with.

    Where the planner cannot be compiled, the function tells the loop to ask Python.
    """
    make_plan: Any = plan_in_python
    numbers = np.zeros(0)
    if compiled and policy.planner in PLANS:
        make_plan = PLANS[policy.planner]
        numbers = np.array([*policy.planning.values()], dtype=float)
    dense = Dense(np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0, np.int64))
    if make_plan is plan_textbook:
        dense = make_dense(now)
    elif make_plan is plan_textbook_dual:
        dense = make_dense_dual(now)
    none = np.zeros((0, 0)), np.zeros(0, np.int64)
    planning = Planning(make_workspace(now), numbers, arrivals, dense, *none)
    if make_plan in (*SOLVING, plan_tolls):
        set_reference(now, planning.room)
    return make_plan, planning


def pointed(make_plan: Any, now: Situation, planning: Planning, plan: Floats) -> Any:
    """Compile such a function by itself, and return a pointer to it for a loop."""
    import numba

    typeof: Any = numba.typeof
    takes = (typeof(now), typeof(planning), typeof(plan))
    return point(make_plan, numba.types.boolean, *takes)
