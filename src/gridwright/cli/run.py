"""``gridwright run``: run an experiment on real machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .options import option, path_option, policy_option
from .output import StoppedError, check_files, known, print_json, show, show_tails, table, warn
from .packages import grid, model, testbed


def run(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="MGST-1 to MGST-12, 4.A, Smith, Wisnesky, or the path of an experiment file.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        policy_option(
            "A policy, by name or by the path of a file, instead of that of the experiment."
        ),
    ] = None,
    on: options.RunOn = None,
    time_unit: options.TimeUnit = None,
    duration: Annotated[float | None, option("Length of the run, in time units.")] = None,
    seed: Annotated[
        int | None, option("Seed of the jobs and failures; the same gives the same.")
    ] = None,
    corrections: Annotated[
        bool | None,
        typer.Option(
            "--corrections/--no-corrections",
            help="Whether the policy sees the rates as measured so far.",
        ),
    ] = None,
    resume: Annotated[
        str | None, option("Continue a run that was stopped, by its number.", "RUN")
    ] = None,
    failures_of: Annotated[
        list[str] | None,
        option(
            "MACHINE=UPTIME/REPAIR: draw the failures of one machine again, with a mean up-time "
            "and a mean repair time of its own, in time units; may be repeated.",
            "TEXT",
        ),
    ] = None,
    save_jobs: Annotated[
        Path | None, path_option("Write the job list as CSV and run nothing.")
    ] = None,
    save_failures: Annotated[
        Path | None, path_option("Write the failure trace as CSV and run nothing.")
    ] = None,
    expect: options.Expect = True,
    report: Annotated[
        bool, option("Print the report at the end.", None, "--report/--no-report")
    ] = True,
    json: options.Json = False,
    executor: options.OldExecutor = None,
    address: options.OldAddress = None,
) -> None:
    """Run an experiment on real machines, and compare it with its simulated twin.

    Options replace what the experiment file says.
    """
    if (experiment is None) == (resume is None):
        raise model.InputError("expected an EXPERIMENT, or --resume RUN")
    given = place(on, executor, address) | given_options(
        policy=policy, time_unit=time_unit, duration=duration, seed=seed, corrections=corrections
    )
    if resume is not None:
        if given or failures_of or save_jobs or save_failures:
            raise model.InputError(
                "--resume can be combined only with --json, --no-expect and --no-report"
            )
        conduct_and_show(testbed.Run.find(resume), {}, json=json, expect=expect, report=report)
        return
    chosen = testbed.Experiment.find(str(experiment), **given)
    for word in failures_of or ():
        chosen = chosen.with_failures_of(*_means(word))
    if save_jobs or save_failures:
        _save(chosen, save_jobs, save_failures, json=json)
    else:
        conduct_and_show(chosen, {}, json=json, expect=expect, report=report)


def _means(word: str) -> tuple[str, float, float]:
    """Parse a value of ``--failures-of``.

    >>> _means("big/1=50/2")
    ('big/1', 50.0, 2.0)
    """
    machine, _, times = word.rpartition("=")
    try:
        up, repair = map(float, times.split("/"))
    except ValueError:
        raise model.InputError(
            f"--failures-of {word}: expected MACHINE=UPTIME/REPAIR, for example 2=50/2"
        ) from None
    return machine, up, repair


def given_options(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def place(on: str | None, executor: str | None, address: str | None) -> dict[str, Any]:
    """Return the key of an experiment that says where it runs."""
    if address and executor not in (None, "dask"):
        raise model.InputError(f"--address is for --executor dask, not {executor}")
    if executor == "dask" and not (on or address):
        raise model.InputError(
            "--executor dask needs the address of a scheduler: --on tcp://HOST:PORT"
        )
    if executor not in (None, "local", "dask"):
        raise model.InputError(f"--executor is {executor!r}; expected 'local' or 'dask'")
    where = on or address or executor
    return {} if where is None else {"on": "" if where == "local" else where}


def _save(
    chosen: testbed.Experiment, jobs: Path | None, failures: Path | None, *, json: bool
) -> None:
    """Write the jobs and failures of an experiment instead of running it."""
    check_files(save_jobs=jobs, save_failures=failures)
    said: dict[str, Any] = {}
    if jobs is not None:
        found = chosen.job_list()
        found.write(jobs, chosen.system)
        said["jobs"] = {"path": str(jobs), "count": len(found)}
    if failures is not None:
        faults = chosen.faults()
        testbed.write_faults(failures, faults, chosen.system)
        said["failures"] = {"path": str(failures), "count": len(faults)}
    lines = [f"{each['path']}: {each['count']} {what}" for what, each in said.items()]
    print_json(said) if json else print(*lines, sep="\n")


def conduct_and_show(
    what: testbed.Experiment | testbed.Run,
    same: dict[str, Any],
    *,
    json: bool,
    expect: bool,
    report: bool = True,
) -> None:
    """Run an experiment, or continue a run, and print its results."""
    run = what if isinstance(what, testbed.Run) else testbed.new_run(what, **same)
    try:
        with _live(run) as watch:
            testbed.conduct(run, watch=watch, warn=lambda line: warn(f"warning: {line}"))
        if report:
            found = testbed.report(run, expected=expect)
            print_json(found.as_json()) if json else show_report(found)
    except KeyboardInterrupt:
        raise StoppedError(_where_it_stopped(run)) from None
    except model.GridwrightError:
        if run is not what and not run.journal.count():
            run.discard()  # it never started
        raise
    finally:
        run.close()


def _where_it_stopped(run: testbed.Run) -> str:
    number = run.number or run.path
    if run.state == "done":
        return f"{run.name} is done; 'gridwright runs show {number}' shows it"
    length = run.experiment.duration
    return (
        f"{run.name} was stopped at {run.until:.1f} of {length:g} time units; "
        f"'gridwright run --resume {number}' continues it"
    )


@contextmanager
def _live(run: testbed.Run) -> Iterator[Callable[[Any], None]]:
    """Show the state of a run on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda mapper: None
        return
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)
    with live:
        yield lambda shown: live.update(_picture(run, shown))


