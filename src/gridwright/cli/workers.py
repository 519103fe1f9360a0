"""``gridwright dask workers``: start workers, with a scheduler or at one that is running."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import Json, OldConnect, option
from .output import counted, print_json
from .packages import model

app = typer.Typer(help="Start the workers of a Dask cluster.")


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
    tls_ca_file: Annotated[
        str | None, option("File of the certificate authority of the cluster.")
    ] = None,
    tls_cert: Annotated[str | None, option("File of our certificate.")] = None,
    tls_key: Annotated[str | None, option("File of the key to our certificate.")] = None,
    json: Json = False,
    connect: OldConnect = None,
) -> None:
    """Start a scheduler and workers, or workers that join a scheduler, until Ctrl-C.

    Then use them: gridwright run EXPERIMENT --on ADDRESS, or Grid(on=ADDRESS) in Python.
    """
    from ..grid.executors.connection import Tls
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
    given = [each for each in (tls_ca_file, tls_cert, tls_key) if each is not None]
    if len(given) not in (0, 3):
        raise model.InputError("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
    tls = Tls(ca_file=given[0], cert=given[1], key=given[2]) if given else None
    names = _names(count, name, joining=on is not None)

    def ready(address: str) -> None:
        if json:
            print_json({"address": address, "workers": names})
        else:
            these = f"{counted(count, 'worker')} ({', '.join(names)})"
            print(f"{these} at {address}; Ctrl-C stops {'it' if count == 1 else 'them'}")
        sys.stdout.flush()  # scripts wait for this line

    if on is not None:
        join(names, on, tls, ready)
    else:
        serve(names, host, port, tls, ready)


def _names(count: int, name: str | None, *, joining: bool) -> list[str]:
    """Name workers 1, 2, … beside a new scheduler, and after this computer where they join one."""
    import socket

    if name is None and not joining:
        return [str(k + 1) for k in range(count)]
    stem = name or socket.gethostname()
    return [stem] if count == 1 else [f"{stem}-{k + 1}" for k in range(count)]
