"""``gridwright grid``: serve a grid, and use one that is served."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from concurrent.futures import CancelledError
from contextlib import closing
from pathlib import Path
from threading import Event
from time import sleep
from typing import Annotated, Any

import typer

from .options import Json, WithinLive, by_name, limits_of, listed, option, policy_option
from .output import (
    CommandFailedError,
    StoppedError,
    console,
    finish,
    known,
    print_json,
    show,
    show_tails,
    warn,
)
from .packages import catalogue, grid, model, policies, progress, service
from .packages import statistics as numbers

app = typer.Typer(help="Serve a grid, submit commands to it, and look at its jobs.")

Where = Annotated[
    str, option("Name of a grid that is served on this computer, or tls://HOST:PORT.", "GRID")
]
Jobs = Annotated[
    list[str], typer.Argument(metavar="JOB…", help="Keys or numbers of jobs; a key comes first.")
]
NAME = "grid"
"""The name of a grid that is given none."""


@app.command()
def serve(
    name: Annotated[str, option("Name by which clients find the grid.", "NAME")] = NAME,
    policy: Annotated[str, policy_option("Policy that decides where jobs run.")] = "pas_dg",
    machines: Annotated[
        str | None, option("How many machines, or their names separated by commas.", "N|NAMES")
    ] = None,
    slots: Annotated[
        str, option("Jobs at the same time on each machine, or as big=8,small=2.", "N|NAME=N,…")
    ] = "1",
    system: Annotated[
        str,
        option(
            "System whose machines, classes and rates the grid has; batch and chain policies need "
            "one, in seconds.",
            "SYSTEM",
        ),
    ] = "",
    on: Annotated[
        str | None, option("Dask scheduler whose workers run the jobs; by default local processes.")
    ] = None,
    host: Annotated[str, option("Address to listen on; others than loopback need TLS.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, option("Port to listen on; 0: a free one.")] = 0,
    tls_cert: Annotated[str, option("File of the certificate of this server.")] = "",
    tls_key: Annotated[str, option("File of the key to the certificate.")] = "",
    timeout: Annotated[float, option("Seconds that an attempt may take; 0: without limit.")] = 0.0,
    retries: Annotated[int, option("How often a job is tried again after its process died.")] = 2,
    json: Json = False,
) -> None:
    """Run a grid as a service, until Ctrl-C.

    Jobs and results are kept under its name: a grid that was stopped or killed goes on with them.
    """
    grid.validation.check_name(name, "--name")
    if "/" in name or name.startswith("."):
        raise model.InputError(f"--name is {name!r}; expected a name without '/'")
    if not 0 <= port <= 65535:
        raise model.InputError(f"--port is {port}; expected 0 to 65535")
    chosen = None if machines is None else int(machines) if machines.isdigit() else listed(machines)
    known = _known(policy, system) if system else {}
    if known and chosen is not None:
        raise model.InputError("--machines and --system both name machines; give one of them")
    journal = grid.ownership.home() / "grids" / f"{name}.sqlite"
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    farm = service.ServedGrid(
        policy,
        known.pop("machines", chosen),
        slots=_slots(slots),
        on=on,
        journal=journal,
        timeout=timeout,
        retries=retries,
        **known,
    )
    try:
        served = service.serve(farm, name, host, port, tls_cert, tls_key)
        place = served.place
        words = {"name": name, "address": place.address, "token": place.token}
        lines = [
            f"grid {name} at {place.address}; Ctrl-C stops it",
            f"here: gw.connect({name!r}), or 'gridwright grid submit --on {name} -- COMMAND'",
            f"elsewhere: gw.connect({place.address!r}, token={place.token!r})",
        ]
        print_json({**words, "journal": str(journal)}) if json else print("\n".join(lines))
        sys.stdout.flush()  # scripts wait for this line
        try:
            service.wait_for_end(stop, lambda: farm.mapper.broken)
        except KeyboardInterrupt:
            raise StoppedError(
                "stopped; jobs that have not ended go on with the next start"
            ) from None
        finally:
            served.close()
        if farm.mapper.broken:
            raise model.GridError(f"the grid has stopped: {farm.mapper.broken}")
    finally:
        farm.close()


@app.command()
def submit(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="A command.")],
    on: Where = NAME,
    key: Annotated[str | None, option("Run it only if no job with this key has finished.")] = None,
    task_class: Annotated[
        str | None, option("Class of the job; by default its program.", "NAME", "--class")
    ] = None,
    priority: Annotated[int, option("Jobs of a higher priority start first.")] = 0,
    timeout: Annotated[float | None, option("Seconds that an attempt may take.")] = None,
    deadline: Annotated[
        float | None, option("Seconds by which it should have ended, for batch policies.")
    ] = None,
    retries: Annotated[int | None, option("How often it is tried again.")] = None,
    machine: Annotated[str | None, option("The only machine that may run it.")] = None,
    cwd: Annotated[Path | None, option("Folder to run it in; by default this one.")] = None,
    env: Annotated[list[str] | None, option("Environment variable, NAME=VALUE; repeat.")] = None,
    wait: Annotated[bool, option("Wait for it, and print what it writes.")] = False,
    json: Json = False,
) -> None:
    """Submit a command to a grid; print the number of the job.

    With --wait the exit status is that of the command.
    """
    wrong = [each for each in env or () if "=" not in each]
    if wrong:
        raise model.InputError(f"--env is {wrong[0]!r}; expected NAME=VALUE")
    variables = dict(each.split("=", 1) for each in env or ())
    line = command[0] if len(command) == 1 else shlex.join(command)
    with _connected(on) as farm:
        chosen = farm.options(
            task_class=task_class,
            retries=retries,
            timeout=timeout,
            priority=priority,
            key=key,
            machine=machine,
            deadline=deadline,
        )
        future = chosen.run_line(line, cwd=(cwd or Path.cwd()).absolute(), env=variables)
        if not wait:
            farm.close()
            finish(
                lambda: {"job": future.number, "key": key},
                lambda: print(f"job {future.number}"),
                json=json,
            )
            return
        try:
            found: Any = future.result()
        except subprocess.CalledProcessError as error:
            found = error
        words = {
            "job": future.number,
            "key": key,
            "machine": future.machine,
            "status": found.returncode,
            "stdout": found.stdout,
            "stderr": found.stderr,
        }

        def write() -> None:
            sys.stdout.write(found.stdout)
            sys.stderr.write(found.stderr)

        finish(lambda: words, write, json=json)
        if found.returncode:
            raise CommandFailedError(found.returncode if found.returncode > 0 else 1)


@app.command()
def status(on: Where = NAME, json: Json = False) -> None:
    """Show the state of a grid: jobs, machines, classes."""
    with _connected(on) as farm:
        now = farm.status()
    finish(lambda: now, lambda: console().print(progress.table_of(now)), json=json)


@app.command()
def statistics(on: Where = NAME, within: WithinLive = "", json: Json = False) -> None:
    """Show the waiting, the response and its percentiles of the jobs so far, in seconds."""
    with _connected(on) as farm:
        found = farm.statistics(limits := limits_of(within))
    figures = {**found["classes"], "all": found["overall"]}
    tails = numbers.tail_names(limits)
    counts = ("arrived", "finished", "failed", "cancelled", "unfinished")
    means = ("waiting", "communication", "execution", "response")
    rows = [
        (
            name,
            *(str(each[count]) for count in counts),
            *(known(each[mean], ".4g") for mean in means),
        )
        for name, each in figures.items()
    ]

    def tables() -> None:
        show(("class", *(f">{name}" for name in (*counts, *means))), rows)
        print()
        show_tails({name: {tail: each[tail] for tail in tails} for name, each in figures.items()})

    finish(lambda: found, tables, json=json)


@app.command()
def top(on: Where = NAME) -> None:
    """Show the state of a grid live, until Ctrl-C; once if the output is not a terminal."""
    from rich.live import Live

    with (
        _connected(on) as farm,
        Live(progress.table_of(farm.status()), console=console()) as screen,
    ):
        try:
            while sys.stdout.isatty():
                sleep(progress.INTERVAL)
                screen.update(progress.table_of(farm.status()))
        except KeyboardInterrupt:
            return


@app.command()
def jobs(
    on: Where = NAME,
    stage: Annotated[
        str, option("Only jobs that are in this stage, for example 'waiting' or 'failed'.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest jobs to list.")] = 20,
    json: Json = False,
) -> None:
    """List the newest jobs of a grid."""
    if stage and stage not in grid.Stage.__members__:
        raise model.InputError(f"--stage is {stage!r}; expected one of {', '.join(grid.Stage)}")
    with _connected(on) as farm:
        page = farm.jobs(limit=limit, stage=stage, sort="number", descending=True)
    columns = (">job", "key", "class", "stage", "machine", "client", ">attempts", "error")
    rows = []
    for each in page["jobs"]:
        error = (each["error"] or "").strip().splitlines()[-1:] or [""]
        about = (each["key"], each["class"], each["stage"], each["machine"], each["client"])
        words = [str(word or "") for word in about]
        rows.append((str(each["number"]), *words, str(each["attempt"]), *error))
    finish(lambda: page, lambda: show(columns, rows), json=json)


@app.command()
def results(jobs: Jobs, on: Where = NAME, json: Json = False) -> None:
    """Print the results of jobs, by number or key; wait for those that have not ended."""
    with _connected(on) as farm:
        futures = [_find(farm, job) for job in jobs]
        found = [{"job": job, **_outcome(each)} for job, each in zip(jobs, futures, strict=True)]

    def write() -> None:
        for each in found:
            sys.stdout.write(each["result"] or "")
            sys.stderr.write(each.get("stderr") or "")

    finish(lambda: {"results": found}, write, json=json)
    wrong = [f"job {each['job']} {each['error']}" for each in found if each["error"]]
    for line in wrong:
        warn(line)
    if wrong:
        raise typer.Exit(1)


def _outcome(future: grid.JobFuture) -> dict[str, Any]:
    """Wait for the end of a job; return its result, and in words what was wrong."""
    try:
        found: Any = future.result()
    except subprocess.CalledProcessError as failed:
        found = failed
    except CancelledError:
        return {"result": None, "error": "was cancelled"}
    except Exception as error:
        name = "" if isinstance(error, model.GridwrightError) else f"{type(error).__name__}: "
        return {"result": None, "error": f"failed: {name}{error}"}
    if not hasattr(found, "returncode"):
        return {"result": f"{found!r}\n", "error": None}
    status = found.returncode
    wrong = f"failed: its command ended with status {status}" if status else None
    return {"result": found.stdout, "error": wrong, "status": status, "stderr": found.stderr}


@app.command()
def cancel(jobs: Jobs, on: Where = NAME, json: Json = False) -> None:
    """Cancel jobs that wait or run."""
    with _connected(on) as farm:
        numbers = {job: _find(farm, job).number for job in jobs}  # all, before one is cancelled
        did = {job: farm.cancel(number) for job, number in numbers.items()}
    words = [f"{job} is cancelled" if done else f"{job} had ended" for job, done in did.items()]
    finish(lambda: {"cancelled": did}, lambda: print("\n".join(words)), json=json)


@app.command()
def machines(on: Where = NAME, json: Json = False) -> None:
    """List the machines of a grid; 'gridwright machines' controls those of this computer."""
    with _connected(on) as farm:
        found = farm.machine_states()
    rows = []
    for each in found:
        doing = "" if each["running"] is None else f"job {each['running']}"
        state, counts = grid.MachineState(**each).words, (each["finished"], each["lost"])
        rows.append((each["name"], state, doing, *map(str, counts)))
    columns = ("machine", "state", "running", ">finished", ">lost")
    finish(lambda: {"machines": found}, lambda: show(columns, rows), json=json)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the tables.")],
    on: Annotated[
        str, option("Name of a grid that is or was served here, or the path of a journal.", "GRID")
    ] = NAME,
    json: Json = False,
) -> None:
    """Write the history of a grid as CSV tables: jobs, failures, exceptions, decisions."""
    with closing(grid.find_journal(on)) as journal:
        files = [str(path) for path in grid.export(journal, folder)]
    finish(lambda: {"files": files}, lambda: print(*files, sep="\n"), json=json)


def _known(policy: str, name: str) -> dict[str, Any]:
    """Return what a system says of machines, classes, execution times and chains."""
    system, kind = catalogue.find_or_read(name).system, policies.find(policy).kind
    for group, count in zip(system.groups, system.counts, strict=True):
        if count > 1:
            raise model.InputError(
                f"--system: {group} stands for {count} machines; expected one in each column"
            )
    known: dict[str, Any] = {"machines": list(system.groups)}
    if kind is policies.CHAIN:
        parts = {"templates": system.templates, "customers": system.customers}
        return known | {"chains": grid.ChainOptions(**parts)}
    known |= {"classes": list(system.classes), "rates": system.rates}
    if kind is policies.BATCH:
        batch: dict[str, Any] = {"pmf": system.pmf, "execution": system.execution}
        if system.batch is not None:
            batch["queue_limit"] = system.batch.queue_limit
        if system.deadlines is not None:
            batch["discard"] = system.deadlines.discard
        known["batch"] = grid.BatchOptions(**batch)
    return known


def _slots(text: str) -> int | dict[str, int]:
    """Read --slots: a number, or numbers by machine."""
    if text.isdecimal():
        return int(text)
    by_machine = [each.rpartition("=")[::2] for each in listed(text)]
    if not by_machine or not all(name and number.isdecimal() for name, number in by_machine):
        raise model.InputError(f"--slots is {text!r}; expected a number, or as big=8,small=2")
    return by_name("--slots", ((name, int(number)) for name, number in by_machine))


def _find(farm: grid.Client, job: str) -> grid.JobFuture:
    """Return the future of a job by its key, or by its number if no job has that key."""
    try:
        return farm.future(job)
    except model.InputError:
        if not job.isdigit():
            raise
        return farm.future(int(job))


def _connected(on: str) -> grid.Client:
    return grid.connect(on)
