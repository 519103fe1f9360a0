"""What the page of a run shows at a glance, read from its journal."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..grid import Interruptions, MachineState, Queues, interruptions, latest_events, queues
from ..grid.event import UNUSUAL
from ..grid.journal import Journal
from ..grid.timeline import Attempt, attempts
from ..model import Floats, System
from .runs import machines_of
from .sentences import sentence

WINDOW = 120.0
"""Seconds that the strip of the last minutes shows at most."""
MOST_EVENTS = 6000
"""Events that are read for the strip, so that busy runs with many machines have a shorter one."""
FAILED, TAKEN, PAUSED, SLOWED = -1, -2, -3, -4
"""Kinds of spans that are not jobs, in the order of `Interruptions`."""


class Span(NamedTuple):
    """A stretch of time on a machine; numbers instead of names, because there are many."""

    machine: int
    start: float
    end: float
    kind: int
    """The number of the class of the job, or `FAILED`, `TAKEN`, `PAUSED` or `SLOWED`."""
    lost: bool = False
    """Whether the job did not finish here."""


class Tile(NamedTuple):
    """A machine at a glance."""

    name: str
    state: str
    """One of `STATES`."""
    since: float
    """When it came into this state; when its job began, or when the last one ended."""
    job: int | None
    task_class: str
    """The class of the job that runs."""
    finished: int
    lost: int
    utilisation: float
    """The share of the strip's time that it ran jobs."""
    rate_class: str
    """The class that it ran most, whose rates these are."""
    learnt: float | None
    """The rate that the grid assumes now, or was measured."""
    stated: float | None
    measured: float | None
    """Its CPU availability."""
    predicted: float | None
    paused: bool = False
    """Whether an operator paused it; also a machine that is down may be paused."""
    pace: str = ""
    """``faster`` or ``slower`` if the rate is further from the stated one than chance explains."""

    @property
    def words(self) -> str:
        """The state in words: a machine may be down and paused."""
        says_so = self.state in ("paused", "finishing")
        return f"{self.state}, paused" if self.paused and not says_so else self.state


STATES = ("busy", "idle", "finishing", "paused", "down", "killed", "starting", "off")


class Dashboard(NamedTuple):
    """A run at a glance."""

    tiles: list[Tile]
    since: float
    """When the strip begins."""
    now: float
    spans: list[Span]
    queues: Queues
    events: list[str]


class Watcher:
    """Reads what a page shows; what never changes in a run is read once."""

    def __init__(self) -> None:
        self.system: System | None = None
        self.unit = 1.0
        self.about = ""
        """What the events are about that are listed: jobs, machines, operators, or all."""

    def look(self, journal: Journal) -> Dashboard:
        """Read how a run stands."""
        if self.system is None:
            about = journal.told("experiment", "unit")
            self.system, self.unit = System(**about["experiment"]["system"]), float(about["unit"])
        states, now = machines_of(journal), journal.last()
        ran = attempts(journal, MOST_EVENTS)
        if not journal.is_claimed():
            ran = [each for each in ran if each.result != "running"]
        since = max(now - WINDOW / self.unit, _whole_from(journal, ran), 0.0)
        names = [each.name for each in states]
        spans = spans_of(ran, names, self.system.classes, since, now)
        spans += interrupted_spans(interruptions(journal), names, since, now)
        learnt = self._learnt(journal)
        tiles = tiles_of(states, ran, since, now, self.system, learnt)
        return Dashboard(tiles, since, now, spans, queues(journal), self.list_events(journal))

    def list_events(self, journal: Journal) -> list[str]:
        """Return the latest events that are wanted, as sentences, the latest first."""
        return [sentence(each) for each in latest_events(journal, self.about)]

    def _learnt(self, journal: Journal) -> Floats | None:
        """Return the rates [class, machine] that the grid assumes, if it has learnt any."""
        latest = f"WHERE kind = 'rates' AND {UNUSUAL} ORDER BY +rowid DESC LIMIT 1"
        for entry in journal.entries(latest):
            return np.array(entry.fields["rates"], dtype=float)
        return None


def _whole_from(journal: Journal, ran: Sequence[Attempt]) -> float:
    """Return from when on the attempts that were read are all that there were."""
    ended = [each.end for each in ran if each.result != "running"]
    number = journal.select("max(rowid) FROM event")[0][0] or 0
    return min(ended, default=0.0) if number > MOST_EVENTS else 0.0


