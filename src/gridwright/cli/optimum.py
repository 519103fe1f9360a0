"""``gridwright research optimum``: the best that any policy can do, and how close each comes."""

from __future__ import annotations

from typing import Annotated

from rich.markup import escape

from . import options
from .options import policies_option
from .output import console, finish, progress_bar, show
from .packages import experiments


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
    out.print(f"[bold]{escape(found.system.name)}[/bold]: least mean number in system\n")
    rows = (
        ("any policy at all", *_best(found.preemptive), "may interrupt and move tasks"),
        ("pull and push", *_best(found.pull), "a task ends on the machine it starts on"),
        ("lower bound", f"{found.bound:.4g}", "", "from prices alone"),
    )
    show(("", ">mean number", ">error", ""), rows)
    if not found.policies:
        return
    against = "pull and push" if found.pull else "any policy" if found.preemptive else "the bound"
    out.print(f"\nSimulated policies, and how far they are above the least for {against}:\n")
    gaps = []
    for each in found.policies:
        stable = each.result.stable
        gap = f"{100 * each.gap:.1f} %" if stable else each.result.stability.word
        gaps.append((str(each.result.policy), str(each.mean_number), gap))
    show(("policy", ">mean number", ">gap"), gaps)


def _best(best: experiments.Best | None) -> tuple[str, str]:
    return ("too large", "") if best is None else (f"{best.mean_number:.6g}", f"{best.error:.1g}")
