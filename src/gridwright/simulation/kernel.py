"""What a device runs: the loops of push and pull systems, for many runs at once.

A device has many threads, and each of them runs one replication after the other. The arrays of all
runs lie one behind the other, field by field. A table says where those of a run begin, and how many
rows and columns they have; runs may share arrays that no loop writes to. Tickets go on to the end
of all of them, because a run that needs more gets some there. The loops, the policies and the
planners are those of a single run.
"""

from typing import Any

from ..allocation import Dense, Situation, Workspace
from ..allocation.simplex import Tableau
from ..compiler.checks import ABREAST, interleaved, shaped
from ..compiler.link import allocates_nothing, hook, memory_bound
from ..compiler.philox import WORDS, Philox
from .central_state import State
from .event_loop import loop as event_loop
from .interrupts import SLICE
from .planning import Floats, Planning
from .push import loop as push_loop

GO = -1
"""The reason of a run that is to continue."""
TASKS, FAULTS, REPEATS, OWN = range(4)
STREAMS = 4
"""The streams of a run."""


@allocates_nothing
def run_push(
    flat: State,
    where: Any,
    arguments: Any,
    batch: Any,
    until: Any,
    last: int,
    warmup: Any,
    horizon: Any,
    words: Any,
    done: Any,
    inside: Any,
    reasons: Any,
) -> None:
    """Continue push systems whose machines neither fail nor change, to the end of some slices.

    ``where`` is [run, field, 3]: first, rows and columns; ``words`` is [run, stream, word];
    ``batch`` is [run], ``until`` is [batch, slice], ``warmup`` and ``horizon`` are [batch]. The
    slices before ``last`` are run, ``done`` says how many of them were, and ``inside``, [slice,
    run], gets the number of tasks in the system at their ends.
    """
    first, step = lanes()
    for r in range(first, len(reasons), step):
        if reasons[r] == GO:
            state, b, reason = state_of(flat, where[r]), batch[r], SLICE
            while reason == SLICE and done[r] < last:
                reason = push_loop(
                    state,
                    arguments,
                    until[b, done[r]],
                    warmup[b],
                    horizon[b],
                    generator(words, r, TASKS),
                    generator(words, r, OWN),
                )
                if reason == SLICE:
                    inside[done[r], r] = state.count[0].inside
                    done[r] += 1
            reasons[r] = reason


@allocates_nothing
@memory_bound
def run_events(
    flat: State,
    rooms: Planning,
    where: Any,
    arguments: Any,
    batch: Any,
    until: Any,
    last: int,
    warmup: Any,
    words: Any,
    done: Any,
    inside: Any,
    reasons: Any,
) -> None:
    """Continue systems with an event list; the fields of ``rooms`` follow those of the state."""
    first, step = lanes()
    for r in range(first, len(reasons), step):
        if reasons[r] == GO:
            state, b, reason = state_of(flat, where[r]), batch[r], SLICE
            planning = planning_of(rooms, where[r])
            while reason == SLICE and done[r] < last:
                reason = event_loop(
                    state,
                    arguments,
                    until[b, done[r]],
                    warmup[b],
                    make_plan,
                    planning,
                    generator(words, r, TASKS),
                    generator(words, r, FAULTS),
                    generator(words, r, REPEATS),
                    generator(words, r, OWN),
                )
                if reason == SLICE:
                    inside[done[r], r] = state.count[0].inside
                    done[r] += 1
            reasons[r] = reason


@hook
def lanes() -> tuple[int, int]:
    """Return the number of this thread, and how many there are."""
    return 0, 1


@hook
def make_plan(now: Situation, planning: Planning, plan: Floats) -> bool:
    """Stand in for the planner of a policy."""
    return False


@hook
def generator(words: Any, r: int, stream: int) -> Any:
    """Return the generator of a stream: for the loops, it is like one of NumPy."""
    return Philox(words[r, stream])


