"""``gridwright research adversary``: search for a system on which a policy loses most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from .options import Json, PolicyName, Seed, listed, option, path_option
from .output import check_files, console, finish, percent, progress_bar, show, show_matrix
from .packages import allocation, experiments, model, plots


def adversary(
    policy: PolicyName,
    against: Annotated[
        list[str], option("Policies that should do better, separated by commas.", "POLICY,…")
    ],
    classes: Annotated[int, option("Number of task classes of the system.")] = 2,
    machines: Annotated[int, option("Number of machines of the system.")] = 3,
    load: Annotated[
        str, option("Load of the system, or its limits LOW:HIGH.", "LOAD")
    ] = "0.3:0.95",
    steps: Annotated[int, option("Number of systems to try.")] = 300,
    seed: Seed = 1,
    save: Annotated[Path, path_option("Write the system that was found.")] = Path("adversary.toml"),
    plot: Annotated[Path | None, path_option("Draw the system and the policies on it.")] = None,
    json: Json = False,
) -> None:
    """Search for a system on which a policy loses most to others, and save it."""
    check_files(plot=plot, save=save)
    with progress_bar() as report:
        found = experiments.adversary(
            policy,
            listed(against),
            classes,
            machines,
            _limits(load),
            steps,
            seed,
            progress=lambda done, ratio: report("adversary", done, note=f"ratio {ratio:.3f}"),
        )
    finish(
        found.as_json,
        lambda: _show_adversary(found),
        json=json,
        files={
            save: lambda path: path.write_text(found.system.to_toml(), encoding="utf-8"),
            plot: lambda path: plots.draw_adversary(found, path),
        },
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
    show_matrix(found.system, found.system.nominal, ".3f")
    out.print("\nMean number in system, in runs that the search did not use:\n")
    results = found.comparison.results
    rows = ((str(each.policy), str(each.mean_number), each.verdict) for each in results)
    show(("policy", ">mean number", "stability"), rows)
