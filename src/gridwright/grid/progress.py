"""Show how far a grid is: its state in words, a bar, and a live screen."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

INTERVAL = 0.25
"""Seconds between two looks at a grid."""
MACHINE = "GRIDWRIGHT_MACHINE"
"""The environment variable with the name of the machine, in the processes that run jobs."""


def here() -> str | None:
    """Return the name of the machine that runs this job; None outside of a job."""
    return os.environ.get(MACHINE)


class Status(dict[str, Any]):
    """The state of a grid as a table; as a text, in words."""

    @property
    def waiting(self) -> int:
        """The jobs that wait for a machine, or in the queue of one."""
        queued = sum(each["queued"] for each in self["machines"].values())
        return int(queued + sum(each["waiting"] for each in self["classes"].values()))

    @property
    def running(self) -> int:
        """The jobs that run."""
        return sum(each["running"] is not None for each in self["machines"].values())

    @property
    def slots(self) -> dict[str, list[dict[str, Any]]]:
        """The slots of each machine."""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self["machines"].values():
            found.setdefault(each["host"], []).append(each)
        return found

    @property
    def done(self) -> int:
        """The jobs that have ended since the grid was opened."""
        return sum(self["ended"].values())

    def __str__(self) -> str:
        machines, ended = self["machines"], self["ended"].items()
        up, hosts = sum(each["up"] for each in machines.values()), len(self.slots)
        has_slots = len(machines) > hosts
        what = f"slots of {hosts} machine{'s' * (hosts > 1)}" if has_slots else "machines"
        words = [
            f"{self.running} running, {self.waiting} waiting, {self['blocked']} waiting for others",
            ", ".join(f"{number} {stage}" for stage, number in ended),
            f"{up} of {len(machines)} {what} up, policy {self['policy']}",
        ]
        troubles = {"deaths": "processes died", "timed_out": "time-outs", "retried": "retries"}
        troubles["given_up"] = "given up"
        words += [f"{self[name]} {what}" for name, what in troubles.items() if self.get(name)]
        deadlines = self.get("deadlines", {})  # a grid of an earlier version does not say
        if any(deadlines.values()):
            each = ", ".join(f"{number} {word}" for word, number in deadlines.items())
            words += [f"of those with a deadline: {each}"]
        words += [f"stopped: {self['broken']}"] if self["broken"] else []
        words += [self["held_up"]] if self["held_up"] else []
        return "\n".join(words)


def table_of(status: Status) -> Any:
    """Return the state of a grid as a table of its machines and classes for a terminal.

    A machine with several slots is one row.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    machines = Table("machine", "state", "running", "queued", box=None)
    for name, slots in status.slots.items():
        states = Counter(
            "down" if not each["up"] else "paused" if each["paused"] else "up" for each in slots
        )
        jobs = [each["running"] for each in slots if each["running"] is not None]
        state, running = ", ".join(states), f"job {jobs[0]}" if jobs else ""
        if len(slots) > 1:
            state = ", ".join(f"{number} {word}" for word, number in states.items())
            running = f"{len(jobs)} of {len(slots)} slots"
        machines.add_row(Text(name), state, running, str(sum(each["queued"] for each in slots)))
    classes = Table("class", "waiting", "arrived", "machines that can run it", box=None)
    for name, each in status["classes"].items():
        row = (each["waiting"], each["arrived"], each["machines"])
        classes.add_row(Text(name), *map(str, row))
    return Group(Text(str(status)), "", machines, "", classes)


def show_progress(status: Callable[[], Status], is_done: Callable[[], bool], file: Any) -> None:
    """Show a bar until all jobs have ended: done, running and waiting jobs, rate, time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    began, first = monotonic(), status()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=Console(file=file, stderr=file is None), transient=False
    ) as bar:
        task = bar.add_task("", total=None)
        while True:
            over, now = is_done(), status()
            done = now.done - first.done
            left = now.running + now.waiting + now["blocked"]
            rate = done / max(monotonic() - began, 1e-9)
            waits = [f"{k} {v['waiting']}" for k, v in now["classes"].items() if v["waiting"]]
            shown = f" ({', '.join(waits[:3])}{', …' if len(waits) > 3 else ''})" if waits else ""
            time_left = f", {left / rate:.0f} s left" if rate > 0 and left else ""
            words = f"{now.running} running, {now.waiting} waiting{shown}, {rate:.1f}/s{time_left}"
            bar.update(task, completed=done, total=done + left, description=words)
            if over:
                return
            sleep(INTERVAL)
