"""Which machine has the next event: a tournament among them, replayed where a time changes."""

from .state import State

__all__ = ["settle"]

ALLOCATES_NOTHING = True


def settle(s: State, j: int) -> None:
    """Replay the tournament after one of a machine's times has changed."""
    o = s.server[j]
    t = o.finish
    if o.fault < t:
        t = o.fault
    if o.shift < t:
        t = o.shift
    s.due[j] = t
    k = (len(s.due) + j) >> 1
    while k > 0:
        left, right = s.tree[2 * k], s.tree[2 * k + 1]
        winner = left if s.due[left] <= s.due[right] else right
        if winner == s.tree[k] and winner != j:
            return  # nothing changes further up
        s.tree[k] = winner
        k >>= 1
