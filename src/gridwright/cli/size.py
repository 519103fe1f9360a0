"""``gridwright size``: the cheapest numbers of machines that hold a load or a percentile."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from . import options
from .options import option, policy_option
from .output import console, finish, kept_results, progress_bar, show
from .packages import experiments


def size(
    system: options.SystemName,
    prices: options.Prices = None,
    load: Annotated[
        float | None, option("Largest long-run load of the fleet, as 0.8.", "LOAD")
    ] = None,
    p95: Annotated[
        float | None,
        option("Largest 95th percentile of the response, in time units.", "TIME", "--p95"),
    ] = None,
    policy: Annotated[str, policy_option("Policy that the fleet runs under, for --p95.")] = "pas",
    horizon: options.Horizon = None,
    replications: options.Replications = 10,
    seed: options.Seed = 1,
    most: Annotated[int, option("Number of fleets to simulate at most.", "NUMBER")] = 100,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Find the cheapest numbers of machines of each group that hold a load or a p95."""
    with progress_bar() as report:
        found = experiments.size(
            system,
            options.prices_of(prices),
            load=load,
            p95=p95,
            policy=policy,
            horizon=horizon,
            replications=replications,
            seed=seed,
            most=most,
            progress=lambda number, name: report("size", number / most, note=f"machines: {name}"),
            **({} if p95 is None else {"threads": threads, "store": kept_results()}),
        )
    finish(found.as_json, lambda: _show(found), json=json)
    if found.found is None:
        raise typer.Exit(1)


def _show(found: experiments.Size) -> None:
    out = console()
    out.print(f"[bold]{escape(found.system.name)}[/bold]", end="")
    if found.policy is not None:
        out.print(f" under {escape(str(found.policy))}", end="")
    out.print(":\n")
    heads = [">price", ">load"] + ([">p95", ">runs", "enough"] if found.p95 is not None else [])
    rows = []
    for each in found.tried:
        cells = [
            *map(str, each.fleet.counts),
            f"{each.fleet.price:g}",
            found.load_words(each.fleet),
        ]
        if each.p95 is not None:
            word = {True: "yes", False: "no", None: "undecided"}[each.holds]
            cells += [str(each.p95), str(each.replications), word]
        rows.append(cells)
    show((*(f">{group}" for group in found.system.groups), *heads), rows)
    out.print(f"\n{found.words}", markup=False)
