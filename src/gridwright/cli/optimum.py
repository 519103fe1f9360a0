"""``gridwright research optimum``: the best that any policy can do, and how close each comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from . import options
from .options import policies_option
from .output import console, finish, progress_bar, show, table

if TYPE_CHECKING:
    from ..experiments import Best, Optimum


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
    from ..experiments import optimum as run

    with progress_bar() as report:
        found = run(
            system,
            None if policies is None else options.listed(policies),
            horizon,
            replications,
            seed,
            progress=lambda doing, done: report("optimum", done, note=doing),
        )
    finish(found.as_json, lambda: _show(found), json=json)


def _show(found: Optimum) -> None:
    out = console()
    out.print(f"[bold]{escape(found.system.name)}[/bold]: least mean number in system\n")
    rows = table("", ">mean number", ">error", "")
    rows.add_row("any policy at all", *_best(found.preemptive), "may interrupt and move tasks")
    rows.add_row("pull and push", *_best(found.pull), "a task ends on the machine it starts on")
    rows.add_row("lower bound", f"{found.bound:.4g}", "", "from prices alone")
    show(out, rows)
    if not found.policies:
        return
    against = "pull and push" if found.pull else "any policy" if found.preemptive else "the bound"
    out.print(f"\nSimulated policies, and how far they are above the least for {against}:\n")
    rows = table("policy", ">mean number", ">gap")
    for each in found.policies:
        stable = each.result.stable
        gap = f"{100 * each.gap:.1f} %" if stable else each.result.stability.word
        rows.add_row(escape(str(each.result.policy)), str(each.mean_number), gap)
    show(out, rows)


def _best(best: Best | None) -> tuple[str, str]:
    return ("too large", "") if best is None else (f"{best.mean_number:.6g}", f"{best.error:.1g}")
