"""Watch and control a grid from another process, through its journal."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..model import GridClosedError, GridTimeoutError, InputError
from .event import FIELDS, UNUSUAL
from .journal import Journal
from .ownership import home, signed

CHANGES = ("up", "down", "killed", "started again", "paused", "resumed", "timed out")
"""Events that may change the state of a machine."""
KEPT = ("wait", "fail", "stopped")
"""Reactions to a time-out after which the machine of the job stays up."""


class MachineState(NamedTuple):
    """The state of a machine, read from the journal."""

    name: str
    state: str
    """``not yet up``, ``up``, ``paused``, ``down`` or ``killed``."""
    since: float
    """Time units since the grid began."""
    running: int | None
    finished: int
    lost: int
    """Jobs that were running when it went down."""
    measured: float | None
    """Its CPU availability at the last measurement, if there was one."""
    predicted: float | None
    """The availability that was predicted then."""
    paused: bool = False
    """Whether an operator paused it; also a machine that is down or killed may be paused."""

    @property
    def words(self) -> str:
        """The state in words: a machine may be down and paused."""
        return f"{self.state}, paused" if self.paused and self.state != "paused" else self.state


def find_running(which: str | None = None) -> list[Journal]:
    """Open the journals of the grids that are running: one by number or path, or all."""
    if which is None:
        here = [path for name in ("runs", "grids") for path in (home() / name).glob("*.sqlite")]
        paths = sorted({path.resolve(): path for path in [*signed(), *here]}.values())
    elif which.isdigit():
        paths = [home() / "runs" / f"{which}.sqlite"]
        if not paths[0].is_file():
            raise InputError(f"there is no run {which}; 'gridwright runs' lists those that are")
    else:
        served = home() / "grids" / f"{which}.sqlite"
        paths = [served if "/" not in which and served.is_file() else Path(which)]
    found = []
    for path in paths:
        try:
            journal = Journal(path, new=False)
        except InputError:
            if which is not None:
                raise
            continue
        if journal.is_claimed():
            found.append(journal)
        else:
            journal.close()
    return found


def machine_states(journal: Journal) -> list[MachineState]:
    """Return the state of each machine of a journal."""
    names = list(journal.told("machines").get("machines", ()))
    states: dict[str, tuple[str, bool, float]] = {}
    for entry in journal.events(*CHANGES):
        late = entry.kind == "timed out"
        if entry.machine is None or (late and entry.fields.get("then") in KEPT):
            continue
        before = states.get(entry.machine, ("not yet up", False, 0.0))
        now = _after("down" if late else entry.kind, *before[:2])
        if now != before[:2]:
            states[entry.machine] = (*now, entry.time)
    names += [name for name in states if name not in names]
    counted = "machine, {} FROM job WHERE stage = ? GROUP BY machine"
    running = dict(journal.select(counted.format("min(number)"), ("sent",)))
    finished = dict(journal.select(counted.format("count(*)"), ("finished",)))
    same = f"FROM event WHERE kind = ? AND {UNUSUAL} GROUP BY machine"
    losses = dict(journal.select(f"machine, count(*) {same}", ("lost",)))
    readings = {
        each.machine: [each.fields[name] for name in FIELDS["availability"]]
        for each in journal.entries(f"WHERE rowid IN (SELECT max(rowid) {same})", ("availability",))
    }
    found = []
    for name in names:
        state, paused, since = states.get(name, ("not yet up", False, 0.0))
        counts = running.get(name), finished.get(name, 0), losses.get(name, 0)
        measured, predicted = readings.get(name, (None, None))
        shown = "paused" if paused and state == "up" else state
        found.append(MachineState(name, shown, since, *counts, measured, predicted, paused))
    return found


def _after(kind: str, state: str, paused: bool) -> tuple[str, bool]:
    """Return whether a machine is up, and whether it is paused, after an event."""
    if kind in ("paused", "resumed"):
        paused = kind == "paused"
    if kind in ("up", "killed"):
        state = kind
    elif kind in ("started again", "resumed") and state == "killed":
        state = "down"  # until it is up
    elif kind == "down" and state != "killed":
        state = kind
    return state, paused


Spans = dict[str, list[tuple[float, float]]]
"""Times of machines, as (from, to); to is infinite for what lasts still."""


class Interruptions(NamedTuple):
    """When machines were not at work as usual, and why."""

    failed: Spans
    """When they were away after a failure."""
    taken: Spans
    """When they were away because an operator killed them, or took them away for some time."""
    paused: Spans
    """When operators gave them no jobs; they may also have been away."""
    slowed: Spans
    """When operators gave them a share of their CPU."""


def interruptions(journal: Journal) -> Interruptions:
    """Return when machines failed, and when operators took them away, paused and slowed them."""
    never = float("inf")
    away: dict[str, list[tuple[float, float, bool]]] = {}
    for entry in journal.events("down", "failure", "killed", "up"):
        spans = away.setdefault(entry.machine or "", [])
        is_away = bool(spans) and spans[-1][1] == never
        is_taken = entry.kind == "killed" or "period" in entry.fields
        if is_away and (entry.kind == "up" or (is_taken and not spans[-1][2])):
            spans[-1] = (spans[-1][0], entry.time, spans[-1][2])
            is_away = False
        if entry.kind != "up" and not is_away:
            spans.append((entry.time, never, is_taken))
    failed, taken = (
        {
            name: [(start, end) for start, end, by_operator in spans if by_operator is wanted]
            for name, spans in away.items()
        }
        for wanted in (False, True)
    )
    paused = _between(journal, "paused", "resumed")
    slowed = _between(journal, "availability imposed", "availability free")
    return Interruptions(failed, taken, paused, slowed)


def _between(journal: Journal, begins: str, ends: str) -> Spans:
    """Return the times of each machine from events of one kind to those of another."""
    found: Spans = {}
    since: dict[str, float] = {}
    for entry in journal.events(begins, ends):
        machine = entry.machine or ""
        if entry.kind == begins:
            since.setdefault(machine, entry.time)
        elif machine in since:
            found.setdefault(machine, []).append((since.pop(machine), entry.time))
    for machine, start in since.items():
        found.setdefault(machine, []).append((start, float("inf")))
    return found


def request(
    journal: Journal, verb: str, machine: str, value: str = "", patience: float = 10.0
) -> str:
    """Send a request to the grid that writes a journal; wait for its answer and return it."""
    (answer,) = _answers(journal, verb, [machine], value, patience)
    if answer is None:
        raise GridTimeoutError(f"the grid did not answer within {patience:g} seconds")
    for start, kind in (("error: ", InputError), ("timeout: ", GridTimeoutError)):
        if answer.startswith(start):
            raise kind(answer.removeprefix(start))
    return answer


def request_all(
    journal: Journal, verb: str, machines: Sequence[str], value: str = "", patience: float = 10.0
) -> dict[str, str]:
    """Send the same request for several machines at once; return the answer of each.

    What went wrong with a machine is an answer that begins with ``error:``.
    """
    late = f"error: no answer within {patience:g} seconds"
    answers = _answers(journal, verb, machines, value, patience)
    return {
        machine: late if answer is None else re.sub("^timeout: ", "error: ", answer)
        for machine, answer in zip(machines, answers, strict=True)
    }


def _answers(
    journal: Journal, verb: str, machines: Sequence[str], value: str, patience: float
) -> list[str | None]:
    """Send requests, and wait for their answers; None for those that take too long."""
    if not journal.is_claimed():
        raise GridClosedError("the grid is not running")
    numbers = [journal.ask(verb, machine, value) for machine in machines]
    began = time.monotonic()
    while None in (answers := [journal.answered(number) for number in numbers]):
        if not journal.is_claimed():
            raise GridClosedError("the grid ended before it answered")
        if time.monotonic() - began > patience:
            break
        time.sleep(0.05)
    return answers
