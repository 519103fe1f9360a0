"""Step many runs of a push or pull system from decision to decision, with one compiled call.

The arrays of all runs lie one behind the other, as those that a device runs (``kernel``).
"""

from typing import Any

from ..compiler.checks import addressed, shaped
from ..compiler.link import allocates_nothing, hook
from .central_state import State
from .event_loop import loop
from .interrupts import SLICE
from .kernel import FAULTS, GO, OWN, REPEATS, TASKS, generator, state_of


@allocates_nothing
def step_all(
    flat: State,
    where: Any,
    walks: Any,
    until: float,
    make_plan: Any,
    room: Any,
    words: Any,
    reasons: Any,
    seen: Any,
    mask: Any,
    outcome: Any,
) -> None:
    """Continue the runs whose reason is ``GO`` until their next decision.

    ``seen`` [run, feature] and ``mask`` [run, action] show what a learner needs to decide.
    ``outcome`` [run, 2] has the time, and the holding cost of all tasks until then.
    """
    for r in range(len(reasons)):
        if reasons[r] == GO:
            state = addressed(state_of(flat, where[r]))
            reasons[r] = loop(
                state,
                shaped(walks, r, 1),
                until,
                0.0,
                make_plan,
                room,
                generator(words, r, TASKS),
                generator(words, r, FAULTS),
                generator(words, r, REPEATS),
                generator(words, r, OWN),
            )
            w, c = walks[r], state.count[0]
            outcome[r, 0] = c.now
            outcome[r, 1] = holding_cost(state)
            asking = -1 if reasons[r] == SLICE else asks(w)
            observe(state, c.now, asking, seen[r])
            permit(state, asking, mask[r])


@hook
def asks(w: Any) -> int:
    """Stand in for ``machine_of`` or ``class_of``."""
    return -1


def machine_of(w: Any) -> int:
    """Return the machine that asks in a pull system."""
    return w.machine


def class_of(w: Any) -> int:
    """Return the class whose task is offered in a push system."""
    return w.task_class


@hook
def permit(s: State, asking: int, mask: Any) -> None:
    """Stand in for ``permit_classes`` or ``permit_machines``."""


def permit_classes(s: State, j: int, mask: Any) -> None:
    """Mark the classes that a machine can be given; the last action is always possible."""
    for i in range(len(s.classes)):
        mask[i] = j >= 0 and s.classes[i].waiting > 0 and s.truth[i, j] > 0.0
    mask[len(s.classes)] = True


def permit_machines(s: State, i: int, mask: Any) -> None:
    """Mark the machines that can be sent a task; the last action is always possible."""
    for j in range(len(s.machines)):
        mask[j] = i >= 0 and s.machines[j].up and s.truth[i, j] > 0.0
    mask[len(s.machines)] = True


def holding_cost(s: State) -> float:
    """Return the cost of all tasks for the time that they have spent in the system."""
    total = 0.0
    for i in range(len(s.classes)):
        q = s.stream[i]
        total += s.classes[i].cost * (q.area + q.inside * s.count[0].now)
    return total


def observe(s: State, now: float, asking: int, seen: Any) -> None:
    """Write down what a policy sees; ``feature_names`` names it."""
    classes, machines = s.rate.shape
    k = len(seen) - 2 * classes - (4 + classes) * machines
    for n in range(k):
        seen[n] = 1.0 if n == asking else 0.0
    for i in range(classes):
        waits = s.classes[i].waiting
        seen[k + i] = waits
        seen[k + classes + i] = now - s.classes[i].oldest if waits > 0 else 0.0
    k += 2 * classes
    for j in range(machines):
        m = s.machines[j]
        seen[k + j] = m.backlog
        seen[k + machines + j] = m.work
        seen[k + 2 * machines + j] = 1.0 if m.up else 0.0
        seen[k + 3 * machines + j] = m.availability
    k += 4 * machines
    for i in range(classes):
        for j in range(machines):
            seen[k + i * machines + j] = 1.0 if s.machines[j].serving == i else 0.0


def feature_names(classes: int, machines: int, asking: int) -> tuple[str, ...]:
    """Name what ``observe`` writes down, where so many machines or classes can ask."""
    names = [("asks", asking), ("waiting", classes), ("age", classes)]
    names += [(name, machines) for name in ("backlog", "work", "up", "availability")]
    found = [f"{name}[{k}]" for name, count in names for k in range(count)]
    return (*found, *(f"serves[{i},{j}]" for i in range(classes) for j in range(machines)))
