"""The reproduction as a page in Markdown, drawn from its data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..model.error import file_errors
from .account import PRIMARY, with_adopted
from .data import ReproductionData, Section
from .reading import ADOPTED, FITTED, READINGS
from .verdict import Verdict, counted

MARKS = {
    Verdict.agrees: "✓",
    Verdict.differs: "✗",
    Verdict.errata: "erratum",
    Verdict.not_printed: "·",
    Verdict.undecided: "?",
    Verdict.not_run: "–",
}


def write_page(data: ReproductionData, path: Path) -> None:
    """Write the page, and its data beside it with the ending ``.json``."""
    explained = (path.absolute().parent / "differences.md").exists()
    with file_errors(path, "written"):
        path.write_text(draw_page(data, explained=explained), encoding="utf-8")
    data.write(path.with_suffix(".json"))


def draw_page(data: ReproductionData, *, explained: bool) -> str:
    """Return the page; if ``explained``, with a link to the explanation of the differences."""
    return "\n".join(_lines(data, explained)) + "\n"


def _lines(data: ReproductionData, explained: bool) -> Iterator[str]:
    yield "# The published tables, reproduced\n"
    yield (
        "Every number that the sources print, beside ours with its 95 % interval. "
        "`gridwright research reproduce` makes this page (`--page`), and computes the verdicts."
        + (" [What differs, and why](differences.md) explains them." if explained else "")
    )
    if data.share < 1:
        yield (
            f"\n**Runs are {1 / data.share:g} times shorter than the published ones and "
            "start empty: busy systems come out low, and verdicts are only a hint.**"
        )
    yield f"\n- **In all:** {counted(data.summary())}."
    yield f"- **Scale:** {data.scale}, seed {data.seed}."
    yield f"- **Work:** {data.work}."
    yield f"- **Made:** {data.made}."
    yield (
        "- **Marks:** ✓ agrees (our interval meets what the printed number allows: its interval or "
        "accuracy, and its rounding), ✗ differs, *erratum*: it contradicts its own source, · not "
        "printed, – not run."
    )
    yield from _readings(data)
    for section in data.sections:
        yield from _section(section)


def _readings(data: ReproductionData) -> Iterator[str]:
    found = data.accounts()
    yield "\n## Readings\n"
    yield (
        f"**{PRIMARY[0].upper()}{PRIMARY[1:]}** is the primary reading: system and policy as the "
        "source states them, the counts above. Every other reading is one named hypothesis, tried "
        "on every cell that it concerns; all other cells of its source count as stated. "
        "*Explained* cells agree in this reading only, *spoiled* ones no longer do."
    )
    yield "\n| source | reading | concerns | agree | differ | errata | explained | spoiled |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for each in found:
        yield f"| {' | '.join(map(str, each))} |"
    if words := with_adopted(found, ADOPTED, FITTED):
        yield (
            f"\n**With the adopted readings**, {words}. Readings of one source that are adopted "
            "together concern different cells."
        )
    shown = {each.reading for each in found}
    about = [f"- **{each.name}**: {each.about}" for each in READINGS if each.name in shown]
    yield from ["", *about] if about else []


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {section.name}\n"
    yield section.sentence
    if section.readings:
        yield f"\nOther readings: {section.readings}."
    if section.note:
        yield f"\n{section.note}"
    if section.picture:
        yield f"\n![{section.name}: {section.about}](figures/{section.picture})"
    yield ""
    if {row.verdict for row in section.rows} == {Verdict.not_run}:
        yield f"Not run: {'; '.join(sorted({row.reason for row in section.rows}))}."
        return
    yield "| system | policy | what | published | ours | |"
    yield "|---|---|---|---:|---:|---|"
    for row in section.rows:
        mark = f"{MARKS[Verdict(row.verdict)]} {row.reason}".strip()
        yield f"| {' | '.join(row[:5])} | {mark} |"
