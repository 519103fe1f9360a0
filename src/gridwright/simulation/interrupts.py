"""Why a loop returns to Python, and what it left to be done."""

__all__ = [
    "ASK",
    "DRAWS",
    "HELD",
    "MAKE_PLAN",
    "NOTHING",
    "PLAN",
    "POOL",
    "SLICE",
    "TRACE",
]

SLICE, POOL, DRAWS, TRACE, PLAN, HELD = range(6)
"""The slice is over; no room for another task; draws of a user's own distribution are needed; no
room in the trace; a plan is needed that only Python can make; a policy of the push loop held a
task back, which needs the loop with an event list."""

NOTHING, MAKE_PLAN, ASK = range(3)
"""What is pending: nothing; a new plan; the machines that are idle must ask again."""
