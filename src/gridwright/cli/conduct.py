"""``gridwright run`` and ``gridwright replay``: policies on real machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .argument import Json
from .output import print_json
from .run import writable

if TYPE_CHECKING:
    from ..grid import Mapper
    from ..testbed import Experiment, Run

__all__ = ["replay", "run"]

STOPPED = 130
"""The exit status after Ctrl-C."""

Policy = Annotated[str | None, typer.Option(help="Another policy.", show_default=False)]
Executor = Annotated[
    str | None,
    typer.Option(help="local: a process for each machine; dask.", show_default=False),
]
Address = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler: tcp://HOST:PORT.", metavar="ADDRESS", show_default=False),
]
Unit = Annotated[
    float | None, typer.Option("--time-unit", help="Seconds of a time unit.", show_default=False)
]
Duration = Annotated[float | None, typer.Option(help="Time units.", show_default=False)]
Expect = Annotated[
    bool,
    typer.Option("--expect/--no-expect", help="Simulate what is to be expected of such a run."),
]


def run(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="A name of the catalogue (MGST-1 to MGST-12), or the path of an experiment file.",
            show_default=False,
        ),
    ] = None,
    policy: Policy = None,
    executor: Executor = None,
    address: Address = None,
    time_unit: Unit = None,
    duration: Duration = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same jobs.")] = None,
    corrections: Annotated[
        bool | None,
        typer.Option("--corrections/--no-corrections", help="Whether beliefs follow measurements."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a run that was stopped.", metavar="RUN")
    ] = None,
    save_jobs: Annotated[
        Path | None, typer.Option(help="Write the job list (CSV) and end.", metavar="PATH")
    ] = None,
    save_failures: Annotated[
        Path | None, typer.Option(help="Write the failure trace (CSV) and end.", metavar="PATH")
    ] = None,
    expect: Expect = True,
    json: Json = False,
) -> None:
    """Run an experiment on real machines, and set it beside its simulated twin."""
    from ..model import InputError
    from ..testbed import Experiment, Run, write_faults

    if (experiment is None) == (resume is None):
        raise InputError("expected an EXPERIMENT, or --resume RUN")
    changes = {
        "policy": policy,
        "executor": executor or ("dask" if address else None),
        "address": address,
        "time_unit": time_unit,
        "duration": duration,
        "seed": seed,
        "corrections": corrections,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    if resume is not None:
        if given:
            raise InputError("--resume goes on as before: it takes no other option")
        _conduct(Run.find(resume), {}, json=json, expect=expect)
        return
    chosen = Experiment.find(str(experiment), **given)
    if save_jobs or save_failures:
        if save_jobs and writable(save_jobs, "--save-jobs"):
            chosen.job_list().write(save_jobs, chosen.system)
        if save_failures and writable(save_failures, "--save-failures"):
            write_faults(save_failures, chosen.faults(), chosen.system)
        return
    _conduct(chosen, {}, json=json, expect=expect)


def replay(
    number: Annotated[str, typer.Argument(metavar="RUN", help="The number of a run.")],
    policy: Policy = None,
    executor: Executor = None,
    address: Address = None,
    time_unit: Unit = None,
    expect: Expect = True,
    json: Json = False,
) -> None:
    """Run the same jobs and failures once more, under another policy or on other machines."""
    from ..testbed import Run

    with Run.find(number) as old:
        changes = {
            "policy": policy,
            "executor": executor or ("dask" if address else None),
            "address": address,
            "time_unit": time_unit,
        }
        given = {key: value for key, value in changes.items() if value is not None}
        chosen, same = old.experiment.replace(**given), {"jobs": old.jobs, "faults": old.faults}
    _conduct(chosen, same, json=json, expect=expect)


def _conduct(what: Experiment | Run, same: dict[str, Any], *, json: bool, expect: bool) -> None:
    from ..testbed import Run, conduct, new_run, report
    from .runs import show_report

    run = what if isinstance(what, Run) else new_run(what, **same)
    try:
        with _live(run) as watch:
            conduct(run, watch=watch, warn=_warn)
        found = report(run, expected=expect)
        print_json(found.as_json()) if json else show_report(found)
    except KeyboardInterrupt:
        where = f"run {run.number}" if run.number else str(run.path)
        name = run.number or run.path
        print(
            f"gridwright: {where} was stopped at {run.until:.1f} of {run.experiment.duration:g} "
            f"time units; 'gridwright run --resume {name}' goes on",
            file=sys.stderr,
        )
        raise typer.Exit(STOPPED) from None
    finally:
        run.close()


def _warn(line: str) -> None:
    print(f"gridwright: warning: {line}", file=sys.stderr)


@contextmanager
def _live(run: Run) -> Iterator[Callable[[Mapper], None]]:
    """Show on stderr how a run is doing, where somebody looks."""
    if not sys.stderr.isatty():
        yield lambda mapper: None
        return
    from rich.console import Console
    from rich.live import Live

    from .runs import picture

    live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)

    def watch(mapper: Mapper) -> None:
        live.update(picture(run, mapper))

    with live:
        yield watch
