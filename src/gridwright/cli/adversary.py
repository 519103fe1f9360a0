"""``gridwright adversary``: search for the system on which a policy loses most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json, listed, plot_path
from .run import Seed, progress_bar, writable

if TYPE_CHECKING:
    from ..experiments import Adversary

__all__ = ["adversary"]


def adversary(
    policy: Annotated[str, typer.Option(help="The policy to search against.", metavar="POLICY")],
    against: Annotated[
        str, typer.Option(help="Those it should lose to, separated by commas.", metavar="POLICY,…")
    ],
    classes: Annotated[int, typer.Option(help="Classes of the system.")] = 2,
    machines: Annotated[int, typer.Option(help="Machines of the system.")] = 3,
    load: Annotated[
        str, typer.Option(help="The load, or its limits: LOW:HIGH.", metavar="LOAD")
    ] = "0.3:0.95",
    steps: Annotated[int, typer.Option(help="Systems tried.")] = 300,
    seed: Seed = 1,
    save: Annotated[
        Path, typer.Option(help="Where the system found is written.", metavar="PATH")
    ] = Path("adversary.toml"),
    plot: Annotated[
        Path | None, typer.Option(help="Draw the system and the policies on it.", metavar="PATH")
    ] = None,
    json: Json = False,
) -> None:
    """Search for the system where a policy loses most to others, and save it."""
    from ..experiments import adversary as run
    from .output import print_json, written

    picture = plot_path(plot) if plot else None
    writable(save, "--save")
    limits = _limits(load)
    with progress_bar() as report:
        found = run(
            policy,
            listed(against),
            classes,
            machines,
            limits,
            steps,
            seed,
            progress=lambda done, ratio: report("adversary", done, note=f"ratio {ratio:.3f}"),
        )
    save.write_text(found.system.to_toml(), encoding="utf-8")
    if picture:
        from ..plots import draw_adversary

        draw_adversary(found, picture)
    if json:
        print_json(found.as_json())
    else:
        _show(found)
        written(save, picture)


def _limits(text: str) -> tuple[float, float]:
    from ..model import InputError

    low, _, high = text.partition(":")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise InputError(f"--load {text}: expected a number, or LOW:HIGH") from None


def _show(found: Adversary) -> None:
    from rich.markup import escape

    from ..allocation import allocate
    from .matrix import matrix
    from .output import console, percent, show, table

    out = console()
    load = percent(allocate(found.system).load)
    words = escape(found.verdict[0].upper() + found.verdict[1:])
    out.print(f"[bold]{words}[/bold] after {len(found.path)} systems; load {load}. Rates:\n")
    show(out, matrix(found.system, found.system.nominal, ".3f"))
    out.print("\nMean number in system, in runs that the search has not seen:\n")
    rows = table("policy", ">mean number", "stability")
    for result in found.comparison.results:
        rows.add_row(escape(str(result.policy)), str(result.mean_number), result.verdict)
    show(out, rows)
