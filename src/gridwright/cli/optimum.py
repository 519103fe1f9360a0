"""``gridwright optimum``: the best that any policy could do, and how far each is from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json, SystemName, listed
from .run import Horizon, Replications, Seed, progress_bar

if TYPE_CHECKING:
    from ..experiments import Best, Optimum

__all__ = ["optimum"]


def optimum(
    system: SystemName,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            "--policy",
            help="Policies, separated by commas: all of them unless given.",
            metavar="POLICY,…",
            show_default=False,
        ),
    ] = None,
    horizon: Horizon = None,
    replications: Replications = 10,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Compute the least mean number in system, and how far policies are from it."""
    from ..experiments import optimum as run

    chosen = None if policies is None else listed(policies)
    with progress_bar() as report:
        found = run(
            system,
            chosen,
            horizon,
            replications,
            seed,
            progress=lambda doing, done: report("optimum", done, note=doing),
        )
    if json:
        from .output import print_json

        print_json(found.as_json())
    else:
        _show(found)


def _show(found: Optimum) -> None:
    from rich.markup import escape

    from .output import console, show, table

    out = console()
    out.print(f"[bold]{escape(found.system.name)}[/bold]: least mean number in system\n")
    rows = table("", ">mean number", ">error", "")
    rows.add_row("any policy at all", *_best(found.preemptive), "tasks may be interrupted and move")
    rows.add_row("pull and push", *_best(found.pull), "a task ends where it began")
    rows.add_row("lower bound", f"{found.bound:.4g}", "", "from prices alone")
    show(out, rows)
    if not found.policies:
        return
    against = "pull and push" if found.pull else "any policy" if found.preemptive else "the bound"
    out.print(f"\nPolicies, simulated, and how far above the least for {against} they are:\n")
    rows = table("policy", ">mean number", ">gap")
    for each in found.policies:
        stable = each.result.stable
        gap = f"{100 * each.gap:.1f} %" if stable else each.result.stability.word
        rows.add_row(escape(str(each.result.policy)), str(each.mean_number), gap)
    show(out, rows)


def _best(best: Best | None) -> tuple[str, str]:
    return ("too large", "") if best is None else (f"{best.mean_number:.6g}", f"{best.error:.1g}")
