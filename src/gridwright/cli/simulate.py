"""``gridwright simulate`` and ``gridwright compare``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Annotated

from rich.markup import escape

from . import options
from .options import option, path_option
from .output import (
    UNKNOWN,
    check_files,
    console,
    finish,
    headline,
    percent,
    progress_bar,
    show,
    write_rows,
)
from .packages import allocation, experiments, model, plots, simulation, statistics
from .packages import policies as library


def simulate(
    system: options.SystemName,
    policy: options.PolicyName,
    horizon: options.Horizon = None,
    warmup: options.Warmup = 0.0,
    delays: options.Delays = None,
    replications: options.Replications = 10,
    tails: options.Tails = False,
    within: options.Within = "",
    precision: Annotated[
        float | None,
        option(
            "Add replications until the confidence intervals are within ± this share of the "
            "means, for example 0.01."
        ),
    ] = None,
    seed: options.Seed = 1,
    threads: options.Threads = None,
    on: options.SimulateOn = None,
    csv: options.Csv = None,
    trace: Annotated[
        Path | None, path_option("Write the events of the first replication as CSV.")
    ] = None,
    plot: options.Plot = None,
    json: options.Json = False,
) -> None:
    """Simulate a system under one policy: mean number, response times, confidence intervals."""
    if "," in policy:
        raise model.InputError(
            "simulate takes one policy; to compare several: "
            f"gridwright compare {system} --policies {policy}"
        )
    check_files(plot=plot, csv=csv, trace=trace)
    with progress_bar() as report:
        result = experiments.simulate(
            system,
            policy,
            horizon,
            replications,
            seed,
            warmup=warmup,
            delays=options.delays_of(delays),
            tails=tails,
            within=options.limits_of(within),
            precision=precision,
            threads=threads,
            on=on,
            trace=trace is not None,
            progress=lambda done, runs: report(policy, done, runs),
        )
    files = {
        csv: partial(_write_replications, (result,)),
        trace: partial(_write_events, result),
        plot: lambda path: plots.draw_results((result,), path),
    }
    finish(result.as_json, partial(show_result, result), json=json, files=files)


def compare(
    system: options.SystemName,
    policies: options.Policies,
    horizon: options.Horizon = None,
    warmup: options.Warmup = 0.0,
    delays: options.Delays = None,
    replications: options.Replications = 10,
    tails: options.Tails = False,
    within: options.Within = "",
    seed: options.Seed = 1,
    threads: options.Threads = None,
    on: options.SimulateOn = None,
    reference: Annotated[
        str | None,
        option("Also print by how many percent each policy is better than this one.", "POLICY"),
    ] = None,
    csv: options.Csv = None,
    plot: options.Plot = None,
    json: options.Json = False,
) -> None:
    """Compare policies on the same arrivals, and say which differences are beyond noise."""
    check_files(plot=plot, csv=csv)
    names, length = options.listed(policies), (horizon, replications, seed)
    late = options.delays_of(delays)
    with progress_bar() as report:
        found = experiments.compare(
            system,
            names,
            *length,
            warmup=warmup,
            delays=late,
            tails=tails,
            within=options.limits_of(within),
            threads=threads,
            on=on,
            progress=report,
        )
    if reference:
        found.improvement(reference)  # an unknown policy is an error before anything is written
    results = found.results
    files = {
        csv: partial(_write_replications, results),
        plot: lambda path: plots.draw_results(results, path),
    }
    finish(found.as_json, partial(show_comparison, found, reference), json=json, files=files)


def _write_replications(results: tuple[experiments.Result, ...], path: Path) -> None:
    """Write one row for every replication, to check the intervals in a spreadsheet."""
    names = results[0].system.classes
    header = ["policy", "replication", "tasks", "mean_number", "mean_response"]
    header += [f"mean_response {name}" for name in names]
    header += [f"throughput {name}" for name in names]
    header += results[0].figures
    rows = []
    for result in results:
        overall = result.values("mean_response")
        further = [result.values(name) for name in result.figures]
        for number, run in enumerate(result.replications):
            head = [str(result.policy), number + 1, run.tasks, run.mean_number, overall[number]]
            own = [values[number] for values in further]
            rows.append([*head, *run.response.tolist(), *run.throughput.tolist(), *own])
    write_rows(path, header, rows)


def _write_events(result: experiments.Result, path: Path) -> None:
    """Write the events of the first replication in the order of time."""
    events = result.replications[0].trace
    system = result.system
    rows = (
        [
            repr(float(event.time)),
            simulation.KINDS[event.kind],
            int(event.task) + 1 if event.task >= 0 else "",
            system.classes[event.task_class] if event.task_class >= 0 else "",
            system.machines[event.machine] if event.machine >= 0 else "",
        ]
        for event in events[events["time"].argsort(kind="stable")]
    )
    write_rows(path, ["time", "event", "task", "class", "machine"], rows)


def show_result(result: experiments.Result) -> None:
    """Print a result: overall, by class, by machine."""
    out = console()
    out.print(headline(result, f" under [bold]{escape(str(result.policy))}[/bold]"))
    if len(result.replications) == 1:
        out.print("One replication gives no interval; --replications 10 does.")
    over = "" if result.has_interval("mean_number") else " over this run"
    rows = {
        "number in system": result.written("mean_number") + over,
        "response time": result.written("mean_response"),
    }
    rows |= {experiments.in_words(name): str(result.figures[name]) for name in result.further}
    if result.lost.mean > 0:
        rows["tasks lost to failures"] = str(result.lost)
    if result.policy.preempts:
        rows["interruptions of tasks"] = str(result.interrupted)
    if result.policy.kind is library.PUSH:
        rows["machines asked per task"] = str(result.information)
    if result.refusals:
        rows["impossible answers refused"] = f"{result.refusals:,}"
    if result.long_run_load is not None:
        rows["long-run load"] = result.load_words
    if result.peak_load is not None:
        rows["load at the peak"] = percent(result.peak_load)
    show(("", "mean"), [*rows.items(), ("stability", result.verdict)])
    if result.stable is False and result.long_run_load is not None:
        out.print(f"\n{_what_is_possible(result)}", markup=False)
    out.print("")
    if isinstance(result, experiments.ChainResult):
        show_customers(result)
    if result.system.random_templates is None:
        _show_classes(result)
        _show_tails(result)
    busy = [each.mean for each in result.utilisation]
    out.print(
        f"\nMachines are busy {100 * min(busy):.1f} to {100 * max(busy):.1f} % of the time. "
        f"{result.tasks:,} tasks, {result.tasks / max(result.seconds, 1e-9) / 1e6:.1f} million "
        "a second.",
        style="dim",
    )


def _show_classes(result: experiments.Result) -> None:
    columns: dict[str, Sequence[statistics.Estimate]] = {
        experiments.in_words(name): cells for name, cells in result.by_class.items()
    }
    if not columns:
        parts = {"waiting": "mean_waiting", "queueing": "mean_queueing"}
        for word, name in parts.items():  # push policies queue at machines, pull policies wait
            cells = [getattr(each, name) for each in result.classes]
            if any(cell.mean > 0 for cell in cells):
                columns[word] = cells
        columns["throughput"] = [each.throughput for each in result.classes]
    rows = []
    for k, each in enumerate(result.classes):
        cells = [each.mean_response, *(cells[k] for cells in columns.values())]
        known = (str(cell) if cell.mean == cell.mean else UNKNOWN for cell in cells)
        rows.append((each.name, f"{each.arrivals:g}", *known))
    show(("class", ">arrivals", ">response", *(f">{word}" for word in columns)), rows)


def _show_tails(result: experiments.Result) -> None:
    """Print percentiles of the response and shares within times, if they were measured."""
    if not result.tails:
        return
    print()
    rows = [("all", *map(result.written, result.tails))]
    for k, each in enumerate(result.classes):
        found = result.tails_of(k)
        rows.append((each.name, *(result.written(name, found[name]) for name in result.tails)))
    show(("response", *(f">{name}" for name in result.tails)), rows)


def show_comparison(found: experiments.Comparison, reference: str | None = None) -> None:
    """Print a comparison: a row a policy, then what differs beyond noise."""
    out = console()
    known = experiments.with_known_load(found.results)
    load = "" if known is None else f"; long-run load {known.load_words}"
    out.print(f"{headline(found.results[0])}, common random numbers{load}\n")
    _show_policies(found, reference)
    out.print("")
    lines = [*found.statements]
    if len(found.ranked) > 1 and not lines:
        pairs = found.matrix()
        out.print(f"{found.matrix_caption}:", markup=False)
        show(
            ["policy", *(f">{row['policy']}" for row in pairs)],
            (list(row.values()) for row in pairs),
        )
        out.print("")
    lines += [
        f"{result.policy}: {result.refusals:,} impossible answers were refused."
        for result in found.results
        if result.refusals
    ]
    if known is not None and any(r.stable is False for r in found.results):
        lines.append(_what_is_possible(known))
    for line in [*lines, *([""] if lines else []), *found.conclusions]:
        out.print(line, markup=False)


def _show_policies(found: experiments.Comparison, reference: str | None) -> None:
    first = found.results[0]
    better = found.improvement(reference) if reference else {}
    others = [name for name in first.criteria if name not in first.further]
    shown = first.compared or (first.further and (*others, *first.further))
    if first.tails:
        shown = (*(shown or ("mean_number", "mean_response")), *first.tails)
    columns = [f">{experiments.in_words(name)}" for name in shown]
    if not shown:
        columns = [">number in system", ">response time", ">interval"]
    extra = [f">better than {reference}"] if reference else []
    judged = any(not (r.stable and r.compared) for r in found.results)
    rows = []
    for result in found.results:
        name = str(result.policy)
        cells = [result.written(name) for name in shown]
        if not shown:
            means = result.written("mean_number"), result.written("mean_response")
            cells = [*means, _relative(result) if result.has_interval("mean_response") else ""]
        if better:
            cells.append("" if better[name] != better[name] else f"{100 * better[name]:.2f} %")
        rows.append([name, *cells, *([result.verdict] if judged else [])])
    show(["policy", *columns, *extra, *(["stability"] if judged else [])], rows)


def _what_is_possible(result: experiments.Result) -> str:
    """Say of a system under which a policy is unstable whether any could do better."""
    words = allocation.allocate(result.system).verdict.words
    return words.replace(f" {allocation.SIMULATE}", "")  # it was simulated


def _relative(result: experiments.Result) -> str:
    """Say how wide the interval of the mean response is."""
    width = 100 * result.mean_response.half_width / result.mean_response.mean
    return f"± {float(f'{width:.2g}'):g} % of the mean" if width == width else ""


def show_customers(result: experiments.ChainResult) -> None:
    """Print how the customers of chains were served; one without a limit has no margin."""
    if not result.system.customers:
        return
    rows = []
    for each in result.customers:
        counts = str(each.jobs), str(each.failures), str(each.failure_share)
        margins = "", "", "no limit"
        if not isnan(each.least_margin.mean):
            share = each.adequate.mean
            word = "yes" if share == 1 else f"in {100 * share:.0f} % of runs"
            margins = str(each.least_margin), str(each.mean_margin), word
        rows.append((each.name, *counts, *margins))
    show(("customer", ">jobs", ">too late", ">share", ">least δ", ">mean δ", "adequate"), rows)
    print()
