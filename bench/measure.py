"""How a time is taken: the best of several runs, each long enough to be measured."""

from collections.abc import Callable
from time import perf_counter

__all__ = ["best_time"]


def best_time(call: Callable[[], object], repeats: int = 5, at_least: float = 0.02) -> float:
    """Return the seconds that a call takes, the best of several runs."""
    call()
    times = []
    for _ in range(repeats):
        calls, start = 0, perf_counter()
        while (spent := perf_counter() - start) < at_least or calls == 0:
            call()
            calls += 1
        times.append(spent / calls)
    return min(times)
