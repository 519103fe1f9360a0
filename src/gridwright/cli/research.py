"""``gridwright research``: contests of policies, optima, hard systems, published numbers."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from . import options
from .options import option, path_option, policies_option
from .output import (
    Cell,
    check_files,
    console,
    counted,
    finish,
    kept_results,
    known,
    percent,
    progress_bar,
    show,
    show_matrix,
    with_verdict,
    write_rows,
)
from .packages import allocation, catalogue, experiments, model, plots, report, reproduction

app = typer.Typer(help="Contests of policies, bounds, and published results.")
COLOURS = {"agrees": "green", "differs": "red", "errata": "yellow"}
"""Colours of verdicts."""
MANY_SYSTEMS = 60
"""With more systems than this, the table with one row for each is left out."""
MEASURES = {"mean_number": "mean number in system", "mean_cost": "mean cost per time unit"}
"""What a contest ranks by."""


@app.command()
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
    random: Annotated[
        int, option("Also include this number of random systems, of each family.", "NUMBER")
    ] = 0,
    family: options.Family = None,
    horizon: options.Horizon = None,
    tasks: Annotated[
        float | None, option("Length of a run in tasks, on average, instead of a horizon.")
    ] = None,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    on: options.SimulateOn = None,
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
    named = [name for pattern in systems or () for name in matching(pattern)]
    if family and not random:
        raise model.InputError("--family needs --random")
    families = options.listed(family or ()) or ["inconsistent"]
    drawn = [each for name in families for each in experiments.random_systems(random, seed, name)]
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
            on=on,
            store=kept_results() if named else None,
            progress=lambda number, name: report("contest", number / total, note=name),
        )
    files = {
        csv: partial(_write_contest, found),
        plot: lambda path: plots.draw_contest(found, path),
    }
    finish(found.as_json, partial(_show_contest, found), json=json, files=files)


def matching(pattern: str) -> list[str]:
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
            row += [*result.figure(result.holding), result.stable]
        rows.append(row)
    write_rows(path, header, rows)


def _show_contest(found: experiments.Contest) -> None:
    out = console()
    first = found.bouts[0].comparison.results[0]
    runs = counted(len(first.replications), "replication")
    systems = counted(len(found.bouts), "system")
    measures = {bout.comparison.results[0].holding for bout in found.bouts}
    measure = " or, where tasks have costs, ".join(MEASURES[m] for m in MEASURES if m in measures)
    out.print(f"{systems}, {runs} each, seed {first.seed}, common random numbers; {measure}\n")
    if len(found.bouts) <= MANY_SYSTEMS:
        columns = (">load", *(f">{policy}" for policy in found.policies))
        rows = []
        for bout in found.bouts:
            cells = [with_verdict(result, result.holding) for result in bout.comparison.results]
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


@app.command()
def optimum(
    system: options.SystemName,
    policies: Annotated[
        list[str] | None, policies_option("Policies, separated by commas; by default all of them.")
    ] = None,
    horizon: options.Horizon = None,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Compute the least mean number in system, and how far policies are from it."""
    with progress_bar() as report:
        found = experiments.optimum(
            system,
            None if policies is None else options.listed(policies),
            horizon,
            replications,
            seed,
            progress=lambda doing, done: report("optimum", done, note=doing),
        )
    finish(found.as_json, lambda: _show_optimum(found), json=json)


def _show_optimum(found: experiments.Optimum) -> None:
    out = console()
    word = experiments.in_words(found.holding)
    out.print(f"[bold]{escape(found.system.name)}[/bold]: least {word}\n")
    rows = (
        ("any policy at all", *_best(found.preemptive), "may interrupt and move tasks"),
        ("pull and push", *_best(found.pull), "a task ends on the machine it starts on"),
        ("lower bound", f"{found.bound:.4g}", "", "from prices alone"),
    )
    column = f">{found.holding.replace('_', ' ')}"
    show(("", column, ">error", ""), rows)
    if not found.policies:
        return
    against = "pull and push" if found.pull else "any policy" if found.preemptive else "the bound"
    if found.pull and any(each.result.policy.preempts for each in found.policies):
        against += ", or for any policy if they interrupt tasks"
    out.print(f"\nSimulated policies, and how far they are above the least for {against}:\n")
    gaps = []
    for each in found.policies:
        stable = each.result.stable
        gap = f"{100 * each.gap:.1f} %" if stable else each.result.stability.word
        gaps.append((str(each.result.policy), str(each.mean_cost), gap))
    show(("policy", column, ">gap"), gaps)


def _best(best: experiments.Best | None) -> tuple[str, str]:
    return ("too large", "") if best is None else (f"{best.mean_cost:.6g}", f"{best.error:.1g}")


