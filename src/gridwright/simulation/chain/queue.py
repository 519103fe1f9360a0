"""Queues of jobs with an application that is ready: skew heaps of tickets, one ticket a job."""

from .state import ChainState

__all__ = ["enqueue", "merged", "pop", "release", "take"]

ALLOCATES_NOTHING = True


def take(s: ChainState) -> int:
    """Take a free ticket; the loop has made sure that there is one."""
    c = s.count[0]
    job = c.free
    c.free = s.ticket[job].left
    c.spare -= 1
    s.ticket[job].left = s.ticket[job].right = -1
    s.ticket[job].active = True
    return job


def release(s: ChainState, job: int) -> None:
    """Give the ticket of a job that is done back."""
    c = s.count[0]
    s.ticket[job].active = False
    s.ticket[job].left = c.free
    c.free = job
    c.spare += 1


def enqueue(s: ChainState, queue: int, job: int) -> None:
    """Let a job join a queue, at the place that its key gives it."""
    s.root[queue] = merged(s, s.root[queue], job)


def pop(s: ChainState, queue: int) -> int:
    """Take the first job out of a queue that has one."""
    job = s.root[queue]
    s.root[queue] = merged(s, s.ticket[job].left, s.ticket[job].right)
    s.ticket[job].left = s.ticket[job].right = -1
    return job


def merged(s: ChainState, one: int, other: int) -> int:
    """Merge two heaps and return the first of all; the children are swapped on the way down."""
    first, last = -1, -1
    while one >= 0 and other >= 0:
        if s.ticket[other].key < s.ticket[one].key:
            one, other = other, one
        if last < 0:
            first = one
        else:
            s.ticket[last].left = one
        last = one
        one = s.ticket[last].right
        s.ticket[last].right = s.ticket[last].left
    rest = one if one >= 0 else other
    if last < 0:
        return rest
    s.ticket[last].left = rest
    return first
