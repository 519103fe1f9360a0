"""Why a loop returns to Python, and what it left to be done."""

SLICE, POOL, DRAWS, TRACE, PLAN, HELD, ASKED = range(7)
"""Reasons: the slice is over; there is no room for another task; draws of a user's own distribution
are needed; the page of the event log is full; Python must make a plan; the policy held a task back,
which needs the loop with an event list; a loop that stops at decisions needs one."""

NOTHING, MAKE_PLAN, ASK = range(3)
"""What is pending: nothing; a new plan; idle machines must ask again."""
