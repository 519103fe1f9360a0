"""``gridwright simulate`` and ``gridwright compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .argument import Json, Policies, SystemName, listed, plot_path
from .customers import show_customers
from .run import (
    Csv,
    Horizon,
    On,
    Plot,
    Replications,
    Seed,
    Threads,
    Trace,
    Warmup,
    progress_bar,
    writable,
    write_csv,
    write_trace,
)

if TYPE_CHECKING:
    from ..experiments import Comparison, Result
    from ..statistics import Estimate

__all__ = ["compare", "show_comparison", "simulate"]

PolicyName = Annotated[
    str,
    typer.Option(
        help="A policy by name ('gridwright policies'), with parameters (kpb:k=3), or by file.",
        metavar="POLICY",
    ),
]


def simulate(
    system: SystemName,
    policy: PolicyName,
    horizon: Horizon = None,
    warmup: Warmup = 0.0,
    replications: Replications = 10,
    precision: Annotated[
        float | None,
        typer.Option(help="Go on until half widths are within this share of the means."),
    ] = None,
    seed: Seed = 1,
    threads: Threads = None,
    on: On = None,
    csv: Csv = None,
    trace: Trace = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Simulate a system under a policy: mean number, response times, intervals."""
    from ..experiments import simulate as run
    from ..model import InputError
    from .output import print_json, written

    if "," in policy:
        raise InputError(
            f"one policy is simulated; 'gridwright compare {system} --policies {policy}' compares"
        )
    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    writable(trace, "--trace")
    with progress_bar() as report:
        result = run(
            system,
            policy,
            horizon,
            replications,
            seed,
            warmup=warmup,
            precision=precision,
            threads=threads,
            on=on,
            trace=trace is not None,
            progress=lambda done, runs: report(policy, done, runs),
        )
    if csv:
        write_csv((result,), csv)
    if trace:
        write_trace(result, trace)
    _draw((result,), picture)
    if json:
        print_json(result.as_json())
    else:
        show_result(result)
        written(csv, trace, picture)


