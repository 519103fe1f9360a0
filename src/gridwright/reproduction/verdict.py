"""Whether a printed number agrees with ours: computed, never typed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import isnan
from typing import NamedTuple

from ..catalogue import Remark
from ..statistics import Estimate

__all__ = ["Judgement", "Range", "Verdict", "counted", "judge", "judge_stability", "tally"]


class Verdict(StrEnum):
    """What a comparison with a printed cell came to."""

    agrees = "agrees"
    differs = "differs"
    errata = "errata"
    not_printed = "not printed"
    undecided = "undecided"
    not_run = "not run"


def tally(verdicts: Iterable[str]) -> dict[str, int]:
    """Count the cells by verdict; undecided ones are named where there are any.

    >>> tally(["agrees", "agrees"])
    {'agrees': 2, 'differs': 0, 'errata': 0, 'not printed': 0, 'not run': 0}
    """
    counts = Counter(map(str, verdicts))
    return {
        str(each): counts[str(each)]
        for each in Verdict
        if each != Verdict.undecided or counts[str(each)]
    }


ONE = {"errata": "erratum"}
MANY = {"agrees": "agree", "differs": "differ"}


def counted(counts: Mapping[str, int]) -> str:
    """Say how many cells came to which verdict.

    >>> counted({"agrees": 322, "differs": 1, "errata": 1, "not run": 0})
    '322 agree, 1 differs, 1 erratum, 0 not run'
    """
    return ", ".join(
        f"{count:,} {(ONE if count == 1 else MANY).get(name, name)}"
        for name, count in counts.items()
    )


class Range(NamedTuple):
    """The values that a printed number allows: its interval, and its rounding."""

    low: float
    high: float


class Judgement(NamedTuple):
    """A verdict, and by how much a number differs or why it is no number to hold on to."""

    verdict: Verdict
    reason: str = ""


def judge(
    ours: Estimate,
    printed: Range | None,
    remarks: Sequence[Remark] = (),
    *,
    value: float | None = None,
    percent: bool = False,
) -> Judgement:
    """Judge a number: it agrees where our interval meets what the printed one allows.

    One that its own table contradicts is an erratum whether it agrees or not; one that is known
    for an erratum is shown as such if it does not. A difference is taken from the printed value,
    the middle of the range unless given; of a percentage it is in points.

    >>> judge(Estimate(5.17, 5.15, 5.19), Range(5.21, 5.26))
    Judgement(verdict=<Verdict.differs: 'differs'>, reason='by -1.2 %')
    """
    errata = [remark.text for remark in remarks if remark.kind != "difference"]
    if any(remark.kind == "contradiction" for remark in remarks):
        return Judgement(Verdict.errata, errata[0])
    if printed is None:
        return Judgement(Verdict.errata, errata[0]) if errata else Judgement(Verdict.not_printed)
    low, high = (ours.mean, ours.mean) if isnan(ours.low) else (ours.low, ours.high)
    if low <= printed.high and printed.low <= high:
        return Judgement(Verdict.agrees)
    if errata:
        return Judgement(Verdict.errata, errata[0])
    known = [remark.text for remark in remarks]
    return Judgement(Verdict.differs, "; ".join([_by(ours.mean, printed, value, percent), *known]))


def judge_stability(stable: bool | None, printed: str, remarks: Sequence[Remark] = ()) -> Judgement:
    """Judge a word in place of a number: ``stable`` or ``unstable``.

    A run that is too short to tell neither agrees nor differs.

    >>> judge_stability(True, "unstable").verdict
    <Verdict.differs: 'differs'>
    """
    if stable is None:
        return Judgement(Verdict.undecided, "our runs are too short to tell")
    if stable == (printed == "stable"):
        return Judgement(Verdict.agrees)
    known = [remark.text for remark in remarks]
    found = "stable" if stable else "unstable"
    return Judgement(Verdict.differs, "; ".join([f"ours is {found}", *known]))


def _by(ours: float, printed: Range, value: float | None, percent: bool) -> str:
    centre = (printed.low + printed.high) / 2 if value is None else value
    if percent:
        return f"by {ours - centre:+.1f} points"
    if centre == 0:
        return f"by {ours:+.3g}"
    return f"by {100 * (ours - centre) / abs(centre):+.1f} %"
