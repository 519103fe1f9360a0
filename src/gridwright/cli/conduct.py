"""``gridwright run``: policies on real machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .argument import Json
from .output import StoppedError, print_json
from .run import writable
from .runs import picture, show_report

if TYPE_CHECKING:
    from ..grid import Mapper
    from ..testbed import Experiment, Run

__all__ = [
    "Address",
    "Executor",
    "Expect",
    "Unit",
    "conduct_and_show",
    "given_options",
    "run",
]

Policy = Annotated[
    str | None,
    typer.Option(help="Another policy than it names: a name or a file.", show_default=False),
]
Executor = Annotated[
    str | None,
    typer.Option(
        help="What machines are: local, processes of this computer; dask, workers of a cluster.",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The cluster's scheduler: tcp://HOST:PORT.", metavar="ADDRESS", show_default=False
    ),
]
Unit = Annotated[
    float | None, typer.Option("--time-unit", help="Seconds in a time unit.", show_default=False)
]
Duration = Annotated[
    float | None, typer.Option(help="Time units until the end.", show_default=False)
]
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
    seed: Annotated[int | None, typer.Option(help="Same seed, same jobs and failures.")] = None,
    corrections: Annotated[
        bool | None,
        typer.Option(
            "--corrections/--no-corrections", help="Whether rates believed follow those measured."
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with a run that was stopped, by number.", metavar="RUN"),
    ] = None,
    save_jobs: Annotated[
        Path | None, typer.Option(help="Only write the job list (CSV).", metavar="PATH")
    ] = None,
    save_failures: Annotated[
        Path | None, typer.Option(help="Only write the failure trace (CSV).", metavar="PATH")
    ] = None,
    expect: Expect = True,
    json: Json = False,
) -> None:
    """Run an experiment on real machines, and set it beside its simulated twin.

    What options do not say is as the experiment has it.
    """
    from ..model import InputError
    from ..testbed import Experiment, Run

    if (experiment is None) == (resume is None):
        raise InputError("expected an EXPERIMENT, or --resume RUN")
    given = given_options(
        policy=policy,
        executor=executor,
        address=address,
        time_unit=time_unit,
        duration=duration,
        seed=seed,
        corrections=corrections,
    )
    if resume is not None:
        if given or save_jobs or save_failures:
            raise InputError("--resume goes on as before: of the options only --json, --no-expect")
        conduct_and_show(Run.find(resume), {}, json=json, expect=expect)
        return
    chosen = Experiment.find(str(experiment), **given)
    if save_jobs or save_failures:
        _save(chosen, save_jobs, save_failures, json=json)
        return
    conduct_and_show(chosen, {}, json=json, expect=expect)


def given_options(**changes: Any) -> dict[str, Any]:
    """Return the options that were given; an address is that of a cluster."""
    from ..model import InputError

    given = {key: value for key, value in changes.items() if value is not None}
    executor, address = given.pop("executor", None), given.pop("address", None)
    if address and executor not in (None, "dask"):
        raise InputError(f"--address is for --executor dask, not {executor}")
    if executor == "dask" and not address:
        raise InputError("--executor dask needs --address, that of a scheduler: tcp://HOST:PORT")
    if executor not in (None, "local", "dask"):
        raise InputError(f"--executor is {executor!r}; expected 'local' or 'dask'")
    if executor or address:
        given["on"] = address or ""
    return given


def _save(chosen: Experiment, jobs: Path | None, failures: Path | None, *, json: bool) -> None:
    """Write what is to come, in place of running it."""
    from ..testbed import write_faults

    said: dict[str, Any] = {}
    if writable(jobs, "--save-jobs") is not None and jobs is not None:
        found = chosen.job_list()
        found.write(jobs, chosen.system)
        said["jobs"] = {"path": str(jobs), "count": len(found)}
    if writable(failures, "--save-failures") is not None and failures is not None:
        faults = chosen.faults()
        write_faults(failures, faults, chosen.system)
        said["failures"] = {"path": str(failures), "count": len(faults)}
    if json:
        print_json(said)
        return
    for what, each in said.items():
        print(f"{each['path']}: {each['count']} {what}")


def conduct_and_show(
    what: Experiment | Run, same: dict[str, Any], *, json: bool, expect: bool
) -> None:
    """Conduct an experiment, or go on with a run, and show how it fared."""
    from ..model import InputError
    from ..testbed import Run, conduct, new_run, report

    run = what if isinstance(what, Run) else new_run(what, **same)
    try:
        with _live(run) as watch:
            conduct(run, watch=watch, warn=_warn)
        found = report(run, expected=expect)
        print_json(found.as_json()) if json else show_report(found)
    except KeyboardInterrupt:
        raise StoppedError(_where_it_stopped(run)) from None
    except InputError:
        if run is not what and not run.journal.count():
            run.discard()  # it has never begun
        raise
    finally:
        run.close()


def _warn(line: str) -> None:
    print(f"gridwright: warning: {line}", file=sys.stderr)


def _where_it_stopped(run: Run) -> str:
    number = run.number or run.path
    if run.state == "done":
        return f"{run.name} is done; 'gridwright runs show {number}' shows it"
    length = run.experiment.duration
    return (
        f"{run.name} was stopped at {run.until:.1f} of {length:g} time units; "
        f"'gridwright run --resume {number}' goes on"
    )


@contextmanager
def _live(run: Run) -> Iterator[Callable[[Mapper], None]]:
    """Show on stderr how a run is doing, where somebody looks."""
    if not sys.stderr.isatty():
        yield lambda mapper: None
        return
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)

    def watch(mapper: Mapper) -> None:
        live.update(picture(run, mapper))

    with live:
        yield watch