def _picture(run: testbed.Run, shown: Any) -> Any:
    """Return the present state of a run: jobs, classes and machines."""
    from rich.console import Group
    from rich.text import Text

    _, finished, response = run.journal.tally()
    mean = float("nan") if response is None else response
    now, length = shown.now(), run.experiment.duration
    head = Text(
        f"{run.name}: {run.about['policy']}  {now:.1f} of {length:g} time units  "
        f"{finished} finished, mean response {known(mean, '.3f')}"
    )
    if isinstance(shown, testbed.PeerConduct):
        tables = _peers(shown)
    elif isinstance(shown, testbed.LoopConduct):
        tables = _looped(shown)
    else:
        tables = _mapped(shown)
    return Group(head, *tables)


def _looped(conduct: testbed.LoopConduct) -> list[Any]:
    """Return the machines of a batch or chain system, and what each runs."""
    tasks = {machine: str(attempt.task) for machine, attempt in conduct.running.items()}
    rows = [
        (name, "up" if conduct.up[j] else "down", tasks.get(j, ""))
        for j, name in enumerate(conduct.names)
    ]
    return [table(("machine", "state", ">job"), rows)]


def _peers(conduct: testbed.PeerConduct) -> list[Any]:
    """Return the machines that decide for themselves, and how many jobs each has."""
    where = conduct.where
    rows = [
        (name, "up" if where.up[j] else "down", str(len(where.held[j])))
        for j, name in enumerate(conduct.names)
    ]
    return [table(("machine", "state", ">jobs"), rows)]


def _mapped(mapper: grid.Mapper) -> list[Any]:
    """Return the classes and the machines of a mapper."""
    book = mapper.book
    classes = [
        (
            name,
            str(len(book.waiting[i])),
            str(int(book.classes[i].arrived)),
            "no machine can run it now" if i in mapper.stuck else "",
        )
        for i, name in enumerate(mapper.classes)
    ]
    machines = []
    for j, name in enumerate(mapper.executor.machines):
        job = book.running[j]
        state = "down" if not book.machines[j].up else "paused" if book.closed[j] else "up"
        doing = "" if job is None else f"job {job.number} of class {mapper.classes[job.task_class]}"
        machines.append((name, state, doing, str(len(book.own[j]))))
    return [
        table(("class", ">waiting", ">arrived", ""), classes),
        table(("machine", "state", "running", ">queued"), machines),
    ]