def compare(
    system: SystemName,
    policies: Policies,
    horizon: Horizon = None,
    warmup: Warmup = 0.0,
    replications: Replications = 10,
    seed: Seed = 1,
    threads: Threads = None,
    on: On = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Print improvements over this policy.", metavar="POLICY"),
    ] = None,
    csv: Csv = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compare policies on the same arrivals: who is better, beyond noise."""
    from ..experiments import compare as run
    from .output import print_json, written

    picture = plot_path(plot) if plot else None
    writable(csv, "--csv")
    names = listed(policies)
    with progress_bar() as report:
        found = run(
            system,
            names,
            horizon,
            replications,
            seed,
            warmup=warmup,
            threads=threads,
            on=on,
            progress=report,
        )
    if reference:
        found.improvement(reference)
    if csv:
        write_csv(found.results, csv)
    _draw(found.results, picture)
    if json:
        print_json(found.as_json())
    else:
        show_comparison(found, reference)
        written(csv, picture)


def _draw(results: tuple[Result, ...], picture: Any) -> None:
    if picture:
        from ..plots import draw_results

        draw_results(results, picture)


def show_result(result: Result) -> None:
    """Print a result: overall, by class, by machine."""
    from rich.markup import escape

    from ..experiments import in_words
    from .output import console, counted, percent, show, table

    out = console()
    runs = counted(len(result.replications), "replication", "replications")
    out.print(
        f"[bold]{escape(result.system.name)}[/bold] under [bold]{escape(str(result.policy))}[/bold]"
        f": {runs} of {result.length}, seed {result.seed}"
    )
    if len(result.replications) == 1:
        out.print("One replication gives no interval; --replications 10 does.")
    rows = table("", "mean")
    over = "" if result.has_interval("mean_number") else " over this run"
    rows.add_row("number in system", result.written("mean_number") + over)
    rows.add_row("response time", result.written("mean_response"))
    for name, found in result.figures.items():
        rows.add_row(in_words(name), str(found))
    if result.lost.mean > 0:
        rows.add_row("tasks lost to failures", str(result.lost))
    if result.policy.kind == "push":
        rows.add_row("machines asked per task", str(result.information))
    if result.refusals:
        rows.add_row("impossible answers refused", f"{result.refusals:,}")
    if result.long_run_load is not None:
        rows.add_row("long-run load", percent(result.long_run_load))
    rows.add_row("stability", result.verdict)
    show(out, rows)
    if result.stable is False and result.long_run_load is not None:
        out.print(f"\n{_what_is_possible(result)}", markup=False)
    out.print("")
    if result.policy.kind == "chain":
        show_customers(result)
    if result.system.random_templates is None:
        show(out, _class_table(result))
    busy = [each.mean for each in result.utilisation]
    out.print(
        f"\nMachines are busy {100 * min(busy):.1f} to {100 * max(busy):.1f} % of the time. "
        f"{result.tasks:,} tasks, {result.tasks / max(result.seconds, 1e-9) / 1e6:.1f} million "
        "a second.",
        style="dim",
    )


def _class_table(result: Result) -> Any:
    from rich.markup import escape

    from ..experiments import in_words
    from .output import table

    columns: dict[str, Sequence[Estimate]] = {
        in_words(name): cells for name, cells in result.by_class.items()
    }
    if not columns:
        parts = {"waiting": "mean_waiting", "queueing": "mean_queueing"}
        for word, name in parts.items():  # push policies queue at machines, pull policies wait
            cells = [getattr(each, name) for each in result.classes]
            if any(cell.mean > 0 for cell in cells):
                columns[word] = cells
        columns["throughput"] = [each.throughput for each in result.classes]
    rows = table("class", ">arrivals", ">response", *(f">{word}" for word in columns))
    for k, each in enumerate(result.classes):
        cells = [each.mean_response, *(cells[k] for cells in columns.values())]
        rows.add_row(escape(each.name), f"{each.arrivals:g}", *map(_shown, cells))
    return rows


def _shown(found: Estimate) -> str:
    from .output import UNKNOWN

    return str(found) if found.mean == found.mean else UNKNOWN


def show_comparison(found: Comparison, reference: str | None = None) -> None:
    """Print a comparison: a row a policy, then what differs beyond noise."""
    from rich.markup import escape

    from .output import console, counted, percent, show

    out = console()
    first = found.results[0]
    runs = counted(len(first.replications), "replication", "replications")
    load = "" if first.long_run_load is None else f"; long-run load {percent(first.long_run_load)}"
    out.print(
        f"[bold]{escape(first.system.name)}[/bold]: {runs} of {first.length}, "
        f"seed {first.seed}, common random numbers{load}\n"
    )
    show(out, _comparison_table(found, reference))
    out.print("")
    lines = [*found.statements]
    if len(found.ranked) > 1 and not lines:
        _show_matrix(out, found)
    lines += [
        f"{result.policy}: {result.refusals:,} impossible answers were refused."
        for result in found.results
        if result.refusals
    ]
    if first.long_run_load is not None and any(r.stable is False for r in found.results):
        lines.append(_what_is_possible(first))
    for line in [*lines, *([""] if lines else []), *found.conclusions]:
        out.print(line, markup=False)


def _show_matrix(out: Any, found: Comparison) -> None:
    """Print the differences between all pairs of policies."""
    from rich.markup import escape

    from .output import show, table

    rows = found.matrix()
    grid = table("policy", *(f">{escape(row['policy'])}" for row in rows))
    for row in rows:
        grid.add_row(*map(escape, row.values()))
    out.print(f"{found.matrix_caption}:", markup=False)
    show(out, grid)
    out.print("")


def _comparison_table(found: Comparison, reference: str | None) -> Any:
    from rich.markup import escape

    from ..experiments import in_words
    from .output import table

    first = found.results[0]
    better = found.improvement(reference) if reference else {}
    others = [name for name in first.criteria if name not in first.further]
    shown = first.compared or (first.further and (*others, *first.further))
    columns = [f">{in_words(name)}" for name in shown]
    if not shown:
        columns = [">number in system", ">response time", ">half width"]
    extra = [f">better than {escape(reference)}"] if reference else []
    judged = any(not (r.stable and r.compared) for r in found.results)
    rows = table("policy", *columns, *extra, *(["stability"] if judged else []))
    for result in found.results:
        name = str(result.policy)
        width = _relative(result) if result.has_interval("mean_response") else ""
        cells = [result.written("mean_number"), result.written("mean_response"), width]
        if shown:
            cells = [str(result.figure(name)) for name in shown]
        if better:
            cells.append("" if better[name] != better[name] else f"{100 * better[name]:.2f} %")
        rows.add_row(escape(name), *cells, *([result.verdict] if judged else []))
    return rows


def _what_is_possible(result: Result) -> str:
    """Say of a system under which a policy is unstable whether any could do better."""
    from ..allocation import allocate, verdict

    return verdict(allocate(result.system)).words


def _relative(result: Result) -> str:
    width = 100 * result.mean_response.half_width / result.mean_response.mean
    return f"{width:.2f} %" if width == width else ""