def spans_of(
    ran: Iterable[Attempt],
    machines: Sequence[str],
    classes: Sequence[str],
    since: float,
    now: float,
) -> list[Span]:
    """Return when jobs ran on machines between two times."""
    rows, kinds = _numbers(machines), _numbers(classes)
    return [
        Span(
            rows[each.machine],
            round(max(each.start, since), 4),
            round(min(each.end, now), 4),
            kinds.get(each.task_class, 0),
            each.result not in ("finished", "running"),
        )
        for each in ran
        if each.machine in rows and each.end > since and each.start < now
    ]


def interrupted_spans(
    seen: Interruptions, machines: Sequence[str], since: float, now: float
) -> list[Span]:
    """Return when machines had failed or were in the hands of operators between two times."""
    rows, found = _numbers(machines), []
    for kind, times in zip((FAILED, TAKEN, PAUSED, SLOWED), seen, strict=True):
        for name, spans in times.items():
            found += [
                Span(rows[name], round(max(start, since), 4), round(min(end, now), 4), kind)
                for start, end in spans
                if name in rows and end > since and start < now
            ]
    return found


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def tiles_of(
    states: Sequence[MachineState],
    ran: Sequence[Attempt],
    since: float,
    now: float,
    system: System,
    learnt: Floats | None = None,
) -> list[Tile]:
    """Return a tile for each machine; ``ran`` is what ran on them since a time."""
    running: dict[str, Attempt] = {}
    idle: dict[str, float] = {}
    worked: dict[str, float] = {state.name: 0.0 for state in states}
    often: dict[str, Counter[str]] = {}
    spent: dict[tuple[str, str], list[float]] = {}
    for each in ran:
        time = max(min(each.end, now) - max(each.start, since), 0.0)
        worked[each.machine] = worked.get(each.machine, 0.0) + time
        often.setdefault(each.machine, Counter())[each.task_class] += 1
        if each.result == "running":
            running[each.machine] = each
        else:
            idle[each.machine] = max(each.end, idle.get(each.machine, 0.0))
        if each.result == "finished":
            spent.setdefault((each.machine, each.task_class), []).append(each.end - each.start)
    kinds = _numbers(system.classes)
    tiles = []
    for number, state in enumerate(states):
        own = running.get(state.name)
        name = next(iter(often.get(state.name, Counter()).most_common(1)), ("", 0))[0]
        said, found, times = None, None, list[float]()
        if name in kinds and number < system.nominal.shape[1]:
            where = kinds[name], number
            said = float((system.effective if learnt is None else system.nominal)[where])
            times = spent.get((state.name, name), [])
            if learnt is not None and learnt.shape == system.nominal.shape:
                found = float(learnt[where])
            elif sum(times) > 0:
                found = len(times) / sum(times)
        tiles.append(
            Tile(
                state.name,
                _state(state),
                round(_since(state, own, idle.get(state.name, 0.0)), 2),
                state.running,
                own.task_class if own is not None and own.job == state.running else "",
                state.finished,
                state.lost,
                round(worked[state.name] / (now - since), 3) if now > since else 0.0,
                name,
                _rounded(found),
                _rounded(said),
                _rounded(state.measured),
                _rounded(state.predicted),
                state.paused,
                _pace(found, said, len(times)),
            )
        )
    return tiles


def _state(machine: MachineState) -> str:
    names = {"not yet up": "starting"}
    if machine.state == "up":
        return "idle" if machine.running is None else "busy"
    if machine.state == "paused" and machine.running is not None:
        return "finishing"
    return names.get(machine.state, machine.state)


def _since(machine: MachineState, job: Attempt | None, idle: float) -> float:
    """Return when a machine came into the state that its tile shows."""
    if machine.state != "up":
        return machine.since
    is_known = job is not None and job.job == machine.running
    return max(machine.since, job.start if is_known and job is not None else idle)


FAR = 0.1
"""The least distance of a rate from the stated one that is worth a word, as a share."""
ENOUGH = 30
"""Jobs after which a rate may be called faster or slower than the stated one."""


def _pace(found: float | None, said: float | None, jobs: int) -> str:
    """Say whether a rate is far from the stated one.

    The mean of exponential times of so many jobs is seldom off by three standard errors.

    >>> _pace(1.5, 1.0, 100), _pace(9.0, 1.0, 9), _pace(0.8, 1.0, 10_000)
    ('faster', '', 'slower')
    """
    if not found or not said or jobs < ENOUGH:
        return ""
    if abs(found / said - 1) <= FAR or abs(said / found - 1) <= 3 / jobs**0.5:
        return ""
    return "slower" if found < said else "faster"


def _rounded(value: Any) -> float | None:
    return None if value is None else float(f"{value:.3g}")