def show_report(found: testbed.Report) -> None:
    """Print a run beside its twin, the simulated expectation and published numbers."""
    run, experiment = found.run, found.run.experiment
    unit = experiment.time_unit
    print(
        f"{run.name}: {experiment.name or run.system.name} under {run.about['policy']}, "
        f"{found.statistics.until:g} time units of {unit:g} s, {found.state}"
    )
    jobs = found.statistics.overall
    print(
        f"{jobs.arrived} jobs arrived, {jobs.finished} finished, {jobs.failed} failed, "
        f"{jobs.unfinished} unfinished; lost with a machine {jobs.lost}, timed out {jobs.timed_out}"
    )
    if found.statistics.messages:
        _show_messages(found)
    if found.statistics.outcome:
        run_and_twin = [found.statistics.outcome, found.twin.outcome]
        rows = [
            (name.replace("_", " "), *(f"{each[name]:g}" for each in run_and_twin))
            for name in found.twin.outcome
        ]
        print()
        show(("", ">run", ">twin"), rows)
    print()
    _show_responses(found)
    print()
    measured = {**found.statistics.classes, "overall": found.statistics.overall}
    show_tails({name: each.tails for name, each in measured.items()})
    print()
    _show_gap(found)
    if found.expected is not None and found.expected.low == found.expected.low:
        low, high = found.expected.low, found.expected.high
        mean = f"the mean response is {found.expected.long_run:.4g} time units"
        print(
            f"In the long run {mean if found.expected.settles else 'the number of jobs grows'}; "
            f"19 of 20 runs of this length are within {low:.4g} to {high:.4g} time units."
        )


def _show_messages(found: testbed.Report) -> None:
    def per_job(statistics: grid.Statistics) -> float:
        sent = statistics.messages
        asked = sent.get("question", 0) + sent.get("answer", 0)
        return asked / max(statistics.overall.arrived, 1)

    handed = found.statistics.messages.get("handover", 0)
    print(
        f"Machines sent each other {per_job(found.statistics):.2f} questions and answers for each "
        f"job (the twin {per_job(found.twin):.2f}), and handed over {handed} jobs."
    )


def _show_gap(found: testbed.Report) -> None:
    gap = found.gap
    if gap.twin == 0:
        print("The jobs are too short to compare the run with its twin: its mean response is 0.")
    elif gap.relative != gap.relative:
        print("Too few jobs have finished to compare the run with its twin.")
    else:
        direction = "higher" if gap.relative > 0 else "lower"
        causes = ", ".join(f"{name} {value:+.4f}" for name, value in gap.shares.items())
        print(
            f"The mean response is {100 * abs(gap.relative):.1f} % {direction} than that of the "
            f"twin; by cause, in time units: {causes}."
        )
        if f"{gap.low:.3f}" == f"{gap.high:.3f}":
            print(f"Small timing changes do not affect the twin ({gap.low:.3f}).")
        else:
            print(f"Small timing changes give twins of {gap.low:.3f} to {gap.high:.3f}.")


def _show_responses(found: testbed.Report) -> None:
    published = found.published
    columns = ["class", ">waiting", ">delay", ">response", ">twin", ">arrivals", ">desired"]
    platforms = [name for name in ("testbed", "simulation") if published]
    desired = [*found.run.system.arrival_rates, found.run.system.arrival_rates.sum()]
    measured: dict[str, Any] = {**found.statistics.classes, "overall": found.statistics.overall}
    twins = {**found.twin.classes, "overall": found.twin.overall}
    rows = [
        (
            name,
            known(figures.waiting, ".3f"),
            known(figures.communication, ".4f"),
            known(figures.response, ".3f"),
            known(twins[name].response, ".3f"),
            known(figures.arrival_rate, ".2f"),
            f"{rate:.2f}",
            *(published.get(name, {}).get(each, "") for each in platforms),
        )
        for (name, figures), rate in zip(measured.items(), desired, strict=True)
    ]
    show([*columns, *(f">published {name}" for name in platforms)], rows)
