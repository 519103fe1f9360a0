"""Run a grid for minutes while its processes are killed and stopped, and check what came of it.

    python tools/soak.py [--minutes 10] [--jobs 10000] [--executor local|dask] [--service]
                          [--seed 1] [--json]
    python tools/soak.py --night [--hours 8] [--seed 1] [--json]

A client program runs a grid on one journal and submits jobs. Some jobs kill their process, never
end, fork, write garbage to their worker's socket, return or raise something huge, or are slow to
unpickle. This program kills and stops workers, the client, and the scheduler at random, and starts
the client again, with another time-out action each time. At the end it checks that

- every job whose submission was acknowledged has ended exactly once, as its kind should end;
- no job ran more often than the journal knows;
- innocent jobs never waited long for others;
- no process is left.

With --service the grid is served, and three clients submit jobs with keys: a client that is killed
is started again and asks for its keys, and the service is started again on its journal. Then it
checks that every key has exactly one job, which has ended exactly once, and that each client was
told of each of its keys once, and rightly.

With --night it runs nothing for real: it lets nights of eight hours pass in virtual time, one for
each time-out action with a policy that pulls and one with a policy that pushes, with machines and
jobs that fail in every way at once, and checks that the journal, the futures and the status agree.

It prints the account and exits with status 1 if anything was wrong.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from soak_grid import Soak, client, processes
from soak_night import NIGHTS, night, show_nights
from soak_service import ServedSoak, client_of_service

STALL = 30.0
"""Seconds in which one of the innocent jobs that wait must end, while the grid is running."""


def report(soak: Soak) -> dict[str, Any]:
    """Return the account of a soak, and everything that was wrong."""
    found = soak.account()
    left = still_there(soak.mark)
    wrong = [*soak.wrong, *found.wrong]
    if found.longest_stall > STALL:
        wrong.append(f"no innocent job ended for {found.longest_stall:.1f} s, while some waited")
    wrong += [f"process {pid} is left: {command}" for pid, command in left]
    return {
        "seconds": round(time.time() - soak.begin, 1),
        "executor": soak.options.executor,
        "service": soak.options.service,
        "kinds": found.table,
        "done": dict(soak.done),
        "longest_stall": round(found.longest_stall, 2),
        "processes_left": len(left),
        "wrong": wrong,
    }


def still_there(mark: str) -> list[tuple[int, str]]:
    """Return the processes that do not go away."""
    end = time.time() + 10
    while (found := list(processes(mark))) and time.time() < end:
        time.sleep(0.1)
    return found


def show(found: dict[str, Any]) -> None:
    """Print an account as a table."""
    first = ["keys", "answers"] if found["service"] else ["acknowledged"]
    columns = [*first, "finished", "failed", "cancelled", "attempts", "runs"]
    print(f"{'kind':18}" + "".join(f"{column:>14}" for column in columns))
    for kind, row in found["kinds"].items():
        print(f"{kind:18}" + "".join(f"{row.get(column, 0):14,}" for column in columns))
    totals = {
        column: sum(row.get(column, 0) for row in found["kinds"].values()) for column in columns
    }
    print(f"{'all':18}" + "".join(f"{total:14,}" for total in totals.values()))
    print(f"\n{found['executor']}, {found['seconds']:g} s: ", end="")
    print(", ".join(f"{what} {count}×" for what, count in sorted(found["done"].items())))
    print(f"longest time in which no innocent job ended: {found['longest_stall']:g} s")
    print(f"processes left: {found['processes_left']}")
    for line in found["wrong"]:
        print(f"WRONG: {line}")


def main() -> int:
    """Run a soak, or its client."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of disturbances")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--executor", choices=("local", "dask"), default="local")
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--policy", default="pas_dg")
    parser.add_argument("--life", type=float, default=15.0, help="mean seconds of a client's life")
    parser.add_argument("--harm", type=float, default=0.6, help="mean seconds between harms")
    parser.add_argument("--longest", type=float, default=0.03, help="seconds of a quick job")
    parser.add_argument("--service", action="store_true", help="serve the grid to three clients")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    for name, kind in (("folder", str), ("action", str), ("address", str)):
        parser.add_argument(f"--{name}", type=kind, default="", help=argparse.SUPPRESS)
    for name in ("begin", "pace"):
        parser.add_argument(f"--{name}", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--client", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--night", action="store_true", help="run in virtual time")
    parser.add_argument("--hours", type=float, default=8.0, help="of a night")
    options = parser.parse_args()
    if options.night:
        nights = [night(options.hours, *each, options.seed) for each in NIGHTS]
        print(json.dumps(nights, indent=2)) if options.json else show_nights(nights)
        return 1 if any(each["wrong"] for each in nights) else 0
    if options.action or options.client >= 0:
        client(options) if options.action else client_of_service(options)
        return 0
    # A shell ignores it for what runs in the background, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gridwright-soak-") as folder:
        os.environ["GRIDWRIGHT_HOME"] = folder
        soak = (ServedSoak if options.service else Soak)(options, Path(folder))
        soak.run()
        found = report(soak)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
