"""What it costs others that a machine is busy: the tolls of a static split of the arrivals.

If a fixed share of each class went to each machine, every machine would be a queue of its own,
M/G/1, whose mean number is known. Flows are moved from one group of machines to another, class by
class, to where one more task adds least. Unlike the prices of the allocation LP this has no jumps,
and it counts a long task that makes many short ones wait.

From the flows follows what a task that occupies a machine takes from those that come meanwhile.
Each of them goes to the next best machine that is free, and loses by the longer execution, or
waits until the queue is so long that it is better elsewhere.
"""

from math import inf, sqrt

from ..compiler.link import allocates_nothing
from .workspace import Situation, Workspace

ROUNDS = 50
"""How often every class moves a part of its flow at most; on 20 machines most need fewer."""
HALVINGS = 7
"""How often what is to be moved is halved before it stays."""
ALMOST = 0.05
"""A flow stays if a task costs at most this share more than elsewhere."""
LEAST_SLACK = 0.01
"""A machine that has more to do than it can counts as busy all but this share of its time."""
LEAST_LEFT = 1e-6
"""When fewer find no machine free, further machines do not matter."""


@allocates_nothing
def split(situation: Situation, space: Workspace) -> None:
    """Turn the times of a solution into flows [class, group], and move them where they cost least.

    The flows replace the times in the workspace.
    """
    classes, groups = space.time.shape
    for g in range(groups):
        space.running[g] = 0.0
    for j in range(len(situation.group)):
        space.running[situation.group[j]] += situation.availability[j] > 0.0
    for i in range(classes):
        total = 0.0
        for g in range(groups):
            space.each[i, g] = inf
            if space.rates[i, g] > 0.0 and space.capacity[g] > 0.0:
                space.each[i, g] = space.running[g] / space.capacity[g] / space.rates[i, g]
            space.time[i, g] *= space.rates[i, g]
            total += space.time[i, g]
        for g in range(groups):
            if total > 0.0:
                space.time[i, g] *= situation.arrivals[i] / total
    sum_up(space)
    for _ in range(ROUNDS):
        moved = False
        for i in range(classes):
            worst, most, best, least = -1, 0.0, -1, inf
            for g in range(groups):
                if space.capacity[g] > 0.0 and space.rates[i, g] > 0.0:
                    sums = space.flow[g], space.busy[g], space.squares[g]
                    cost = marginal(space.each[i, g], *sums, 0.0)
                    if space.time[i, g] > 0.0 and cost > most:
                        worst, most = g, cost
                    if cost < least:
                        best, least = g, cost
            if most > least * (1.0 + ALMOST):
                moved |= _move(space, i, worst, best, most - least)
        if not moved:
            break


def sum_up(space: Workspace) -> None:
    """Sum up the tasks, their work and its squares that come to a machine of each group.

    Execution times are taken to be exponential.
    """
    classes, groups = space.time.shape
    for g in range(groups):
        space.flow[g] = space.busy[g] = space.squares[g] = 0.0
        for i in range(classes):
            if space.time[i, g] > 0.0 and space.capacity[g] > 0.0:
                _add(space, i, g, space.time[i, g])


def _add(space: Workspace, i: int, g: int, flow: float) -> None:
    """Add a flow of a class to the sums of a group."""
    each, part = space.each[i, g], flow / space.running[g]
    space.flow[g] += part
    space.busy[g] += part * each
    space.squares[g] += 2.0 * part * each * each


def _move(space: Workspace, i: int, source: int, target: int, gap: float) -> bool:
    """Move so much of a flow that it costs no more there than what stays; return whether any moved.

    The first try is what would close the gap between the costs if they were straight lines.
    """
    here = space.flow[source], space.busy[source], space.squares[source]
    there = space.flow[target], space.busy[target], space.squares[target]
    steep = slope(space.each[i, source], *here) / space.running[source]
    steep += slope(space.each[i, target], *there) / space.running[target]
    part = min(space.time[i, source], gap / steep)
    for _ in range(HALVINGS):
        stays = marginal(space.each[i, source], *here, -part / space.running[source])
        more = part / space.running[target]
        if marginal(space.each[i, target], *there, more) <= stays:
            space.time[i, source] -= part
            space.time[i, target] += part
            _add(space, i, source, -part)
            _add(space, i, target, part)
            return True
        part *= 0.5
    return False


