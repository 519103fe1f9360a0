"""``gridwright research reproduce``: published numbers beside ours."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from .options import Json, On, Seed, Threads, option, path_option
from .output import (
    Cell,
    check_files,
    console,
    finish,
    kept_results,
    progress_bar,
    show,
)
from .packages import model, plots, report, reproduction

COLOURS = {"agrees": "green", "differs": "red", "errata": "yellow"}


def complete_table(incomplete: str) -> list[str]:
    """List the tables whose names start with the text typed so far."""
    return [name for name in reproduction.targets() if name.startswith(incomplete)]


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
    folder: Annotated[
        Path | None, option("Draw the figures into a folder.", "FOLDER", "--plots")
    ] = None,
    page: Annotated[
        Path | None,
        path_option("Write a Markdown page, with its data (JSON) and figures beside it."),
    ] = None,
    html: Annotated[
        Path | None, option("Write one HTML file with all figures.", "PATH", "--report")
    ] = None,
    json: Json = False,
) -> None:
    """Compute published tables and figures again, and judge whether the numbers agree."""
    if quick and full:
        raise model.InputError("--quick and --full exclude each other")
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
    scale = reproduction.QUICK if quick else reproduction.FULL if full else reproduction.PUBLISHED
    begin = perf_counter()
    needed = len(reproduction.runs_of(chosen))
    with progress_bar() as tell_of:
        laboratory = reproduction.Laboratory(scale, seed, threads, on, kept_results(fresh=fresh))

        def tell(what: object, done: float) -> None:
            share = (len(laboratory.results) + done) / max(needed, 1)
            tell_of("reproduce", min(share, 1.0), note=str(what))

        laboratory.show = tell
        every = (reproduction.reproduce(target, laboratory=laboratory) for target in chosen)
        found = list(chain.from_iterable(every))
    seconds = perf_counter() - begin
    words = {"scale": str(scale), "seed": seed, "seconds": seconds}
    counts = reproduction.summary(found)
    finish(
        lambda: {**words, "targets": [each.as_json() for each in found], "summary": counts},
        lambda: _show_reproduction(found, scale, seed, seconds, every_cell=bool(tables)),
        json=json,
        files={
            folder: lambda path: _draw(found, path),
            page: lambda path: _write_page(found, laboratory, path),
            html: lambda path: report.write_reproduction(found, laboratory, path, seconds),
        },
    )


def _write_page(
    found: list[reproduction.Reproduction], laboratory: reproduction.Laboratory, page: Path
) -> None:
    _draw(found, page.parent / "figures")
    reproduction.write_page(reproduction.data_of(found, laboratory), page)


def _draw(found: list[reproduction.Reproduction], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for each in found:
        if each.picture:
            plots.draw_reproduction(each, folder / each.picture)


def _show_reproduction(
    found: list[reproduction.Reproduction],
    scale: reproduction.Scale,
    seed: int,
    seconds: float,
    *,
    every_cell: bool,
) -> None:
    out = console()
    out.print(f"{str(scale)[0].upper()}{str(scale)[1:]}, seed {seed}.")
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
        if words := reproduction.shortened(each, scale):
            out.print(words)
        counts = {name: count for name, count in reproduction.summary([each]).items() if count}
        out.print(reproduction.counted(counts), style="dim")
    counts = reproduction.summary(found)
    out.print(f"\n[bold]In all:[/bold] {reproduction.counted(counts)}; {seconds:.0f} seconds")


def _outcome_cells(outcome: reproduction.Outcome) -> list[Cell]:
    verdict, reason = str(outcome.judgement.verdict), outcome.judgement.reason
    words = Text(verdict, COLOURS.get(verdict, "dim"))
    if reason:
        words = Text.assemble(words, f" {reason}")
    return [*reproduction.label(outcome.cell), outcome.published, outcome.found, words]
