"""Lists of the idle machines of a pull system: one of all, and one for each permission pattern.

Both are in the order in which machines became idle. An arrival looks at the heads of the patterns
that may serve its class, not at every machine.
"""

from typing import Any

import numpy as np

from ..allocation.workspace import ANY, MOVED
from ..compiler.link import rare
from .central_state import State


def rejoin(s: State, j: int) -> None:
    """Put a machine that has become idle at the end of the lists."""
    c, o = s.count[0], s.server[j]
    o.idle = True
    o.since = c.order
    c.order += 1
    o.older, o.newer = c.newest, -1
    if c.newest >= 0:
        s.server[c.newest].newer = j
    else:
        c.oldest = j
    c.newest = j
    _list(s, j)


def leave(s: State, j: int) -> None:
    """Take a machine out of the lists."""
    c, o = s.count[0], s.server[j]
    o.idle = False
    if o.older >= 0:
        s.server[o.older].newer = o.newer
    else:
        c.oldest = o.newer
    if o.newer >= 0:
        s.server[o.newer].older = o.older
    else:
        c.newest = o.older
    _unlist(s, j)


@rare
def relist(s: State, planning: Any) -> None:
    """Find every machine's pattern after a new plan, and list the idle ones by pattern again.

    Few machines change theirs, and seldom is one new. So the lists are made again only then. The
    planner may have written down which machines moved; if not, all are looked at.
    """
    room = planning.room
    moved, room.news[MOVED] = room.news[MOVED], ANY
    is_known = moved >= 0 and s.count[0].patterns > 0
    for k in range(moved if is_known else len(s.pattern)):
        if not _relist(s, room.moved[k] if is_known else k):
            _relist_all(s)
            return


def _relist(s: State, j: int) -> bool:
    """Find a machine's pattern, and list it so if it is idle; tell whether the pattern is known."""
    c, bits = s.count[0], _bits(s, j)
    if c.patterns == 0 or bits != s.ends[s.pattern[j], 0]:
        k = _known(s, bits)
        if k == c.patterns:
            return False
        if s.server[j].idle:
            _move(s, j, k)
        s.pattern[j] = k
    return True


@rare
def _relist_all(s: State) -> None:
    c = s.count[0]
    c.patterns = 0
    k, before = 0, -1
    for j in range(len(s.pattern)):
        bits = _bits(s, j)
        if bits != before:  # a machine is often as the one before it
            k, before = _known(s, bits), bits
        if k == c.patterns:
            s.ends[k, 0], s.ends[k, 1], s.ends[k, 2] = bits, -1, -1
            c.patterns += 1
        s.pattern[j] = k
    j = c.oldest
    while j >= 0:
        _list(s, j)
        j = s.server[j].newer


def _bits(s: State, j: int) -> int:
    """Return the classes that a machine may serve, as bits."""
    bits = 0
    for i in range(len(s.classes)):
        if s.plan[i, j] > 0.0 and s.truth[i, j] > 0.0:
            bits |= 1 << i
    return bits


def _known(s: State, bits: int) -> int:
    """Return the number of a pattern; that of the next one if it is new."""
    k = 0
    while k < s.count[0].patterns and s.ends[k, 0] != bits:
        k += 1
    return k


def _move(s: State, j: int, k: int) -> None:
    """Put an idle machine into the list of another pattern, in the order of becoming idle."""
    o = s.server[j]
    _unlist(s, j)
    last = o.older
    while last >= 0 and s.pattern[last] != k:
        last = s.server[last].older
    o.prev = last
    if last >= 0:
        o.next = s.server[last].next
        s.server[last].next = j
    else:
        o.next = s.ends[k, 1]
        s.ends[k, 1] = j
    if o.next >= 0:
        s.server[o.next].prev = j
    else:
        s.ends[k, 2] = j


def longest_idle(s: State, i: int, asked: int) -> int:
    """Return the machine that may serve a class and has been idle longest, after one asked."""
    best, since = -1, np.iinfo(np.int64).max
    after = s.server[asked].since if asked >= 0 else -1
    for k in range(s.count[0].patterns):
        if (s.ends[k, 0] >> i) & 1:
            j = s.ends[k, 1]
            while j >= 0 and s.server[j].since <= after:
                j = s.server[j].next
            if j >= 0 and s.server[j].since < since:
                best, since = j, s.server[j].since
    return best


def fastest_idle(s: State, i: int, asked: int) -> int:
    """Return the idle machine that is fastest for a class, after one asked; of equals, longest.

    After a machine that took nothing, those that are as fast and as fit by the plan are passed
    over: with thousands of machines alike, all that wait for better ones would be asked at every
    arrival.
    """
    best, most, since = -1, -1.0, 0
    bound, after, unfit = np.inf, -1, -1.0
    if asked >= 0:
        bound, after = s.rate[i, asked], s.server[asked].since
        if s.server[asked].idle:
            unfit = s.plan[i, asked]
    for k in range(s.count[0].patterns):
        if (s.ends[k, 0] >> i) & 1:
            j = s.ends[k, 1]
            while j >= 0:
                rate, order = s.rate[i, j], s.server[j].since
                if (rate > most or (rate == most and order < since)) and (
                    rate < bound or (rate == bound and order > after and s.plan[i, j] != unfit)
                ):
                    best, most, since = j, rate, order
                j = s.server[j].next
    return best


def _list(s: State, j: int) -> None:
    """Put a machine at the end of its pattern's list."""
    o, k = s.server[j], s.pattern[j]
    last = s.ends[k, 2]
    o.prev, o.next = last, -1
    if last >= 0:
        s.server[last].next = j
    else:
        s.ends[k, 1] = j
    s.ends[k, 2] = j


def _unlist(s: State, j: int) -> None:
    """Take a machine out of its pattern's list."""
    o, k = s.server[j], s.pattern[j]
    if o.prev >= 0:
        s.server[o.prev].next = o.next
    else:
        s.ends[k, 1] = o.next
    if o.next >= 0:
        s.server[o.next].prev = o.prev
    else:
        s.ends[k, 2] = o.prev
