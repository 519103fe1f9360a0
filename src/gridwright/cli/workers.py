"""``gridwright dask``: start workers, and show how the tasks of a scheduler are placed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from .options import Json, OldConnect, option, policy_option
from .output import MANY_COLUMNS, UNKNOWN, counted, finish, known, print_json, show
from .packages import model

app = typer.Typer(help="Start the workers of a Dask cluster; show how its tasks are placed.")

CaFile = Annotated[str | None, option("File of the certificate authority of the cluster.")]
Certificate = Annotated[str | None, option("File of our certificate.")]
Key = Annotated[str | None, option("File of the key to our certificate.")]


@app.command()
def workers(
    local: Annotated[
        int | None, option("Number of workers to start on this computer.", "N")
    ] = None,
    on: Annotated[
        str | None,
        option(
            "Address of a scheduler that the workers join, tcp://HOST:PORT or "
            "tls://HOST:PORT; by default a new scheduler is started here.",
            "ADDRESS",
        ),
    ] = None,
    name: Annotated[
        str | None, option("Name of a worker that joins; several workers are numbered.")
    ] = None,
    host: Annotated[str, option("Address that the new scheduler listens on.")] = "127.0.0.1",
    port: Annotated[
        int, option("Port that the new scheduler listens on; 0 for any free port.")
    ] = 8786,
    policy: Annotated[
        str | None, policy_option("Policy that places the tasks of all clients; by default Dask.")
    ] = None,
    tls_ca_file: CaFile = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    json: Json = False,
    connect: OldConnect = None,
) -> None:
    """Start a scheduler and workers, or workers that join a scheduler, until Ctrl-C.

    Then use them: gridwright run EXPERIMENT --on ADDRESS, or Grid(on=ADDRESS) in Python.
    """
    from ..grid.executors.dask_cluster import join, serve

    on = on or connect
    if local is None and on is None:
        raise model.InputError(
            "give the number of workers to start (--local N) or a scheduler (--on)"
        )
    count = 1 if local is None else local
    if not 1 <= count <= 1000:
        raise model.InputError(f"--local is {count}; expected 1 to 1000")
    if not 0 <= port <= 65535:
        raise model.InputError(f"--port is {port}; expected 0 to 65535")
    tls = _tls(tls_ca_file, tls_cert, tls_key)
    names = _names(count, name, joining=on is not None)

    def ready(address: str) -> None:
        if json:
            print_json({"address": address, "workers": names})
        else:
            these = f"{counted(count, 'worker')} ({', '.join(names)})"
            print(f"{these} at {address}; Ctrl-C stops {'it' if count == 1 else 'them'}")
        sys.stdout.flush()  # scripts wait for this line

    if on is None:
        serve(names, host, port, tls, ready, plugins=_plugins(policy))
    elif policy is not None:
        raise model.InputError("--policy is for a new scheduler; give it without --on")
    else:
        join(names, on, tls, ready)


def _plugins(policy: str | None) -> list[Any]:
    """Return the plugins of a scheduler whose tasks a policy places, or Dask itself."""
    if policy is None:
        return []
    from ..dask import Placement

    return [Placement(policy)]


def _tls(*files: str | None) -> Any:
    """Return the TLS credential of the options, or None."""
    from ..grid.executors.connection import Tls

    given = [each for each in files if each is not None]
    if len(given) not in (0, 3):
        raise model.InputError("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
    return Tls(ca_file=given[0], cert=given[1], key=given[2]) if given else None


def _names(count: int, name: str | None, *, joining: bool) -> list[str]:
    """Name workers 1, 2, … beside a new scheduler, and after this computer where they join one."""
    import socket

    if name is None and not joining:
        return [str(k + 1) for k in range(count)]
    stem = name or socket.gethostname()
    return [stem] if count == 1 else [f"{stem}-{k + 1}" for k in range(count)]


@app.command()
def status(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Address of a scheduler, tcp://HOST:PORT.")
    ],
    tls_ca_file: CaFile = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    json: Json = False,
) -> None:
    """Show how a policy places the tasks of a Dask scheduler, and what it has learnt.

    A rate is how many tasks of a class a thread of a worker runs a second. The number after it is
    its standard error, if times of tasks vary as much as exponential ones.
    """
    from ..dask.status import ask

    tls = _tls(tls_ca_file, tls_cert, tls_key)
    found = ask(address, tls.options() if tls else None)
    finish(lambda: found, lambda: _show_status(address, found), json=json)


def _show_status(address: str, found: dict[str, Any]) -> None:
    if not found["on"]:
        by = f" ({found['policy']})" if found["policy"] else ""
        print(f"Dask places the tasks of {address} itself: Gridwright{by} is off")
        print(f"because: {found['why_off']}")
        return
    placed = found["placed"]
    since = found["since"].replace("T", " ").removesuffix("+00:00")
    print(f"{found['policy']} places the tasks of {address} since {since} UTC")
    print(
        f"placed: {placed['gridwright']:,} by the policy, {placed['dask']:,} by Dask; "
        f"{found['placed_per_second']:.3g} a second; {counted(found['plans'], 'plan')}; "
        f"longest call {found['longest_call_ms']:.3g} ms"
    )
    if (compared := found["compared"]) and compared["sampled"]:
        print(
            f"of {counted(compared['sampled'], 'sampled decision')} Dask's own would be the same "
            f"in {compared['same']:,}, and to wait in {compared['dask_waits']:,}; "
            f"{counted(compared['judged'], 'task')} should end {compared['seconds_saved']:.3g} s "
            "earlier in total"
        )
    classes, workers = found["classes"], found["workers"]
    if classes:
        print()
        rows = [
            [
                each["name"],
                str(each["waiting"]),
                str(each["running"]),
                known(each["arrivals_per_second"], ".3g"),
            ]
            for each in classes
        ]
        show(["class", ">waiting", ">running", ">arrivals a second"], rows)
    if workers:
        print()
        titles = ["worker", ">threads", ">busy", "good for"]
        rows = [
            [
                each["name"] if each["takes_tasks"] else f"{each['name']} (paused)",
                str(each["threads"]),
                str(each["busy"]),
                each["good_for"] or UNKNOWN,
            ]
            for each in workers
        ]
        rates, errors = found["rates"], found["errors"]
        for i, each in enumerate(classes[:MANY_COLUMNS]):
            titles.append(f">{each['name']}")
            for row, rate, error in zip(rows, rates[i], errors[i], strict=True):
                row.append(UNKNOWN if rate is None else f"{rate:.3g} ± {100 * error:.0f} %")
        show(titles, rows)
        if len(classes) > MANY_COLUMNS:
            print(f"and {counted(len(classes) - MANY_COLUMNS, 'more class', 'more classes')}")
