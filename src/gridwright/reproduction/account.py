"""Count agreement by reading: how many cells each hypothesis explains, and how many it spoils."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .verdict import Verdict, tally

PRIMARY = "as stated"
"""The name of the primary reading: system and policy as the source states them."""
JUDGED = (Verdict.agrees, Verdict.differs, Verdict.errata)


class Judged(NamedTuple):
    """A verdict on a printed cell under a reading."""

    source: str
    reading: str
    """Empty for the primary one."""
    verdict: str
    primary: str
    """The verdict of the same printed cell in the primary reading; empty if it is not known."""


class Account(NamedTuple):
    """The cells of a source under one reading; cells that it does not concern count as stated."""

    source: str
    reading: str
    cells: int
    """How many cells the reading concerns."""
    agree: int
    differ: int
    errata: int
    explained: int
    """Cells that agree in this reading and differ in the primary one."""
    spoiled: int
    """Cells that agree in the primary reading and not in this one."""

    @property
    def judged(self) -> int:
        """How many cells of the source have a verdict."""
        return self.agree + self.differ + self.errata

    def as_json(self) -> dict[str, Any]:
        """Return the account as ``--json`` prints it."""
        return self._asdict()


def by_reading(cells: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """Count the verdicts of every reading, the primary one first.

    >>> by_reading([Judged("K", "as run", "agrees", "differs")])["as run"]["agrees"]
    1
    """
    found: dict[str, list[str]] = {}
    for cell in cells:
        found.setdefault(cell.reading or PRIMARY, []).append(cell.verdict)
    names = sorted(found, key=lambda name: name != PRIMARY)
    return {name: tally(found[name]) for name in names}


def accounts(cells: Iterable[Judged]) -> list[Account]:
    """Return an account for every source and each of its readings, the primary one first.

    >>> cells = [Judged("K", "", "differs", ""), Judged("K", "as run", "agrees", "differs")]
    >>> [(each.reading, each.agree, each.explained) for each in accounts(cells)]
    [('as stated', 0, 0), ('as run', 1, 1)]
    """
    known = list(cells)
    found = []
    for source in dict.fromkeys(cell.source for cell in known):
        own = [cell for cell in known if cell.source == source]
        stated = tally(cell.verdict for cell in own if not cell.reading)
        if not any(stated[verdict] for verdict in JUDGED):
            continue
        found.append(_account(source, PRIMARY, stated, []))
        for reading in dict.fromkeys(cell.reading for cell in own if cell.reading):
            paired = [cell for cell in own if cell.reading == reading and cell.primary in JUDGED]
            if paired:
                found.append(_account(source, reading, stated, paired))
    return found


def _account(source: str, reading: str, stated: dict[str, int], paired: list[Judged]) -> Account:
    before = tally(cell.primary for cell in paired)
    after = tally(cell.verdict for cell in paired)
    agree, differ, errata = (stated[each] + after[each] - before[each] for each in JUDGED)
    concerns = len(paired) if paired else agree + differ + errata
    agrees = [(cell.primary == Verdict.agrees, cell.verdict == Verdict.agrees) for cell in paired]
    explained, spoiled = agrees.count((False, True)), agrees.count((True, False))
    return Account(source, reading, concerns, agree, differ, errata, explained, spoiled)


def adopted(found: Iterable[Account], readings: Mapping[str, Sequence[str]]) -> list[Account]:
    """Return each source's account with all its adopted readings, which share no cell.

    >>> stated = Account("K", "as stated", 9, 4, 5, 0, 0, 0)
    >>> (both,) = adopted([stated, Account("K", "as run", 5, 6, 3, 0, 3, 1)], {"K": ["as run"]})
    >>> both.reading, both.agree, both.differ
    ('as run', 6, 3)
    """
    chosen: dict[str, Account] = {}
    for each in found:
        if each.reading == PRIMARY:
            stated = chosen[each.source] = each
        elif each.reading in readings.get(each.source, ()):
            before = chosen[each.source]
            first = before.reading == PRIMARY
            chosen[each.source] = Account(
                each.source,
                each.reading if first else f"{before.reading} and {each.reading}",
                each.cells if first else before.cells + each.cells,
                *(b + e - s for b, e, s in zip(before[3:], each[3:], stated[3:], strict=True)),
            )
    return list(chosen.values())


def with_adopted(
    found: Sequence[Account], readings: Mapping[str, Sequence[str]], fitted: Sequence[str] = ()
) -> str:
    """Say how many cells agree with the adopted readings; empty if none of them was tried.

    ``fitted`` names the sources whose adopted reading was fitted.

    >>> stated = Account("W", "as stated", 9, 4, 5, 0, 0, 0)
    >>> tried = [stated, Account("W", "calibrated", 9, 8, 1, 0, 4, 0)]
    >>> with_adopted(tried, {"W": ["calibrated"]}, ["W"])
    'W: calibrated; else as stated: 8 of 9 cells agree (without what is fitted, W: 4)'
    """
    chosen = adopted(found, readings)
    words = [f"{each.source}: {each.reading}" for each in chosen if each.reading != PRIMARY]
    if not words:
        return ""
    agree, cells = (sum(getattr(e, key) for e in chosen) for key in ("agree", "judged"))
    text = f"{'; '.join(words)}; else {PRIMARY}: {agree:,} of {cells:,} cells agree"
    stated = {each.source: each.agree for each in found if each.reading == PRIMARY}
    made = [each for each in chosen if each.reading != PRIMARY and each.source in fitted]
    if made:
        less = agree - sum(each.agree - stated[each.source] for each in made)
        text += f" (without what is fitted, {' and '.join(e.source for e in made)}: {less:,})"
    return text