@app.command()
def gaps(
    policies: options.Policies,
    random: Annotated[int, option("Number of systems to draw.", "NUMBER")] = 200,
    family: Annotated[
        str, option("Family of the systems; 'gridwright systems random' lists them.", "FAMILY")
    ] = "inconsistent",
    tasks: Annotated[float, option("Length of a run in tasks, on average.")] = 100_000,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Compute how far policies are from the optimum on small random systems."""
    if random < 1 or not 0 < tasks < float("inf"):
        raise model.InputError("expected --random and --tasks to be positive numbers")
    with progress_bar() as report:
        found = experiments.gaps(
            random,
            options.listed(policies),
            replications,
            seed,
            family=family,
            tasks=tasks,
            progress=lambda name, done: report("gaps", done, note=name),
        )
    finish(found.as_json, lambda: _show_gaps(found), json=json)


def _show_gaps(found: experiments.Gaps) -> None:
    solved, drawn = len(found.solved), len(found.optima)
    console().print(
        f"{counted(drawn, 'system')}, {solved} of them solved; shares above the least mean number "
        f"of pull and push, on the other {drawn - solved} above a lower bound\n"
    )
    rows = []
    for each in found.policies:
        shares = [_percent(share) for share in (each.mean, each.worst, each.apart)]
        rows.append((each.policy, *shares[:2], each.worst_on, shares[2], str(each.unstable)))
    show(("policy", ">mean gap", ">worst", "on", ">above bound", ">unstable on"), rows)


def _percent(share: float) -> str:
    return percent(share) if share == share else known(share, "")


@app.command()
def adversary(
    policy: options.PolicyName,
    against: Annotated[
        list[str], option("Policies that should do better, separated by commas.", "POLICY,…")
    ],
    classes: Annotated[int, option("Number of task classes of the system.")] = 2,
    machines: Annotated[int, option("Number of machines of the system.")] = 3,
    load: Annotated[
        str, option("Load of the system, or its limits LOW:HIGH.", "LOAD")
    ] = "0.3:0.95",
    steps: Annotated[int, option("Number of systems to try.")] = 300,
    seed: options.Seed = 1,
    on: options.SimulateOn = None,
    save: Annotated[Path, path_option("Write the system that was found.")] = Path("adversary.toml"),
    plot: Annotated[Path | None, path_option("Draw the system and the policies on it.")] = None,
    json: options.Json = False,
) -> None:
    """Search for a system on which a policy loses most to others, and save it."""
    check_files(plot=plot, save=save)
    with progress_bar() as report:
        found = experiments.adversary(
            policy,
            options.listed(against),
            classes,
            machines,
            _limits(load),
            steps,
            seed,
            on=on,
            progress=lambda done, ratio: report("adversary", done, note=f"ratio {ratio:.3f}"),
        )
    finish(
        found.as_json,
        partial(_show_adversary, found),
        json=json,
        files={save: found.system.to_file, plot: lambda path: plots.draw_adversary(found, path)},
    )


def _limits(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise model.InputError(f"--load {text}: expected a number, or LOW:HIGH") from None


def _show_adversary(found: experiments.Adversary) -> None:
    out = console()
    load = percent(allocation.allocate(found.system).load)
    words = escape(found.verdict[0].upper() + found.verdict[1:])
    out.print(f"[bold]{words}[/bold] after {len(found.path)} systems; load {load}. Rates:\n")
    show_matrix(found.system, found.system.nominal, "{:.3f}".format)
    out.print("\nMean number in system, in runs that the search did not use:\n")
    results = found.comparison.results
    rows = ((str(each.policy), str(each.mean_number), each.verdict) for each in results)
    show(("policy", ">mean number", "stability"), rows)


def complete_table(incomplete: str) -> list[str]:
    """List the tables whose names start with the text typed so far."""
    return [name for name in reproduction.targets() if name.startswith(incomplete)]


@app.command()
def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]…",
            help="Tables and figures: 2.1, K:7.2, 'Figure 3.4', text, LP; by default all.",
            autocompletion=complete_table,
        ),
    ] = None,
    quick: Annotated[
        bool, option("Run for a twentieth of the published length, for a first look.")
    ] = False,
    full: Annotated[
        bool, option("Run 3.F, 3.G and 4.B for the published length too: many hours.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    on: options.SimulateOn = None,
    fresh: Annotated[
        bool, option("Simulate everything again instead of using stored results.")
    ] = False,
    results: Annotated[
        Path | None,
        path_option("Keep results in this file, and use those in it, whatever computer made them."),
    ] = None,
    folder: Annotated[
        Path | None, option("Draw the figures into a folder.", "FOLDER", "--plots")
    ] = None,
    page: Annotated[
        Path | None,
        path_option("Write a Markdown page, with its data (JSON) and figures beside it."),
    ] = None,
    update: Annotated[
        bool, option("Replace only these tables of the page, and keep its others.")
    ] = False,
    html: Annotated[
        Path | None, option("Write one HTML file with all figures.", "PATH", "--report")
    ] = None,
    json: options.Json = False,
) -> None:
    """Compute published tables and figures again, and judge whether the numbers agree."""
    if quick and full:
        raise model.InputError("--quick and --full exclude each other")
    if update and page is None:
        raise model.InputError("--update needs --page, the page to update")
    chosen = reproduction.choose(tables or [])
    if list_:
        if page or html or folder:
            raise model.InputError(
                "--list simulates nothing: --page, --report and --plots need results"
            )
        rows = [{"name": t.name, "about": t.about, "cells": len(t.cells)} for t in chosen]
        cells = [(t.name, str(len(t.cells)), t.about) for t in chosen]
        finish(lambda: rows, lambda: show(("table", ">cells", "about"), cells), json=json)
        return
    check_files(page=page, report=html)
    if folder is not None and not folder.is_dir():
        check_files(plots=folder)
        if folder.exists():
            raise model.InputError(f"--plots {folder}: expected a folder")
    older = reproduction.read_data(page.with_suffix(".json")) if page and update else None
    longest = reproduction.FULL_ON_GPU if on == experiments.GPU else reproduction.FULL
    scale = reproduction.QUICK if quick else longest if full else reproduction.PUBLISHED
    begin = perf_counter()
    needed = len(reproduction.runs_of(chosen))
    with progress_bar() as tell_of:
        store = kept_results(results, fresh=fresh)
        laboratory = reproduction.Laboratory(scale, seed, threads, on, store)

        def tell(what: str, done: float) -> None:
            tell_of("reproduce", min(done / max(needed, 1), 1.0), note=what)

        laboratory.show = tell
        laboratory.simulate_ahead(reproduction.runs_of(chosen))
        every = (reproduction.reproduce(target, laboratory=laboratory) for target in chosen)
        found = list(chain.from_iterable(every))
    seconds = perf_counter() - begin
    words = {"scale": str(scale), "seed": seed, "seconds": seconds}
    more = {
        "summary": reproduction.summary(found),
        "readings": [each.as_json() for each in reproduction.accounts(reproduction.judged(found))],
    }
    finish(
        lambda: {**words, "targets": [each.as_json() for each in found], **more},
        lambda: _show_reproduction(found, laboratory, seconds, every_cell=bool(tables)),
        json=json,
        files={
            folder: lambda path: _draw(found, path),
            page: lambda path: _write_page(found, laboratory, path, older),
            html: lambda path: report.write_reproduction(found, laboratory, path, seconds),
        },
    )


def _write_page(
    found: list[reproduction.Reproduction],
    laboratory: reproduction.Laboratory,
    page: Path,
    older: reproduction.ReproductionData | None,
) -> None:
    _draw(found, page.parent / "figures")
    data = reproduction.data_of(found, laboratory)
    reproduction.write_page(older.updated(data) if older else data, page)


def _draw(found: list[reproduction.Reproduction], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for each in found:
        if each.picture:
            plots.draw_reproduction(each, folder / each.picture)


def _show_reproduction(
    found: list[reproduction.Reproduction],
    laboratory: reproduction.Laboratory,
    seconds: float,
    *,
    every_cell: bool,
) -> None:
    out, scale = console(), laboratory.scale
    out.print(f"{str(scale)[0].upper()}{str(scale)[1:]}, seed {laboratory.seed}.")
    if scale.share < 1:
        out.print(
            f"Runs are {1 / scale.share:g} times shorter than the published ones and start empty: "
            "busy systems come out low, and verdicts are only a hint."
        )
    for each in found:
        out.print(f"\n[bold]{escape(each.target.name)}[/bold]  {escape(each.target.about)}")
        wrong = (reproduction.Verdict.differs, reproduction.Verdict.errata)
        shown = [cell for cell in each.outcomes if every_cell or cell.judgement.verdict in wrong]
        if shown:
            columns = ("system", "policy", "what", ">published", ">ours", "verdict")
            show(columns, map(_outcome_cells, shown))
        if words := reproduction.lengths(each, laboratory):
            out.print(words)
        for name, counts in reproduction.by_reading(reproduction.judged([each])).items():
            words = reproduction.counted({word: count for word, count in counts.items() if count})
            label = "" if name == reproduction.PRIMARY else f"{escape(name)}: "
            out.print(label + words, style="dim")
    readings = reproduction.accounts(reproduction.judged(found))
    if len(readings) > len({each.source for each in readings}):
        heads = (">concerns", ">agree", ">differ", ">errata", ">explained", ">spoiled")
        out.print("\nCells of each source under each reading:\n")
        show(("source", "reading", *heads), ([str(part) for part in each] for each in readings))
    if words := reproduction.with_adopted(readings, reproduction.ADOPTED, reproduction.FITTED):
        out.print(f"\nWith the adopted readings, {escape(words)}")
    counts = reproduction.summary(found)
    out.print(f"\n[bold]In all:[/bold] {reproduction.counted(counts)}; {seconds:.0f} seconds")
    if laboratory.on == experiments.GPU:
        out.print(f"Work, stored results included: {laboratory.work()}.")


def _outcome_cells(outcome: reproduction.Outcome) -> list[Cell]:
    verdict, reason = str(outcome.judgement.verdict), outcome.judgement.reason
    words = Text(verdict, COLOURS.get(verdict, "dim"))
    if reason:
        words = Text.assemble(words, f" {reason}")
    return [*reproduction.label(outcome.cell), outcome.published, outcome.found, words]
