"""What each machine did when: the attempts to run jobs, read from a journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .event import Entry
from .journal import Journal

BEGINS = ("started",)
ENDS = ("finished", "failed", "cancelled", "lost", "timed out", "late answer")
"""Events that end an attempt."""
GONE = ("down", "failure", "killed")
"""Events that end whatever runs on a machine."""
GOES_ON = ("wait",)
"""Reactions to a time-out after which the attempt continues."""


class Attempt(NamedTuple):
    """One attempt to run a job on a machine."""

    machine: str
    job: int
    task_class: str
    start: float
    end: float
    """Infinite if it runs still."""
    result: str
    """``running``, ``finished``, ``failed``, ``cancelled``, ``lost`` or ``timed out``."""


def attempts(journal: Journal, most: int | None = None) -> list[Attempt]:
    """Return the attempts in the order of their ends, those that run last.

    ``most`` limits the events that are read to the latest ones, so that a long journal is quick.
    """
    kinds = (*BEGINS, *ENDS, *GONE)
    recent = "" if most is None else f"rowid > (SELECT max(rowid) FROM event) - {int(most)} AND"
    words = f"WHERE {recent} kind IN ({', '.join('?' * len(kinds))}) ORDER BY rowid"
    entries = journal.entries(words, kinds)
    numbers = [each.job for each in entries if each.job is not None]
    rows = journal.select(
        "number, class, started, machine, stage FROM job "
        "WHERE number BETWEEN ? AND ? OR stage = 'sent'",
        (min(numbers, default=0), max(numbers, default=-1)),
    )
    found = list(_paired(entries, {number: (name, at) for number, name, at, *_ in rows}))
    if most is None:
        return found
    seen = {each.machine for each in found if each.result == "running"}
    found += [  # those that began before
        Attempt(machine, number, name, started, float("inf"), "running")
        for number, name, started, machine, stage in rows
        if stage == "sent" and started is not None and machine not in seen
    ]
    return found


def _paired(
    entries: Iterable[Entry], known: dict[int, tuple[str, float | None]]
) -> Iterable[Attempt]:
    """Pair the starts of attempts with their ends."""
    running: dict[str, Entry] = {}

    def ended(machine: str, at: float, result: str) -> Attempt:
        begun = running.pop(machine)
        job = begun.job or 0
        return Attempt(machine, job, known.get(job, ("",))[0], begun.time, at, result)

    for each in entries:
        machine = each.machine
        if machine is None:
            continue
        now = running.get(machine)
        if each.kind in BEGINS:
            if now is not None:
                yield ended(machine, each.time, "lost")
            running[machine] = each
        elif each.kind in GONE:
            if now is not None:
                yield ended(machine, each.time, "lost")
        elif each.fields.get("then") in GOES_ON:
            continue
        elif now is not None and (now.job, now.attempt) == (each.job, each.attempt):
            yield ended(
                machine, each.time, "cancelled" if each.kind == "late answer" else each.kind
            )
        elif now is None and each.kind == "finished" and each.job in known:
            name, started = known[each.job]  # it began before the events that were read
            if started is not None:
                yield Attempt(machine, each.job, name, started, each.time, each.kind)
    for machine in list(running):
        yield ended(machine, float("inf"), "running")
