"""``gridwright ui``: start the web page."""

import os
from pathlib import Path
from typing import Annotated

import typer

from .options import option
from .packages import model


def ui(
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for any free port.", min=0, max=65535)
    ] = 8080,
    host: Annotated[
        str, option("Address to listen on; users of any but a loopback address need a token.")
    ] = "127.0.0.1",
    run: Annotated[
        Path | None, option("Folder where runs are stored, instead of $GRIDWRIGHT_HOME.", "DIR")
    ] = None,
) -> None:
    """Start the web page: define, simulate and run systems in a browser."""
    if run is not None:
        if not run.is_dir():
            raise model.InputError(f"--run {run}: there is no such folder")
        os.environ["GRIDWRIGHT_HOME"] = str(run.resolve())  # for the runs that are started, too
    try:
        from ..web.server import serve
    except ImportError:
        raise model.InputError("the web page needs NiceGUI: pip install 'gridwright[ui]'") from None
    serve(host, port)
