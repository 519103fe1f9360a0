"""The reproduction as a page: every cell beside ours, in Markdown."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ..catalogue import Cell, cite
from ..compiler.computer import computer
from ..model import InputError
from .laboratory import Laboratory, Scale
from .question import entry_of
from .reproduce import Outcome, Reproduction, summary
from .verdict import Verdict, counted

__all__ = ["label", "picture_of", "shortened", "write_page"]

WHAT = {
    "Q_mean": "mean number",
    "W_mean": "mean response",
    "jobs_in_progress": "jobs in progress",
    "jobs_late": "jobs late",
    "jobs_ok": "jobs in time",
    "nodes_for_full_performance_stated": "nodes for full performance",
    "perf_fraction": "performance",
    "perf_max_minus_min": "performance, largest − least over etcvar",
    "time_over_estimate_sd": "actual over estimated time, standard deviation",
    "Delta_pct": "improvement over Gcmu, %",
    "W_relative": "mean response, Gcmu = 1",
    "W_ratio_range": "mean response of FCFS, LPAS_DG = 1",
    "capacity": "λ*",
    "condition_iii_violations": "choices excluded by condition (iii)",
    "discount_pct": "state information saved, %",
    "load_pct": "load, %",
    "messages_improvement_pct": "fewer messages, %",
    "like_for_like_pct": "fewer messages, itself never counted, %",
    "on_time_mean": "tasks on time",
    "on_time_improvement_pct": "more on time, %",
    "rho": "load",
}
MARKS = {
    Verdict.agrees: "✓",
    Verdict.differs: "✗",
    Verdict.errata: "erratum",
    Verdict.not_printed: "·",
    Verdict.undecided: "?",
    Verdict.not_run: "–",
}


def label(cell: Cell) -> tuple[str, str, str]:
    """Say which system, policy and figure a cell is about."""
    policy = str(cell.get("policy", ""))
    if "kbar" in cell:
        policy += f" k={cell['kbar']}"
    if "kbar_below" in cell:
        policy += f" k<{cell['kbar_below']}"
    if "constant" in cell:
        policy += f" C={cell['constant']}"
    if "variant" in cell:
        policy += f", {cell['variant']}"
    what = WHAT.get(cell["metric"], str(cell["metric"]).replace("_", " "))
    if cell["metric"] in ("W_relative", "messages_relative") and cell["system"][0] == "4":
        what = f"{'messages' if 'messages' in cell['metric'] else 'mean response'}, MCT = 1"
    if cell["metric"] == "W_class":
        what = f"class {cell['class']}"
    if cell["metric"] == "delta_entry":
        what = f"δ* of class {cell['class']}, {'column' if 'column' in cell else 'machine'} "
        what += str(cell.get("column", cell.get("machine")))
    if cell["metric"] == "exec_rate_observed":
        what = f"rate of class {cell['class']} on machine {cell['machine']}"
    if cell["metric"] == "arrival_rate_observed":
        what = f"arrival rate of class {cell['class']}"
    if "inaccuracy_pct" in cell:
        what += f", I = {cell['inaccuracy_pct']} %"
    if "nodes" in cell:
        what += f", {cell['nodes']} nodes"
    if "etcvar" in cell:
        what += f", etcvar {cell['etcvar']:g}"
    return entry_of(cell), policy.removeprefix(", "), what


def picture_of(found: Reproduction) -> str:
    """Name the file that a figure is drawn into."""
    return f"{found.target.name.lower().replace(':', '-').replace(' ', '-')}.svg"


def write_page(found: Sequence[Reproduction], laboratory: Laboratory, path: Path) -> None:
    """Write the page; it points to an explanation of differences where one stands beside it."""
    explained = (path.absolute().parent / "differences.md").exists()
    text = "\n".join(_lines(found, laboratory, explained)) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _lines(found: Sequence[Reproduction], laboratory: Laboratory, explained: bool) -> Iterable[str]:
    total = summary(found)
    yield "# The published tables, reproduced"
    yield ""
    yield (
        "Every number that the sources print, beside ours with its 95 % interval. "
        "`gridwright reproduce` makes this page (`--page`), and computes the verdicts."
        + (" [What differs, and why](differences.md) explains them." if explained else "")
    )
    if laboratory.scale.share < 1:
        yield ""
        yield (
            f"**Runs are {1 / laboratory.scale.share:g} times shorter than the published ones and "
            "start empty: busy systems come out low, and verdicts are only a hint.**"
        )
    yield ""
    yield f"- **In all:** {counted(total)}."
    yield f"- **Scale:** {laboratory.scale}, seed {laboratory.seed}."
    yield f"- **Work:** {laboratory.work()}."
    today = datetime.now(UTC).date().isoformat()
    yield (
        f"- **Made:** {today} by gridwright {version('gridwright')} with Python "
        f"{platform.python_version()} on {computer()}."
    )
    yield (
        "- **Marks:** ✓ agrees (our interval meets what the printed number allows: its interval or "
        "accuracy, and its rounding), ✗ differs, *erratum*: it contradicts its own source, · not "
        "printed, – not run."
    )
    for each in found:
        yield from _section(each, laboratory)


def _section(found: Reproduction, laboratory: Laboratory) -> Iterable[str]:
    source = found.target.name.partition(":")[0]
    counts = counted({name: count for name, count in summary([found]).items() if count})
    yield ""
    yield f"## {found.target.name}"
    yield ""
    cited = f" ({cite(source)})" if source in "AKSDW" else ""
    yield f"{found.target.about[0].upper()}{found.target.about[1:]}{cited}. {counts}."
    if words := shortened(found, laboratory.scale):
        yield ""
        yield words
    if "Figure" in found.target.name and any(each.ours for each in found.outcomes):
        yield ""
        yield f"![{found.target.name}: {found.target.about}](figures/{picture_of(found)})"
    reasons = {each.judgement.reason for each in found.outcomes}
    if {each.judgement.verdict for each in found.outcomes} == {Verdict.not_run}:
        yield ""
        yield f"Not run: {'; '.join(sorted(reasons))}."
        return
    yield ""
    yield "| system | policy | what | published | ours | |"
    yield "|---|---|---|---:|---:|---|"
    for outcome in found.outcomes:
        yield _row(outcome)


def shortened(found: Reproduction, scale: Scale) -> str:
    """Say how much shorter than published the long runs of a table are, and how exact that is."""
    short = [o for o in found.outcomes if o.ours and scale.extra(entry_of(o.cell)) < 1]
    systems = sorted({str(each.cell["system"]) for each in short})
    shares = {scale.share * scale.extra(name) for name in systems}
    if not shares:
        return ""
    widths = [
        100 * each.ours.half_width / abs(each.ours.mean)
        for each in short
        if each.ours is not None and each.cell["metric"] == "W_mean" and each.ours.mean
    ]
    words = f"Runs of {', '.join(systems)} are 1/{1 / min(shares):g} of the published length"
    if widths:
        words += f"; half widths of the mean response are {max(widths):.2g} % of it or less"
    return f"{words}."


def _row(outcome: Outcome) -> str:
    system, policy, what = label(outcome.cell)
    verdict, reason = outcome.judgement
    mark = MARKS[verdict]
    words = f"{mark} {reason}".strip()
    return f"| {system} | {policy} | {what} | {outcome.published} | {outcome.found} | {words} |"
