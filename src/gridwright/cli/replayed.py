"""Replays of a trace as they are shown: tables, JSON, a row a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .run import write_rows
from .trace import say_account

if TYPE_CHECKING:
    from ..model import System
    from ..testbed import JobList
    from ..traces import Outages, Replay, Workload

__all__ = ["Scene", "as_json", "show_replays", "write_jobs"]


FIGURES = {
    "mean_response": "mean response",
    "median_response": "median",
    "response_95": "95 %",
    "mean_waiting": "mean waiting",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
    "makespan": "makespan",
    "lost": "lost",
    "unfinished": "unfinished",
}
"""What is said of a replay, and how it is called."""


class Scene(NamedTuple):
    """What is to be replayed of a trace, and on what."""

    name: str
    work: Workload
    system: System
    jobs: JobList
    outages: Outages | None


def as_json(scene: Scene, found: list[Replay]) -> dict[str, Any]:
    """Return everything as ``--json`` prints it."""
    from ..allocation import allocate

    words: dict[str, Any] = {
        "trace": scene.name,
        "jobs": scene.work.account.as_json(),
        "length": scene.work.length,
        "classes": list(scene.system.classes),
        "machines": list(scene.system.machines),
        "load": allocate(scene.system).load,
        "policies": [each.as_json() for each in found],
    }
    if scene.outages is not None:
        words["failures"] = {
            "count": len(scene.outages.faults),
            "nodes": list(scene.outages.nodes),
            "start": scene.outages.start,
            "span": scene.outages.span,
        }
    return words


def write_jobs(found: list[Replay], path: Path) -> None:
    """Write one row a job and policy."""
    rows = []
    for each in found:
        system, jobs = each.system, each.jobs
        for k, (at, i, start, end, j) in enumerate(
            zip(jobs.times, jobs.task_classes, each.started, each.ended, each.machines, strict=True)
        ):
            where = system.machines[j] if j >= 0 else ""
            done = ["" if time != time else float(time) for time in (start, end)]
            rows.append([str(each.policy), k + 1, system.classes[i], float(at), where, *done])
    write_rows(path, ["policy", "job", "class", "arrived", "machine", "started", "ended"], rows)


def show_replays(scene: Scene, found: list[Replay]) -> None:
    """Print the policies side by side, overall and by class."""
    from rich.markup import escape

    from ..allocation import allocate
    from ..traces.duration import in_words
    from .output import console, counted, show, table

    out, system = console(), scene.system
    classes, machines = system.shape
    say_account(out, "Jobs", scene.work.account)
    if scene.outages is not None:
        out.print(f"Failures: {scene.outages}")
    out.print(
        f"\n[bold]{escape(scene.name)}[/bold]: {len(scene.jobs):,} jobs in "
        f"{in_words(scene.work.length)}, {counted(classes, 'class', 'classes')}, "
        f"{counted(machines, 'machine', 'machines')}, load {allocate(system).load:.3g}\n"
    )
    policies = [f">{escape(str(each.policy))}" for each in found]
    rows = table("", *policies)
    for name, word in FIGURES.items():
        rows.add_row(word, *(_figure(name, each) for each in found))
    show(out, rows)
    out.print("")
    rows = table("mean response", ">jobs", *policies)
    for i, name in enumerate(system.classes):
        count = int((scene.jobs.task_classes == i).sum())
        means = [each.by_class[i] for each in found]
        said = ["–" if mean != mean else in_words(mean) for mean in means]
        rows.add_row(escape(name), f"{count:,}", *said)
    show(out, rows)


def _figure(name: str, replay: Replay) -> str:
    """Write a figure of a replay; where no job was finished, only counts are known."""
    from ..traces.duration import in_words
    from .output import UNKNOWN

    figures = replay.figures
    if name in ("lost", "unfinished"):
        return f"{figures[name]:,}"
    if not figures["finished"]:
        return UNKNOWN
    if name == "mean_slowdown":
        return f"{figures[name]:.4g}"
    if name == "utilisation":
        return f"{100 * figures[name]:.0f} %"
    return in_words(figures[name])
