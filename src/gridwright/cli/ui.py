"""``gridwright ui``: the web page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ui"]


def ui(
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8080,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but loopback demands a token.")
    ] = "127.0.0.1",
    run: Annotated[
        Path | None,
        typer.Option(
            help="The folder where runs are kept, in place of $GRIDWRIGHT_HOME.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the web page: define a system, simulate, run, read off."""
    from ..model import InputError

    if run is not None:
        if not run.is_dir():
            raise InputError(f"--run {run}: there is no such folder")
        os.environ["GRIDWRIGHT_HOME"] = str(run.resolve())  # for the runs that are started, too
    from ..web.server import serve

    serve(host, port)
