"""``gridwright research leaderboard``: all policies on all suites, and the page about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import option, path_option, policies_option
from .output import check_files, console, finish, known, percent, progress_bar, show
from .packages import model, report, traces
from .research import matching

CLASSES, MACHINES, LOAD = "group", "trace:12", 0.7
"""How a trace is made into a system: a class for each group of users, a machine for each of its
partitions."""


def leaderboard(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM…",
            help="Published systems, with * for any part of a name; by default those of the page.",
            autocompletion=options.complete_system,
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        policies_option("Policies, separated by commas; by default every push and pull policy."),
    ] = None,
    random: Annotated[int, option("Number of systems of each family.", "NUMBER")] = 3,
    tasks: Annotated[float, option("Length of a run in tasks, on average.")] = 10_000,
    replications: options.Replications = 5,
    seed: options.Seed = 1,
    trace: Annotated[
        Path | None, option("Also replay a trace of jobs (.swf, .gwf), packed or not.", "TRACE")
    ] = None,
    from_: options.From = "0",
    to: options.To = None,
    threads: options.Threads = None,
    page: Annotated[Path | None, path_option("Write the page of the documentation.")] = None,
    json: options.Json = False,
) -> None:
    """Rank all policies on published, random and QGym's systems, and on a trace."""
    check_files(page=page)
    if random < 0 or not 0 < tasks < float("inf"):
        raise model.InputError("expected --random and --tasks to be positive numbers")
    words = [
        " ".join(["gridwright research leaderboard", *(systems or ())]),
        f"--random {random} --tasks {tasks:g}",
    ]
    words += [f"--replications {replications} --seed {seed}"]
    words += [f"--policies {','.join(options.listed(policies))}"] if policies else []
    named = [name for pattern in systems or () for name in matching(pattern)] or None
    recorded = None
    if trace is not None:
        jobs = traces.read_jobs(trace)
        window = traces.window(jobs, from_, to)
        work = traces.workload(jobs, CLASSES, processors="times", scale=1.0, **window)
        machines = traces.machines_for(work, MACHINES)
        system = traces.system_of(work, machines, name=traces.trace_name(trace), load=LOAD)
        recorded = report.Recorded(system, work)
        words += [f"--trace {trace.name} --from {from_}" + (f" --to {to}" if to else "")]
    words += [f"--page {page}"] if page else []
    with progress_bar() as said:
        found = report.leaderboard(
            None if policies is None else options.listed(policies),
            published=named,
            random=random,
            recorded=recorded,
            tasks=tasks,
            replications=replications,
            seed=seed,
            threads=threads,
            progress=lambda doing, done: said("leaderboard", done, note=doing),
        )
    files = {page: lambda path: found.write_page(path, " ".join(words))}
    finish(found.as_json, lambda: _show(found), json=json, files=files)


def _show(found: report.Leaderboard) -> None:
    systems = len({each.system for each in found.scores})
    console().print(f"{systems} systems, common random numbers\n")
    rows = [
        (
            each.policy,
            percent(each.best),
            known(each.mean, ".3f"),
            known(each.worst, ".4g"),
            each.worst_on,
            known(each.above, ".3f"),
            known(each.p99, ".3f"),
            str(each.unstable),
            str(each.undecided),
        )
        for each in found.standings()
    ]
    heads = (">best on", ">mean ratio", ">worst", "on", ">to optimum", ">p99", ">unstable on")
    show(("policy", *heads, ">undecided on"), rows)
