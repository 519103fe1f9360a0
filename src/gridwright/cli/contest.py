"""``gridwright research contest``: compare policies on many systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from . import options
from .options import option, path_option
from .output import (
    check_files,
    console,
    counted,
    finish,
    kept_results,
    known,
    progress_bar,
    show,
    table,
    with_verdict,
    write_rows,
)

if TYPE_CHECKING:
    from ..experiments import Contest

MANY_SYSTEMS = 60
"""With more systems than this, the table with one row for each is left out."""


def contest(
    policies: options.Policies,
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM…",
            help="Names of the catalogue, with * for any part of a name, or paths of files.",
            autocompletion=options.complete_system,
        ),
    ] = None,
    random: Annotated[int, option("Also include this number of random systems.", "NUMBER")] = 0,
    horizon: options.Horizon = None,
    tasks: Annotated[
        float | None, option("Length of a run in tasks, on average, instead of a horizon.")
    ] = None,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    csv: options.Csv = None,
    plot: Annotated[
        Path | None, path_option("Draw how far behind each policy is, and how often.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compare the first policy with the others on many systems, on the same arrivals."""
    from ..experiments import contest as run
    from ..experiments import random_systems
    from ..model import InputError
    from ..plots import draw_contest

    check_files(plot=plot, csv=csv)
    if random < 0 or (tasks is not None and not 0 < tasks < float("inf")):
        raise InputError("expected --random and --tasks to be positive numbers")
    named = [name for pattern in systems or () for name in _matching(pattern)]
    drawn = list(random_systems(random, seed))
    total = len(named) + len(drawn)
    with progress_bar() as report:
        found = run(
            [*named, *drawn],
            options.listed(policies),
            horizon,
            replications,
            seed,
            tasks=40_000 if drawn and tasks is None and horizon is None else tasks,
            threads=threads,
            store=kept_results() if named else None,
            progress=lambda number, name: report("contest", number / total, note=name),
        )
    finish(
        found.as_json,
        lambda: _show(found),
        json=json,
        files={csv: lambda path: _write(found, path), plot: lambda path: draw_contest(found, path)},
    )


def _matching(pattern: str) -> list[str]:
    """Return the systems of the catalogue that match a pattern and can be simulated."""
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
        raise InputError(f"no system matches {pattern!r}; 'gridwright systems' lists them")
    return names


def _write(found: Contest, path: Path) -> None:
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
    out = console()
    first = found.bouts[0].comparison.results[0]
    runs = counted(len(first.replications), "replication")
    systems = counted(len(found.bouts), "system")
    out.print(
        f"{systems}, {runs} each, seed {first.seed}, common random numbers; mean number in system\n"
    )
    if len(found.bouts) <= MANY_SYSTEMS:
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
