"""``gridwright research adversary``: search for a system on which a policy loses most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from .options import Json, PolicyName, Seed, listed, option, path_option
from .output import check_files, console, finish, matrix, percent, progress_bar, show, table

if TYPE_CHECKING:
    from ..experiments import Adversary


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
    from ..experiments import adversary as run
    from ..plots import draw_adversary

    check_files(plot=plot, save=save)
    with progress_bar() as report:
        found = run(
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
        lambda: _show(found),
        json=json,
        files={
            save: lambda path: path.write_text(found.system.to_toml(), encoding="utf-8"),
            plot: lambda path: draw_adversary(found, path),
        },
    )


def _limits(text: str) -> tuple[float, float]:
    from ..model import InputError

    low, _, high = text.partition(":")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise InputError(f"--load {text}: expected a number, or LOW:HIGH") from None


def _show(found: Adversary) -> None:
    from ..allocation import allocate

    out = console()
    load = percent(allocate(found.system).load)
    words = escape(found.verdict[0].upper() + found.verdict[1:])
    out.print(f"[bold]{words}[/bold] after {len(found.path)} systems; load {load}. Rates:\n")
    show(out, matrix(found.system, found.system.nominal, ".3f"))
    out.print("\nMean number in system, in runs that the search did not use:\n")
    rows = table("policy", ">mean number", "stability")
    for result in found.comparison.results:
        rows.add_row(escape(str(result.policy)), str(result.mean_number), result.verdict)
    show(out, rows)
