"""``gridwright workers``: the machines of a grid, here or at a scheduler elsewhere."""

import sys
from typing import Annotated

import typer

from .argument import Json

__all__ = ["workers"]


def workers(
    local: Annotated[
        int | None,
        typer.Option(help="How many workers to start here.", metavar="N", show_default=False),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            help="Join the scheduler there, tcp://HOST:PORT or tls://HOST:PORT, and start none.",
            metavar="ADDRESS",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What to call a worker that joins; several are numbered."),
    ] = None,
    host: Annotated[str, typer.Option(help="Where the scheduler listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port that it listens on; 0: any.")] = 8786,
    tls_ca_file: Annotated[
        str | None, typer.Option(help="Certificate of who signs those of the cluster.")
    ] = None,
    tls_cert: Annotated[str | None, typer.Option(help="Our certificate.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="Its key.")] = None,
    json: Json = False,
) -> None:
    """Start a scheduler and workers, or join workers to one, until Ctrl-C.

    A grid runs its jobs there: Grid(on=ADDRESS).
    """
    from ..grid.executors.connection import Tls
    from ..grid.executors.dask_cluster import join, serve
    from ..model import InputError
    from .output import counted, print_json

    if local is None and connect is None:
        raise InputError("say how many workers to start (--local N), or where to join (--connect)")
    count = 1 if local is None else local
    if not 1 <= count <= 1000:
        raise InputError(f"--local is {count}; expected 1 to 1000")
    if not 0 <= port <= 65535:
        raise InputError(f"--port is {port}; expected 0 to 65535")
    given = [each for each in (tls_ca_file, tls_cert, tls_key) if each is not None]
    if len(given) not in (0, 3):
        raise InputError("TLS needs all of --tls-ca-file, --tls-cert and --tls-key")
    tls = Tls(ca_file=given[0], cert=given[1], key=given[2]) if given else None
    names = _names(count, name, joining=connect is not None)

    def ready(address: str) -> None:
        if json:
            print_json({"address": address, "workers": names})
        else:
            these = f"{counted(count, 'worker', 'workers')} ({', '.join(names)})"
            print(f"{these} at {address}; Ctrl-C stops {'it' if count == 1 else 'them'}")
        sys.stdout.flush()  # whoever reads it waits for this line

    if connect is not None:
        join(names, connect, tls, ready)
    else:
        serve(names, host, port, tls, ready)


def _names(count: int, name: str | None, *, joining: bool) -> list[str]:
    """Name workers: by number where they are all, after their computer where they join others."""
    import socket

    if name is None and not joining:
        return [str(k + 1) for k in range(count)]
    stem = name or socket.gethostname()
    return [stem] if count == 1 else [f"{stem}-{k + 1}" for k in range(count)]
