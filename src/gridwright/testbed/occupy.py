"""Occupies a share of one processor. Run as a script, and in need of nothing, to start at once.

It reads from its standard input the share to occupy, and ends when that is closed: with whoever
started it, in whatever way that one ends.
"""

import os
import select
import sys
import time

CYCLE = 0.02
"""Seconds of work and rest in turn: short enough for others to see a slower machine, not pauses."""

CATCH_UP = 0.2
"""CPU seconds of arrears that are made good; more would show as a burst later on."""


def main() -> None:
    """Occupy the processor whose number is the second argument, under the name of the first."""
    name, core = sys.argv[1], int(sys.argv[2])
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(name)
        os.sched_setaffinity(0, {core})
    except (OSError, AttributeError):  # not here; it works without
        pass
    share, began, used = 0.0, time.monotonic(), time.process_time()
    orders = select.poll()
    orders.register(0, select.POLLIN)
    while True:
        cycle = time.monotonic()
        # What is owed until the cycle's end, less what was used: arrears and excess even out.
        owed = share * (cycle + CYCLE - began) - (time.process_time() - used)
        if owed > CATCH_UP:
            used -= owed - CATCH_UP
        end = time.process_time() + min(owed, CYCLE)
        while time.process_time() < end:
            pass
        rest = cycle + CYCLE - time.monotonic() if share else 3600.0
        if orders.poll(max(1000 * rest, 0)):
            said = os.read(0, 1000).split()
            if not said:
                return
            share, began, used = float(said[-1]), time.monotonic(), time.process_time()


if __name__ == "__main__":
    main()
