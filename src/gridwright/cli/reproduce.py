"""``gridwright research reproduce``: published numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from .options import Json, On, Seed, Threads, option, path_option
from .output import (
    check_files,
    console,
    finish,
    kept_results,
    print_json,
    progress_bar,
    show,
    table,
)

if TYPE_CHECKING:
    from ..reproduction import Laboratory, Outcome, Reproduction, Scale, Target

COLOURS = {"agrees": "green", "differs": "red", "errata": "yellow"}


def complete_table(incomplete: str) -> list[str]:
    """List the tables whose names start with the text typed so far."""
    from ..reproduction import targets

    return [name for name in targets() if name.startswith(incomplete)]


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
        bool, option("Run 3.F and 3.G for the published length too: many hours.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    seed: Seed = 1,
    threads: Threads = None,
    on: On = None,
    fresh: Annotated[
        bool, option("Simulate everything again instead of using stored results.")
    ] = False,
    plots: Annotated[Path | None, path_option("Draw the figures into a folder.", "FOLDER")] = None,
    page: Annotated[
        Path | None,
        path_option("Write a Markdown page, with its data (JSON) and figures beside it."),
    ] = None,
    report: Annotated[Path | None, path_option("Write one HTML file with all figures.")] = None,
    json: Json = False,
) -> None:
    """Compute published tables and figures again, and judge whether the numbers agree."""
    from ..model import InputError
    from ..report import write_reproduction
    from ..reproduction import FULL, PUBLISHED, QUICK, Laboratory, choose, runs_of, summary
    from ..reproduction import reproduce as run

    if quick and full:
        raise InputError("--quick and --full exclude each other")
    chosen = choose(tables or [])
    if list_:
        if page or report or plots:
            raise InputError("--list simulates nothing: --page, --report and --plots need results")
        _list(chosen, json)
        return
    check_files(page=page, report=report)
    if plots is not None and not plots.is_dir():
        check_files(plots=plots)
        if plots.exists():
            raise InputError(f"--plots {plots}: expected a folder")
    scale = QUICK if quick else FULL if full else PUBLISHED
    begin = perf_counter()
    needed = len(runs_of(chosen))
    with progress_bar() as tell_of:
        laboratory = Laboratory(scale, seed, threads, on, kept_results(fresh=fresh))

        def tell(what: object, done: float) -> None:
            share = (len(laboratory.results) + done) / max(needed, 1)
            tell_of("reproduce", min(share, 1.0), note=str(what))

        laboratory.show = tell
        found = [each for target in chosen for each in run(target, laboratory=laboratory)]
    seconds = perf_counter() - begin
    words = {"scale": str(scale), "seed": seed, "seconds": seconds}
    finish(
        lambda: {**words, "targets": [each.as_json() for each in found], "summary": summary(found)},
        lambda: _show(found, scale, seed, seconds, every_cell=bool(tables)),
        json=json,
        files={
            plots: lambda path: _draw(found, path),
            page: lambda path: _write_page(found, laboratory, path),
            report: lambda path: write_reproduction(found, laboratory, path, seconds),
        },
    )


def _list(chosen: list[Target], json: bool) -> None:
    if json:
        print_json([{"name": t.name, "about": t.about, "cells": len(t.cells)} for t in chosen])
        return
    rows = table("table", ">cells", "about")
    for target in chosen:
        rows.add_row(escape(target.name), str(len(target.cells)), escape(target.about))
    show(console(), rows)


def _write_page(found: list[Reproduction], laboratory: Laboratory, page: Path) -> None:
    from ..reproduction import data_of, write_page

    _draw(found, page.parent / "figures")
    write_page(data_of(found, laboratory), page)


def _draw(found: list[Reproduction], folder: Path) -> None:
    from ..plots import draw_reproduction

    folder.mkdir(exist_ok=True)
    for each in found:
        if each.picture:
            draw_reproduction(each, folder / each.picture)


def _show(
    found: list[Reproduction], scale: Scale, seed: int, seconds: float, *, every_cell: bool
) -> None:
    from ..reproduction import Verdict, counted, shortened, summary

    out = console()
    out.print(f"{str(scale)[0].upper()}{str(scale)[1:]}, seed {seed}.")
    if scale.share < 1:
        out.print(
            f"Runs are {1 / scale.share:g} times shorter than the published ones and start empty: "
            "busy systems come out low, and verdicts are only a hint."
        )
    for each in found:
        out.print(f"\n[bold]{escape(each.target.name)}[/bold]  {escape(each.target.about)}")
        rows = table("system", "policy", "what", ">published", ">ours", "verdict")
        for outcome in each.outcomes:
            if every_cell or outcome.judgement.verdict in (Verdict.differs, Verdict.errata):
                rows.add_row(*_cells(outcome))
        if rows.row_count:
            show(out, rows)
        if words := shortened(each, scale):
            out.print(words)
        counts = {name: count for name, count in summary([each]).items() if count}
        out.print(counted(counts), style="dim")
    out.print(f"\n[bold]In all:[/bold] {counted(summary(found))}; {seconds:.0f} seconds")


def _cells(outcome: Outcome) -> list[str]:
    from ..reproduction import label

    verdict = str(outcome.judgement.verdict)
    colour = COLOURS.get(verdict, "dim")
    words = f"[{colour}]{verdict}[/{colour}]"
    if outcome.judgement.reason:
        words += f" {escape(outcome.judgement.reason)}"
    system, policy, what = label(outcome.cell)
    return [escape(system), escape(policy), escape(what), outcome.published, outcome.found, words]
