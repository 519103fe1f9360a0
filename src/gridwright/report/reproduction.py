"""The reproduction as a report: every published table and figure beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ..catalogue import cite, errata
from ..plots import can_draw, draw_reproduction, draw_testbed
from ..reproduction import (
    Laboratory,
    Outcome,
    Reproduction,
    Verdict,
    counted,
    label,
    shortened,
    summary,
)
from .document import details, made, paragraph, picture, section, table, write_document

__all__ = ["write_reproduction"]

HEADS = ["system", "policy", "what", ">published", ">ours", "verdict"]
SOURCES = "AKSDW"
WORTH_A_LOOK = (Verdict.differs, Verdict.errata)


def write_reproduction(
    found: Sequence[Reproduction], laboratory: Laboratory, path: Path, seconds: float
) -> None:
    """Write everything that was reproduced as one HTML file."""
    write_document(path, "The published tables, reproduced", _parts(found, laboratory, seconds))


def _parts(found: Sequence[Reproduction], laboratory: Laboratory, seconds: float) -> Iterator[str]:
    total = summary(found)
    yield f"<p><strong>{counted(total)}</strong> "
    yield f"of {sum(total.values()):,} cells of {len(found)} tables and figures.</p>"
    yield paragraph(
        "A cell agrees where our 95 % interval meets what the printed number allows: its interval "
        "or accuracy, and its rounding. An erratum contradicts its own source. Verdicts are "
        "computed from the numbers below."
    )
    if laboratory.scale.share < 1:
        yield paragraph(
            f"Runs are {1 / laboratory.scale.share:g} times shorter than the published ones and "
            "start empty: busy systems come out low, and verdicts are only a hint."
        )
    yield section(
        "Settings",
        [
            made(
                [
                    ("scale", str(laboratory.scale)),
                    ("seed", str(laboratory.seed)),
                    ("work", laboratory.work()),
                    ("this time", f"{seconds:.0f} seconds; what was kept from before is not run"),
                ]
            )
        ],
    )
    sources = [(key, cite(key)) for key in SOURCES]
    yield section("Sources", [table("Sources", ["key", "source"], sources)])
    yield section("Tables and figures", [_contents(found)])
    yield section("Errata of the sources", [_errata()], "errata")
    if any(_is_of_testbed(each) for each in found):
        words = "Mean response in the twelve experiments, simulated and on real machines"
        yield section(
            "Simulation against testbed",
            [picture(lambda path: draw_testbed(found, path), words)],
            "testbed",
        )
    for each in found:
        yield section(each.target.name, _table(each, laboratory), _anchor(each))


def _is_of_testbed(found: Reproduction) -> bool:
    cells = [each.cell for each in found.outcomes if each.ours is not None]
    return any("platform" in cell and cell["metric"] == "W_mean" for cell in cells)


def _contents(found: Sequence[Reproduction]) -> str:
    lines = []
    for each in found:
        counts = summary([each])
        judged = counts["agrees"] + counts["differs"]
        short = f"{counts['agrees']} of {judged}" if judged else _not_judged(each)
        lines.append(f'<a href="#{_anchor(each)}">{each.target.name}</a> {escape(short)}<br>')
    return "\n".join(["<nav>", *lines, "</nav>"])


def _not_judged(found: Reproduction) -> str:
    """Say of a table why there is no verdict: of what is not printed, what it shows."""
    counts = {name: count for name, count in summary([found]).items() if count}
    if set(counts) == {Verdict.not_printed}:
        return f"not printed: {found.target.about.partition(';')[0]}"
    return counted(counts)


def _errata() -> str:
    return table("Errata", ["source", "what is wrong"], errata())


def _table(found: Reproduction, laboratory: Laboratory) -> Iterator[str]:
    counts = counted({name: count for name, count in summary([found]).items() if count})
    yield paragraph(f"{found.target.about[0].upper()}{found.target.about[1:]}. {counts}.")
    if words := shortened(found, laboratory.scale):
        yield paragraph(words)
    if can_draw(found):
        shows = f"{found.target.name}: {found.target.about}"
        yield picture(lambda path: draw_reproduction(found, path), found.target.name, shows=shows)
    kinds = (_kind(each) for each in found.outcomes)
    rows = table(f"Cells of {found.target.name}", HEADS, map(_row, found.outcomes), kinds)
    dull = all(each.judgement.verdict not in WORTH_A_LOOK for each in found.outcomes)
    yield details(f"{len(found.outcomes)} cells", [rows]) if dull else rows


def _row(outcome: Outcome) -> list[str]:
    verdict, reason = outcome.judgement
    words = f"{verdict}: {reason}" if reason else str(verdict)
    return [*label(outcome.cell), outcome.published, outcome.found, words]


def _kind(outcome: Outcome) -> str:
    return str(outcome.judgement.verdict)


def _anchor(found: Reproduction) -> str:
    return found.target.name.lower().replace(":", "-").replace(" ", "-")
