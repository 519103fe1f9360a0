"""``gridwright sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .argument import Json, Policies, SystemName, listed, plot_path
from .run import (
    Csv,
    Horizon,
    On,
    Plot,
    Replications,
    Seed,
    Threads,
    Warmup,
    kept_results,
    progress_bar,
    writable,
    write_rows,
)

if TYPE_CHECKING:
    from ..experiments import Sweep

__all__ = ["sweep"]


def sweep(
    system: SystemName,
    policies: Policies,
    vary: Annotated[
        str,
        typer.Option(
            help="load, arrivals, machines, machines.GROUP, mean_uptime, mean_repair, "
            "mean_interval, "
            "inaccuracy.arrivals, inaccuracy.rates, inaccuracy.availability, queue_limit, tasks, "
            "deadline_factor, assumed.shift, assumed.scale, assumed.execution, or a parameter of "
            "the policies.",
            metavar="WHAT",
        ),
    ],
    values: Annotated[
        str,
        typer.Option(help="Values: 0.5,0.7,0.9 or FIRST:LAST:STEP.", metavar="VALUES"),
    ],
    horizon: Horizon = None,
    warmup: Warmup = 0.0,
    replications: Replications = 10,
    seed: Seed = 1,
    threads: Threads = None,
    on: On = None,
    csv: Csv = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Vary one thing about a system, or a parameter, for several policies."""
    from ..experiments import sweep as run
    from ..policies import find
    from .output import print_json, written

    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    names = listed(policies)
    chosen = [find(name) for name in names]
    points = values_of(values)
    with progress_bar() as report:

        def tell(value: float | str, policy: object, done: float) -> None:
            before = points.index(value) * len(names) + [str(p) for p in chosen].index(str(policy))
            share = (before + done) / (len(points) * len(names))
            report("sweep", share, note=f"{vary} {_word(value)}, {policy}")

        found = run(
            system,
            chosen,
            vary,
            points,
            horizon,
            replications,
            seed,
            warmup=warmup,
            threads=threads,
            on=on,
            store=kept_results(),
            progress=tell,
        )
    if csv:
        _write(found, csv)
    if picture:
        from ..plots import draw_sweep

        draw_sweep(found, picture)
    if json:
        print_json(found.as_json())
    else:
        _show(found)
        written(csv, picture)


def values_of(text: str) -> list[float | str]:
    """Read values: separated by commas, or from a first to a last by a step.

    >>> values_of("0.5:0.9:0.2"), values_of("1,2.5,vertex")
    ([0.5, 0.7, 0.9], [1.0, 2.5, 'vertex'])
    """
    from ..model import InputError

    wrong = InputError(f"--values {text}: expected values, as 0.5,0.7,0.9 or 0.5:0.9:0.1")
    if ":" not in text:
        return [_value(word.strip()) for word in text.split(",") if word.strip()]
    try:
        first, last, step = (float(word) for word in text.split(":"))
    except ValueError:
        raise wrong from None
    if not (step > 0 and last >= first and (last - first) / step < 10_000):
        raise wrong
    return [round(first + k * step, 12) for k in range(int((last - first) / step + 1e-9) + 1)]


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _value(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _write(found: Sweep, path: Path) -> None:
    header = [found.vary, "policy", "stable", "long_run_load"]
    criteria = found.points[0].results[0].criteria
    for metric in criteria:
        header += [metric, f"{metric} low", f"{metric} high"]
    rows = [
        [*(row[key] for key in ("value", "policy", "stable", "long_run_load")), *intervals]
        for row in found.rows()
        for intervals in [[n for m in criteria for n in row[m]]]
    ]
    write_rows(path, header, rows)


def _show(found: Sweep) -> None:
    from rich.markup import escape

    from ..experiments import in_words
    from .output import console, counted, percent, show, table, with_verdict

    out = console()
    first = found.points[0].results[0]
    metric = first.criteria[-1]
    runs = counted(len(first.replications), "replication", "replications")
    out.print(
        f"[bold]{escape(found.system.name)}[/bold]: {runs} of {first.length}, "
        f"seed {first.seed}, common random numbers; {in_words(metric)}\n"
    )
    loads = [max(r.long_run_load or 0.0 for r in point.results) for point in found.points]
    extra = [">long-run load"] if any(loads) else []
    rows = table(escape(found.vary), *extra, *(f">{escape(policy)}" for policy in found.policies))
    for point, load in zip(found.points, loads, strict=True):
        cells = [with_verdict(r, metric) for r in point.results]
        rows.add_row(escape(_word(point.value)), *([percent(load)] if extra else []), *cells)
    show(out, rows)
    unranked = [r for point in found.points for r in point.results if not r.is_ranked]
    if needed := max((r.stability.needed or 0.0 for r in unranked), default=0.0):
        out.print(f"\nUndecided: a horizon of {needed:,g} time units would probably tell.")
