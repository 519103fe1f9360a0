"""What limits a capacity, and what does not: the level at which each class and group is planned.

The optimum of the allocation LP says nothing about classes and groups that do not limit it: they
may be served in any way that is good enough. So what limits the capacity is planned first, then
the rest as a problem of its own, and so on; every level has its own load.
"""

from .room import NEGLIGIBLE, Room, Situation, weigh

__all__ = ["close"]

ALLOCATES_NOTHING = True


def close(situation: Situation, room: Room, capacity: float, level: int) -> None:
    """Write the solution of a level down; leave in the room the problem of what it leaves over."""
    room.load[level] = 1.0 / capacity
    _mark(room, capacity)
    _spread_slack(room)
    classes, groups = room.tableau.size
    limiting = 0
    for k in range(classes):
        limiting += 1 - room.slack_class[k]
    if limiting == 0:  # by rounding alone: then nothing is left for another level
        for k in range(classes):
            room.slack_class[k] = 0
        for h in range(groups):
            room.slack_group[h] = 0
    _write(room, level)
    _keep_slack(room)
    weigh(situation, room)


def _mark(room: Room, capacity: float) -> None:
    """Mark the classes that are served more than they need, and the groups with time to spare."""
    t = room.tableau
    classes, groups = t.size
    for k in range(classes):
        served = 0.0
        for h in range(groups):
            served += t.given[k, h] * t.share[k, h]
        room.slack_class[k] = served > capacity * (1.0 + NEGLIGIBLE)
    for h in range(groups):
        used = 0.0
        for k in range(classes):
            used += t.share[k, h]
            if not is_used(room, capacity, k, h):
                t.share[k, h] = 0.0
        room.slack_group[h] = used < 1.0 - NEGLIGIBLE


def is_used(room: Room, capacity: float, k: int, h: int) -> bool:
    """Tell whether a share is more than rounding."""
    share = room.tableau.share[k, h]
    return bool(share > NEGLIGIBLE or share * room.tableau.given[k, h] > NEGLIGIBLE * capacity)


def _spread_slack(room: Room) -> None:
    """Mark what could draw on slack: a class that can run on such a group, a group it uses."""
    t = room.tableau
    classes, groups = t.size
    changed = True
    while changed:
        changed = False
        for k in range(classes):
            for h in range(groups):
                if room.slack_group[h] == 1 and t.given[k, h] > 0.0 and room.slack_class[k] == 0:
                    room.slack_class[k] = 1
                    changed = True
                if room.slack_class[k] == 1 and t.share[k, h] > 0.0 and room.slack_group[h] == 0:
                    room.slack_group[h] = 1
                    changed = True


def _write(room: Room, level: int) -> None:
    t = room.tableau
    classes, groups = t.size
    for h in range(groups):
        if room.slack_group[h] == 0:
            g = room.groups[h]
            room.group_level[g] = level
            for k in range(classes):
                room.time[room.classes[k], g] = t.share[k, h] * room.capacity[g]
    for k in range(classes):
        if room.slack_class[k] == 0:
            room.level[room.classes[k]] = level


def _keep_slack(room: Room) -> None:
    size = room.tableau.size
    classes, groups = size[0], size[1]
    size[0], size[1] = 0, 0
    for k in range(classes):
        if room.slack_class[k] == 1:
            room.classes[size[0]] = room.classes[k]
            size[0] += 1
    for h in range(groups):
        if room.slack_group[h] == 1:
            room.groups[size[1]] = room.groups[h]
            size[1] += 1
