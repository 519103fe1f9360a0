"""``gridwright research contest``: compare policies on many systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    with_verdict,
    write_rows,
)
from .packages import catalogue, experiments, model, plots

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
    check_files(plot=plot, csv=csv)
    if random < 0 or (tasks is not None and not 0 < tasks < float("inf")):
        raise model.InputError("expected --random and --tasks to be positive numbers")
    named = [name for pattern in systems or () for name in _matching(pattern)]
    drawn = list(experiments.random_systems(random, seed))
    total = len(named) + len(drawn)
    with progress_bar() as report:
        found = experiments.contest(
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
        lambda: _show_contest(found),
        json=json,
        files={
            csv: lambda path: _write_contest(found, path),
            plot: lambda path: plots.draw_contest(found, path),
        },
    )


def _matching(pattern: str) -> list[str]:
    """Return the systems of the catalogue that match a pattern and can be simulated."""
    from fnmatch import fnmatchcase

    if "*" not in pattern and "?" not in pattern:
        return [pattern]
    names = [
        entry.name
        for entry in catalogue.entries()
        if fnmatchcase(entry.name, pattern) and entry.has_capacity and not entry.down
    ]
    if not names:
        raise model.InputError(f"no system matches {pattern!r}; 'gridwright systems' lists them")
    return names


def _write_contest(found: experiments.Contest, path: Path) -> None:
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


def _show_contest(found: experiments.Contest) -> None:
    out = console()
    first = found.bouts[0].comparison.results[0]
    runs = counted(len(first.replications), "replication")
    systems = counted(len(found.bouts), "system")
    out.print(
        f"{systems}, {runs} each, seed {first.seed}, common random numbers; mean number in system\n"
    )
    if len(found.bouts) <= MANY_SYSTEMS:
        columns = (">load", *(f">{policy}" for policy in found.policies))
        rows = []
        for bout in found.bouts:
            cells = [with_verdict(result, "mean_number") for result in bout.comparison.results]
            rows.append([bout.system.name, f"{bout.load:.3f}", *cells, bout.verdict])
        show(("system", *columns, f"{found.policies[0]} is"), rows)
        out.print()
    standings = (
        (
            each.policy,
            f"{100 * each.best:.1f} %",
            known(each.mean_ratio, ".3f"),
            known(each.worst_ratio, ".4g"),
            each.worst_on,
            str(each.unstable),
            str(each.undecided),
        )
        for each in found.standings
    )
    heads = (">best on", ">mean ratio", ">worst", "on", ">unstable on", ">undecided on")
    show(("policy", *heads), standings)
    words = ", ".join(f"{word} on {count}" for word, count in found.verdicts.items())
    out.print(f"\n{escape(found.policies[0])} against the best of the others: {words}.")
