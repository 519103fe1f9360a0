"""Compute whether a printed number agrees with ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from math import isnan
from typing import NamedTuple

from ..catalogue import Cell, Remark, remarks_on, results, tables
from ..statistics import Estimate


class Verdict(StrEnum):
    """The outcome of a comparison with a printed cell."""

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
    """A verdict, and by how much a number differs or why it is an erratum."""

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


ROW = ("src", "table", "section", "system", "arrival", "case", "exec_dist", "policy", "kbar")
"""The fields that the cells of a printed row share."""


def allowed(cell: Cell) -> Range | None:
    """Return the values that a printed cell allows, None where it prints no number.

    An interval as printed; else the printed accuracy around the mean. A row prints its accuracy
    with the overall mean, and it is taken for the class means too. An improvement was computed
    from printed means, so it is as exact as they are. Half a unit of the last digit is added.

    >>> (cell,) = results(table="2.1", system="2.B", policy="LPAS")
    >>> allowed(cell)
    Range(low=5.205, high=5.265)
    """
    rounding = 0.5 * 10.0 ** -_decimals(cell)
    if "lo" in cell:
        return Range(cell["lo"] - rounding, cell["hi"] + rounding) if "hi" in cell else None
    if "value" not in cell:
        return None
    value = float(cell["value"])
    if cell["metric"] == "Delta_pct" and (means := _means(cell)):
        (low, high), (reference_low, reference_high) = means
        return Range(100 * (1 - high / reference_low), 100 * (1 - low / reference_high))
    spread = abs(value) * _accuracy(cell) / 100 + cell.get("half_width", 0.0) + rounding
    return Range(value - spread, value + spread)


def contradictions(cell: Cell) -> list[Remark]:
    """Return the remarks on a cell; one more if its own table contradicts it."""
    remarks = remarks_on(cell)
    if cell["metric"] == "Delta_pct" and "value" in cell and _means(cell):
        mean, reference = (float(each["value"]) for each in _mean_cells(cell))
        own = 100 * (reference - mean) / reference
        if abs(own - cell["value"]) > 0.5 * 10.0 ** -_decimals(cell) + 1e-9:
            text = f"the printed means, {mean:g} and {reference:g}, give {own:.2f}"
            remarks = [Remark("contradiction", text), *remarks]
    return remarks


def words(cell: Cell) -> str:
    """Write a printed cell as it is printed."""
    if "status" in cell:
        return str(cell["status"]).replace("_", " ")
    if "printed" in cell:
        return str(cell["printed"])
    digits = _decimals(cell)
    if "lo" in cell:
        return f"({cell['lo']:.{digits}f}, {cell['hi']:.{digits}f})"
    if "value" not in cell:
        return ""
    spread = f" ± {cell['rel_acc_pct']:g} %" if "rel_acc_pct" in cell else ""
    spread = f" ± {cell['half_width']:g}" if "half_width" in cell else spread
    return f"{cell['value']:.{digits}f}{spread}"


def _decimals(cell: Cell) -> int:
    """Return how many decimals are printed: of a table the same for all its cells."""
    if "decimals" in cell:
        return int(cell["decimals"])
    if str(cell["metric"]).startswith(("jobs_", "nodes_")):
        return 0
    name, _, variant = str(cell["table"]).partition(":")
    table = tables().get(f"{cell['src']}:{name if variant else cell['table']}")
    if table is not None and name != "text":
        return table.decimals
    texts = [repr(float(cell[key])) for key in ("value", "lo", "hi") if key in cell]
    return max((len(text.partition(".")[2].rstrip("0")) for text in texts), default=2)


def _accuracy(cell: Cell) -> float:
    """Return the printed accuracy of a cell in percent, or that of its row."""
    if "rel_acc_pct" in cell:
        return float(cell["rel_acc_pct"])
    if cell["metric"] != "W_class":
        return 0.0
    found = _row(tuple((key, cell[key]) for key in ROW if key in cell))
    return max((float(each.get("rel_acc_pct", 0.0)) for each in found), default=0.0)


def _means(cell: Cell) -> tuple[Range, Range] | None:
    """Return what the printed means allow that an improvement was computed from."""
    found = [allowed(each) for each in _mean_cells(cell)]
    if len(found) != 2 or found[0] is None or found[1] is None:
        return None
    return found[0], found[1]


def _mean_cells(cell: Cell) -> list[Cell]:
    """Return the mean of a cell's row, and that of the row it is compared with."""
    if cell["table"] == "text" or cell["policy"] == "Gcmu":
        return []
    row = {key: cell[key] for key in ROW if key in cell}
    own = _row(tuple(row.items()))
    other = {key: value for key, value in row.items() if key != "table"}
    reference = [
        each
        for each in _row((*other.items(), ("policy", "Gcmu")))
        if each["table"] == cell["table"] or cell["table"] == "3.14"
    ]
    return [
        each for each in (*own, *reference[:1]) if each["metric"] == "W_mean" and "value" in each
    ]


@cache
def _row(fields: tuple[tuple[str, object], ...]) -> tuple[Cell, ...]:
    wanted = {key: value for key, value in fields if key != "section"}
    return tuple(cell for cell in results(**wanted) if cell["metric"] == "W_mean")