def generator_abreast(words: Any, r: int, stream: int) -> Any:
    """Return a generator whose words lie beside those of other runs, as ``words_abreast`` does."""
    first = ((r // ABREAST) * STREAMS + stream) * WORDS * ABREAST + r % ABREAST
    return Philox(interleaved(words, first, WORDS))


def state_of(flat: State, where: Any) -> State:
    """Return the state of a run.

    The numbers of its machines and classes are read once: fewer values to keep make the code fast.
    """
    machines, classes = where[0, 1], where[1, 1]
    return State(
        by_machine(flat.machines, where[0, 0], machines)[0],
        in_step(flat.classes, where[1, 0], classes)[0],
        shaped(flat.rate, where[2, 0], classes, machines),
        shaped(flat.nominal, where[3, 0], classes, machines),
        shaped(flat.expected, where[4, 0], classes, machines),
        by_pair(flat.assigned, where[5, 0], classes, machines)[0],
        shaped(flat.plan, where[6, 0], classes, machines),
        by_pair(flat.memory, where[7, 0], where[7, 1], where[7, 2])[0],
        in_step(flat.tally, where[8, 0], where[8, 1])[0],
        by_machine(flat.server, where[9, 0], machines)[0],
        in_step(flat.stream, where[10, 0], classes)[0],
        shaped(flat.ticket, where[11, 0], len(flat.ticket) - where[11, 0]),
        in_step(flat.count, where[12, 0], 1)[0],
        shaped(flat.truth, where[13, 0], classes, machines),
        by_machine(flat.due, where[14, 0], where[14, 1])[0],
        shaped(flat.tree, where[15, 0], where[15, 1]),
        shaped(flat.ends, where[16, 0], where[16, 1], where[16, 2]),
        shaped(flat.pattern, where[17, 0], machines),
        shaped(flat.group, where[18, 0], machines),
        shaped(flat.present, where[19, 0], machines),
        shaped(flat.shapes, where[20, 0], where[20, 1]),
        shaped(flat.table, where[21, 0], where[21, 1], where[21, 2]),
        shaped(flat.chain, where[22, 0], where[22, 1], where[22, 2]),
        shaped(flat.responses, where[23, 0], where[23, 1], where[23, 2]),
        shaped(flat.trace, where[24, 0], 0),  # a device keeps no event log
    )


@hook
def in_step(flat: Any, first: int, rows: int) -> tuple[Any]:
    """Return an array that threads that run in step read in the same places, as a tuple of one.

    numba-cuda compiles no function that returns an array it was not given.
    """
    return (shaped(flat, first, rows),)


@hook
def by_machine(flat: Any, first: int, rows: int) -> tuple[Any]:
    """Return an array of machines that they read so if there is no event list."""
    return (shaped(flat, first, rows),)


@hook
def by_pair(flat: Any, first: int, rows: int, columns: int) -> tuple[Any]:
    """Return an array of classes and machines that they read so if there is no event list."""
    return (shaped(flat, first, rows, columns),)


def abreast(flat: Any, first: int, rows: int) -> tuple[Any]:
    """Return an array whose words lie beside those of other runs."""
    return (interleaved(flat, first, rows),)


def pairs_abreast(flat: Any, first: int, rows: int, columns: int) -> tuple[Any]:
    """Return an array of rows and columns whose words lie beside those of other runs."""
    return (interleaved(flat, first, rows, columns),)


IN_STEP = ("classes", "tally", "stream", "count")
IN_STEP_WITHOUT_EVENTS = (*IN_STEP, "machines", "assigned", "memory", "server", "due")
"""Fields of the state that threads that run in step read in the same places. With an event list,
they look at different machines, so that the record of a machine stays together."""
HOOKS_ABREAST = {"generator": generator_abreast, "in_step": abreast}
HOOKS_ABREAST_WITHOUT_EVENTS = {
    **HOOKS_ABREAST,
    "by_machine": abreast,
    "by_pair": pairs_abreast,
}
"""The hooks of runs that lie side by side, so that threads in step read neighbouring words."""


def planning_of(rooms: Planning, where: Any) -> Planning:
    """Return the arrays of a run's planner."""
    room, given = rooms.room, rooms.room.tableau
    tableau = Tableau(
        shaped(given.given, where[31, 0], where[31, 1], where[31, 2]),
        shaped(given.size, where[32, 0], where[32, 1]),
        shaped(given.weight, where[33, 0], where[33, 1], where[33, 2]),
        shaped(given.key, where[34, 0], where[34, 1]),
        shaped(given.matrix, where[35, 0], where[35, 1], where[35, 2]),
        shaped(given.row, where[36, 0], where[36, 1]),
        shaped(given.share, where[37, 0], where[37, 1], where[37, 2]),
        shaped(given.known, where[38, 0], where[38, 1], where[38, 2]),
        shaped(given.first, where[39, 0], where[39, 1]),
    )
    workspace = Workspace(
        shaped(room.rates, where[25, 0], where[25, 1], where[25, 2]),
        shaped(room.capacity, where[26, 0], where[26, 1]),
        shaped(room.classes, where[27, 0], where[27, 1]),
        shaped(room.groups, where[28, 0], where[28, 1]),
        shaped(room.slack_class, where[29, 0], where[29, 1]),
        shaped(room.slack_group, where[30, 0], where[30, 1]),
        tableau,
        shaped(room.time, where[40, 0], where[40, 1], where[40, 2]),
        shaped(room.level, where[41, 0], where[41, 1]),
        shaped(room.group_level, where[42, 0], where[42, 1]),
        shaped(room.load, where[43, 0], where[43, 1]),
        shaped(room.price, where[44, 0], where[44, 1]),
        shaped(room.worth, where[45, 0], where[45, 1]),
        shaped(room.part, where[46, 0], where[46, 1]),
        shaped(room.group_part, where[47, 0], where[47, 1]),
        shaped(room.weight, where[48, 0], where[48, 1], where[48, 2]),
        shaped(room.most, where[49, 0], where[49, 1], where[49, 2]),
        shaped(room.running, where[50, 0], where[50, 1]),
        shaped(room.each, where[51, 0], where[51, 1], where[51, 2]),
        shaped(room.flow, where[52, 0], where[52, 1]),
        shaped(room.busy, where[53, 0], where[53, 1]),
        shaped(room.squares, where[54, 0], where[54, 1]),
        shaped(room.toll, where[55, 0], where[55, 1], where[55, 2]),
        shaped(room.full, where[56, 0], where[56, 1]),
        shaped(room.others, where[57, 0], where[57, 1]),
        shaped(room.order, where[58, 0], where[58, 1], where[58, 2]),
        shaped(room.member, where[59, 0], where[59, 1]),
        shaped(room.begin, where[60, 0], where[60, 1]),
        shaped(room.support, where[61, 0], where[61, 1]),
        shaped(room.moved, where[62, 0], where[62, 1]),
        shaped(room.news, where[63, 0], where[63, 1]),
        shaped(room.place, where[64, 0], where[64, 1]),
        shaped(room.block, where[65, 0], where[65, 1]),
        shaped(room.sums, where[66, 0], where[66, 1]),
        shaped(room.whole, where[67, 0], where[67, 1]),
    )
    dense = Dense(
        shaped(rooms.dense.cells, where[70, 0], where[70, 1], where[70, 2]),
        shaped(rooms.dense.basis, where[71, 0], where[71, 1]),
        shaped(rooms.dense.asks, where[72, 0], where[72, 1]),
    )
    return Planning(
        workspace,
        shaped(rooms.numbers, where[68, 0], where[68, 1]),
        shaped(rooms.arrivals, where[69, 0], where[69, 1]),
        dense,
        shaped(rooms.answers, where[73, 0], where[73, 1], where[73, 2]),
        shaped(rooms.place, where[74, 0], where[74, 1]),
    )
