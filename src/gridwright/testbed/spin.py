"""A job that keeps a CPU busy: a loop, so many times.

It stands alone and imports nothing of the package: a machine that runs it need not have any of it.
"""

import sys

__all__ = ["carry_along", "spin"]


def spin(iterations: int) -> int:
    """Go round a loop, so many times; each takes some microseconds.

    >>> spin(0), spin(3)
    (1, 1640530793)
    """
    state = 1
    for _ in range(iterations):
        for _ in range(
            200
        ):  # so that a whole number of iterations is never far from the time meant
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state  # every step needs the one before: nothing can be left out


def carry_along() -> None:
    """Have the loop travel with its calls, in place of its name, from now on."""
    try:
        import cloudpickle
    except ImportError:
        return  # nothing travels without it, and a grid says so
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
