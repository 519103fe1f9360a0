"""``gridwright reproduce``."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json
from .run import On, Seed, Threads, kept_results, progress_bar, writable

if TYPE_CHECKING:
    from ..reproduction import Outcome, Reproduction, Scale, Target

__all__ = ["reproduce"]

COLOURS = {"agrees": "green", "differs": "red", "errata": "yellow"}


def complete_table(incomplete: str) -> list[str]:
    """List the tables whose names start with what was typed so far."""
    from ..reproduction import targets

    return [name for name in targets() if name.startswith(incomplete)]


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]…",
            help="Tables and figures: 2.1, K:7.2, 'Figure 3.4', text, LP; all if none is named.",
            autocompletion=complete_table,
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Much shorter runs: a first look.")] = False,
    full: Annotated[
        bool, typer.Option(help="The published length for 3.F and 3.G too: many hours.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    seed: Seed = 1,
    threads: Threads = None,
    on: On = None,
    fresh: Annotated[
        bool, typer.Option(help="Simulate everything again, kept results or not.")
    ] = False,
    plots: Annotated[
        Path | None, typer.Option(help="Draw the figures into a folder.", metavar="FOLDER")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Write a page (Markdown), with its data (JSON) and figures beside it.",
            metavar="PATH",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write everything as one HTML file, figures inside.", metavar="PATH"),
    ] = None,
    json: Json = False,
) -> None:
    """Reproduce published tables and figures, each number beside ours with a verdict."""
    from ..model import InputError
    from ..reproduction import FULL, PUBLISHED, QUICK, Laboratory, choose, runs_of, summary
    from ..reproduction import reproduce as run
    from .output import print_json, written

    if quick and full:
        raise InputError("--quick and --full exclude each other")
    chosen = choose(tables or [])
    if list_:
        if page or report or plots:
            raise InputError("--list simulates nothing: --page, --report and --plots need results")
        _list(chosen, json)
        return
    writable(page, "--page")
    writable(report, "--report")
    if plots is not None and not plots.is_dir():
        writable(plots, "--plots")
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
    if plots is not None or page is not None:
        _draw(found, plots, page)
    if page is not None:
        from ..reproduction import data_of, write_page

        write_page(data_of(found, laboratory), page)
    if report is not None:
        from ..report import write_reproduction

        write_reproduction(found, laboratory, report, seconds)
    if json:
        print_json(
            {
                "scale": str(scale),
                "seed": seed,
                "seconds": seconds,
                "targets": [each.as_json() for each in found],
                "summary": summary(found),
            }
        )
    else:
        _show(found, scale, seed, seconds, every_cell=bool(tables))
        written(plots, page, report)


def _list(chosen: list[Target], json: bool) -> None:
    from rich.markup import escape

    from .output import console, print_json, show, table

    if json:
        print_json([{"name": t.name, "about": t.about, "cells": len(t.cells)} for t in chosen])
        return
    rows = table("table", ">cells", "about")
    for target in chosen:
        rows.add_row(escape(target.name), str(len(target.cells)), escape(target.about))
    show(console(), rows)


def _draw(found: list[Reproduction], plots: Path | None, page: Path | None) -> None:
    from ..plots import can_draw, draw_reproduction
    from ..reproduction import picture_of

    folders = [plots] if plots is not None else []
    if page is not None:
        folders.append(page.parent / "figures")
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for each in found:
            if can_draw(each):
                draw_reproduction(each, folder / picture_of(each))


def _show(
    found: list[Reproduction], scale: Scale, seed: int, seconds: float, *, every_cell: bool
) -> None:
    from rich.markup import escape

    from ..reproduction import Verdict, counted, shortened, summary
    from .output import console, show, table

    out = console()
    out.print(f"{str(scale)[0].upper()}{str(scale)[1:]}, seed {seed}.")
    if scale.share < 1:
        out.print(
            f"Runs are {1 / scale.share:g} times shorter than the published ones and start empty: "
            "busy systems come out low, and verdicts are only a hint."
        )
    for each in found:
        out.print(f"\n[bold]{escape(each.target.name)}[/bold]  {escape(each.target.about)}")
        shown = [
            outcome
            for outcome in each.outcomes
            if every_cell or outcome.judgement.verdict in (Verdict.differs, Verdict.errata)
        ]
        rows = table("system", "policy", "what", ">published", ">ours", "verdict")
        for outcome in shown:
            rows.add_row(*_cells(outcome))
        if shown:
            show(out, rows)
        if words := shortened(each, scale):
            out.print(words)
        counts = {name: count for name, count in summary([each]).items() if count}
        out.print(counted(counts), style="dim")
    out.print(f"\n[bold]In all:[/bold] {counted(summary(found))}; {seconds:.0f} seconds")


def _cells(outcome: Outcome) -> list[str]:
    from rich.markup import escape

    from ..reproduction import label

    verdict = str(outcome.judgement.verdict)
    colour = COLOURS.get(verdict, "dim")
    words = f"[{colour}]{verdict}[/{colour}]"
    if outcome.judgement.reason:
        words += f" {escape(outcome.judgement.reason)}"
    system, policy, what = label(outcome.cell)
    return [escape(system), escape(policy), escape(what), outcome.published, outcome.found, words]
