"""``gridwright contest``: several policies on many systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json, complete_system, listed, plot_path
from .run import Csv, Horizon, Replications, Seed, Threads, kept_results, progress_bar, writable

if TYPE_CHECKING:
    from ..experiments import Contest

__all__ = ["contest"]

READABLE = 60
"""Systems up to which each has a line."""


def contest(
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "--policy",
            help="Policies, separated by commas; the first is held against the others.",
            metavar="POLICY,…",
        ),
    ],
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM…",
            help="Names of the catalogue, with * for any part of one, or paths of files.",
            autocompletion=complete_system,
            show_default=False,
        ),
    ] = None,
    random: Annotated[
        int, typer.Option(help="Systems drawn at random, besides.", metavar="NUMBER")
    ] = 0,
    horizon: Horizon = None,
    tasks: Annotated[
        float | None,
        typer.Option(help="In place of a horizon: tasks a run, on average.", show_default=False),
    ] = None,
    replications: Replications = 10,
    seed: Seed = 1,
    threads: Threads = None,
    csv: Csv = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw how far behind each policy is, and how often.", metavar="PATH"),
    ] = None,
    json: Json = False,
) -> None:
    """Hold a contest: policies on many systems, with common random numbers."""
    from ..experiments import contest as run
    from ..experiments import random_systems
    from ..model import InputError
    from .output import print_json, written

    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    if random < 0 or (tasks is not None and not 0 < tasks < float("inf")):
        raise InputError("expected a number of systems and of tasks that is not negative")
    named = [name for pattern in systems or () for name in _matching(pattern)]
    drawn = list(random_systems(random, seed))
    with progress_bar() as report:
        total = len(named) + len(drawn)
        found = run(
            [*named, *drawn],
            listed(policies),
            horizon,
            replications,
            seed,
            tasks=40_000 if drawn and tasks is None and horizon is None else tasks,
            threads=threads,
            store=kept_results() if named else None,
            progress=lambda number, name: report("contest", number / total, note=name),
        )
    if csv:
        _write(found, csv)
    if picture:
        from ..plots import draw_contest

        draw_contest(found, picture)
    if json:
        print_json(found.as_json())
    else:
        _show(found)
        written(csv, picture)


def _matching(pattern: str) -> list[str]:
    """Find the systems of the catalogue that a pattern names, those that can be simulated."""
    from fnmatch import fnmatchcase

    from ..catalogue import entries
    from ..model import InputError

    if "*" not in pattern and "?" not in pattern:
        return [pattern]
    names = [
        entry.name
        for entry in entries()
        if fnmatchcase(entry.name, pattern) and entry.has_capacity and not entry.down
    ]
    if not names:
        raise InputError(f"no system is named like {pattern!r}; 'gridwright systems' lists them")
    return names


def _write(found: Contest, path: Path) -> None:
    from .run import write_rows

    header = ["system", "load", "verdict"]
    for policy in found.policies:
        header += [policy, f"{policy} low", f"{policy} high", f"{policy} stable"]
    rows = []
    for bout in found.bouts:
        row: list[object] = [bout.system.name, bout.load, bout.verdict]
        for result in bout.comparison.results:
            row += [*result.mean_number, result.stable]
        rows.append(row)
    write_rows(path, header, rows)


def _show(found: Contest) -> None:
    from rich.markup import escape

    from .output import console, counted, known, show, table, with_verdict

    out = console()
    first = found.bouts[0].comparison.results[0]
    runs = counted(len(first.replications), "replication", "replications")
    systems = counted(len(found.bouts), "system", "systems")
    out.print(f"{systems}, {runs} each, seed {first.seed}, common random numbers; mean number\n")
    if len(found.bouts) <= READABLE:
        names = [f">{escape(policy)}" for policy in found.policies]
        rows = table("system", ">load", *names, f"{escape(found.policies[0])} is")
        for bout in found.bouts:
            cells = [with_verdict(result, "mean_number") for result in bout.comparison.results]
            rows.add_row(escape(bout.system.name), f"{bout.load:.3f}", *cells, bout.verdict)
        show(out, rows)
        out.print()
    heads = (">best on", ">mean ratio", ">worst", "on", ">unstable on", ">undecided on")
    rows = table("policy", *heads)
    for standing in found.standings:
        rows.add_row(
            escape(standing.policy),
            f"{100 * standing.best:.1f} %",
            known(standing.mean_ratio, ".3f"),
            known(standing.worst_ratio, ".4g"),
            escape(standing.worst_on),
            str(standing.unstable),
            str(standing.undecided),
        )
    show(out, rows)
    words = ", ".join(f"{word} on {count}" for word, count in found.verdicts.items())
    out.print(f"\n{escape(found.policies[0])} against the best of the others: {words}.")
