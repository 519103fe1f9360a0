"""The reproduction as one HTML file: every published table and figure beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ..catalogue import cite, errata
from ..plots import draw_reproduction, draw_testbed
from ..reproduction import (
    Laboratory,
    Reproduction,
    ReproductionData,
    Section,
    Verdict,
    counted,
    data_of,
)
from .document import details, made, paragraph, picture, section, table, write_document

HEADS = ["system", "policy", "what", ">published", ">ours", "verdict"]
SOURCES = "AKSDW"
ACCOUNT = [
    *("source", "reading", ">concerns", ">agree", ">differ", ">errata", ">explained", ">spoiled")
]
READINGS = (
    "How many cells of a source agree as it states them, and under each other reading: a named "
    "hypothesis that is tried on every cell it concerns. Explained cells agree in that reading "
    "only, spoiled ones no longer do."
)


def write_reproduction(
    found: Sequence[Reproduction], laboratory: Laboratory, path: Path, seconds: float
) -> None:
    """Write everything that was reproduced; the figures are drawn into the file."""
    parts = _parts(found, data_of(found, laboratory), seconds)
    write_document(path, "The published tables, reproduced", parts)


def _parts(found: Sequence[Reproduction], data: ReproductionData, seconds: float) -> Iterator[str]:
    total = data.summary()
    yield f"<p><strong>What was found.</strong> {escape(_finding(data))}</p>"
    yield f"<p><strong>{counted(total)}</strong> "
    yield f"of {sum(total.values()):,} cells of {len(found)} tables and figures, as stated.</p>"
    yield paragraph(
        "A cell agrees where our 95 % interval meets what the printed number allows: its interval "
        "or accuracy, and its rounding. An erratum contradicts its own source. Verdicts are "
        "computed from the numbers below."
    )
    if data.share < 1:
        yield paragraph(
            f"Runs are {1 / data.share:g} times shorter than the published ones and "
            "start empty: busy systems come out low, and verdicts are only a hint."
        )
    settings = [
        ("scale", data.scale),
        ("seed", str(data.seed)),
        ("work", data.work),
        ("this time", f"{seconds:.0f} seconds; results stored earlier are not simulated again"),
    ]
    yield section("Settings", [made(settings)])
    sources = [(key, cite(key)) for key in SOURCES]
    yield section("Sources", [table("Sources", ["key", "source"], sources)])
    if readings := data.accounts():
        cells = [[str(part) for part in each] for each in readings]
        yield section("Readings", [paragraph(READINGS), table("Readings", ACCOUNT, cells)])
    yield section("Tables and figures", [_contents(data)])
    known = table("Errata", ["source", "what is wrong"], errata())
    yield section("Errata of the sources", [known], "errata")
    if any(map(_is_of_testbed, found)):
        words = "Mean response in the twelve experiments, simulated and on real machines"
        drawn = picture(lambda path: draw_testbed(found, path), words)
        yield section("Simulation against testbed", [drawn], "testbed")
    for each, own in zip(found, data.sections, strict=True):
        yield section(own.name, _table(each, own), _anchor(own))


MOST_NAMED = 6


def _finding(data: ReproductionData) -> str:
    """Say how many printed numbers agree with ours, and where those are that do not."""
    total = data.summary()
    judged = total["agrees"] + total["differs"]
    if not judged:
        return "None of the cells has a verdict: they are not printed, or were not run."
    share = 100 * total["agrees"] / judged
    whole = total["differs"] == 0
    words = (
        f"{total['agrees']:,} of the {judged:,} printed numbers that could be judged agree with "
    )
    words += "ours." if whole else f"ours ({min(share, 99.9):.1f} %)."
    where = sorted(data.sections, key=lambda each: -each.summary()["differs"])
    named = [f"{each.name} ({n})" for each in where if (n := each.summary()["differs"])]
    if named:
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        words += f" Those that differ are in {', '.join(named[:MOST_NAMED])}{more}."
    return words


def _is_of_testbed(found: Reproduction) -> bool:
    cells = [each.cell for each in found.outcomes if each.ours is not None]
    return any("platform" in cell and cell["metric"] == "W_mean" for cell in cells)


def _contents(data: ReproductionData) -> str:
    lines = []
    for each in data.sections:
        counts = each.summary()
        judged = counts["agrees"] + counts["differs"]
        short = f"{counts['agrees']} of {judged}" if judged else _not_judged(each)
        lines.append(f'<a href="#{_anchor(each)}">{each.name}</a> {escape(short)}<br>')
    return "\n".join(["<nav>", *lines, "</nav>"])


def _not_judged(own: Section) -> str:
    """Say why a table has no verdict; if nothing is printed, say what it shows."""
    counts = {name: count for name, count in own.summary().items() if count}
    if set(counts) == {Verdict.not_printed}:
        return f"not printed: {own.about.partition(';')[0]}"
    return counted(counts) or own.readings


def _table(found: Reproduction, own: Section) -> Iterator[str]:
    yield paragraph(own.sentence)
    if own.readings:
        yield paragraph(f"Other readings: {own.readings}.")
    if own.note:
        yield paragraph(own.note)
    if own.picture:
        shows = f"{own.name}: {own.about}"
        yield picture(lambda path: draw_reproduction(found, path), own.name, shows=shows)
    kinds = [row.verdict for row in own.rows]
    cells = ([*row[:5], f"{row.verdict}: {row.reason}".removesuffix(": ")] for row in own.rows)
    rows = table(f"Cells of {own.name}", HEADS, cells, kinds)
    interesting = {Verdict.differs, Verdict.errata} & set(kinds)
    yield rows if interesting else details(f"{len(own.rows)} cells", [rows])


def _anchor(own: Section) -> str:
    return own.name.lower().replace(":", "-").replace(" ", "-")
