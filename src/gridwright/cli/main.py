"""The ``gridwright`` command: exit status 0, 2 with one line for wrong input, 1 for a failure."""

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from .. import __version__
from .allocate import allocate
from .demo import demo
from .systems import systems

__all__ = ["app", "main"]

app = typer.Typer(
    name="gridwright",
    help="Manage work on unequal machines: allocation, scheduling policies, simulation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(systems)
app.command()(allocate)
app.command()(demo)


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    debug = "--debug" in arguments
    try:
        status = typer.main.get_command(app).main(
            arguments, prog_name="gridwright", standalone_mode=False
        )
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except TyperException as error:
        return _fail(error.format_message(), 2)
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from ..model import InputError

        if debug:
            raise
        if isinstance(error, InputError):
            return _fail(str(error), 2)
        return _fail(f"{type(error).__name__}: {error} (--debug shows where)", 1)


def _fail(message: str, status: int) -> int:
    print("gridwright:", " ".join(message.split()), file=sys.stderr)
    return status


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"gridwright {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Manage work on unequal machines: allocation, scheduling policies, simulation."""