def slope(each: float, flow: float, busy: float, squares: float) -> float:
    """Return how fast the marginal cost of a class on a machine grows with its flow."""
    crowding = 1.0 / max(1.0 - busy, LEAST_SLACK)
    square, behind = 2.0 * each * each, 1.0 + flow * each * crowding
    blocked = squares * behind + flow * square
    crowded = crowding * each * (blocked + squares * behind)
    return 0.5 * crowding * (crowded + square * (1.0 + behind))


def marginal(each: float, flow: float, busy: float, squares: float, more: float) -> float:
    """Return what one more task adds to the mean number on a machine, given a change of its flow.

    The machine gets so many tasks, so much work and its squares in a time unit.
    """
    flow += more
    busy += more * each
    squares += 2.0 * more * each * each
    crowding = 1.0 / max(1.0 - busy, LEAST_SLACK)
    blocked = squares * (1.0 + flow * each * crowding) + 2.0 * flow * each * each
    return each + 0.5 * crowding * blocked


@allocates_nothing
def set_tolls(space: Workspace) -> None:
    """Set how many time units others lose for each that a task runs on a machine, by the flows.

    Those who lose are the tasks that would go to this machine. Where another machine is likely to
    be free they lose what they take longer there; else, or where that is more, they wait until this
    one is free again, as long as waiting costs less than the other machine. No class pays less than
    the mean over the time that the machine works: its time is worth so much to those that the split
    gives it to.
    """
    classes, groups = space.time.shape
    for g in range(groups):
        busy = min(space.busy[g], 1.0)
        space.full[g] = busy ** space.running[g]
        space.others[g] = busy ** max(space.running[g] - 1.0, 0.0)
    for i in range(classes):
        _rank(space, i)
    for g in range(groups):
        lost, work = 0.0, 0.0
        for i in range(classes):
            runs = space.capacity[g] > 0.0 and space.each[i, g] < inf
            space.toll[i, g] = _lost(space, i, g) if runs else 0.0
            if space.time[i, g] > 0.0:
                lost += space.time[i, g] * space.each[i, g] * space.toll[i, g]
                work += space.time[i, g] * space.each[i, g]
        for i in range(classes):
            if work > 0.0:
                space.toll[i, g] = max(space.toll[i, g], lost / work)


def _rank(space: Workspace, i: int) -> None:
    """Order the groups that can run a class by execution time, the least first."""
    groups, last = space.order.shape[1], 0
    for g in range(groups):
        each, at = space.each[i, g], last
        if space.capacity[g] > 0.0 and each < inf:
            while at > 0 and space.each[i, space.order[i, at - 1]] > each:
                space.order[i, at] = space.order[i, at - 1]
                at -= 1
            space.order[i, at] = g
            last += 1
    if last < groups:
        space.order[i, last] = -1


def _lost(space: Workspace, i: int, g: int) -> float:
    """Return what others lose for each time unit that a task of a class runs on a group."""
    groups, total = space.order.shape[1], 0.0
    each, slack = space.each[i, g], max(1.0 - space.busy[g], LEAST_SLACK)
    for k in range(len(space.time)):
        if space.time[k, g] > 0.0:
            here = space.each[k, g]
            left, lost = space.others[g], 0.0
            for n in range(groups):
                h = space.order[k, n]
                if h < 0 or left < LEAST_LEFT:
                    break
                if h != g:
                    there = space.each[k, h]
                    elsewhere = there / (here * max(1.0 - space.busy[h], LEAST_SLACK))
                    wait = each * delayed(slack, elsewhere)
                    lost += left * (1.0 - space.full[h]) * min(max(there - here, 0.0), wait)
                    left *= space.full[h]
            total += space.time[k, g] * (lost + left * each / slack)
    return total / space.running[g]


def delayed(slack: float, elsewhere: float) -> float:
    """Return how many executions tasks wait, in all, because one more waits for a machine.

    Those that come while it runs wait, too, and those that come while these run: 1 / slack in all
    if nobody goes elsewhere. But a queue ends where one more place in it costs as much as going
    ``elsewhere``, in executions here: with K tasks if K × delayed = elsewhere. On average the end
    is half as far away, so delayed = 1 / (slack + 2 / K). On a machine that is always busy that
    makes K = √(2 × elsewhere), which has the least cost of all.
    """
    return 2.0 / (slack + sqrt(slack * slack + 8.0 / elsewhere))
