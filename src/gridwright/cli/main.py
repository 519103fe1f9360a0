"""The ``gridwright`` command: exit status 0, 2 with one line for wrong input, 1 for a failure."""

import os
import sys
from errno import ENAMETOOLONG
from io import TextIOWrapper
from traceback import print_exc
from typing import Annotated

import typer
from typer.exceptions import TyperException

from .. import __version__
from .adversary import adversary
from .allocate import allocate
from .availability import availability
from .calibrate import calibrate
from .characterise import characterise
from .conduct import run as run_experiment
from .contest import contest
from .demo import demo
from .machines import app as machines
from .optimum import optimum
from .output import StoppedError
from .policies import policies
from .replay import replay
from .reproduce import reproduce
from .runs import app as runs
from .runs import export
from .simulate import compare, simulate
from .sweep import sweep
from .systems import systems
from .ui import ui
from .workers import workers

__all__ = ["app", "main"]

app = typer.Typer(
    name="gridwright",
    help="Manage work on unequal machines: allocation, scheduling policies, simulation.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(systems)
app.command()(allocate)
app.command()(policies)
app.command()(simulate)
app.command()(compare)
app.command()(sweep)
app.command()(contest)
app.command()(optimum)
app.command()(adversary)
app.command()(reproduce)
app.command()(calibrate)
app.command()(availability)
app.command()(characterise)
app.command("run")(run_experiment)
app.add_typer(runs, name="runs")
app.command()(replay)
app.command()(export)
app.add_typer(machines, name="machines")
app.command()(workers)
app.command()(demo)
app.command()(ui)


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    _prepare_output()
    try:
        status = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name="gridwright", standalone_mode=False
        )
        sys.stdout.flush()
    except TyperException as error:
        message = error.format_message()
        if message.startswith("Missing"):
            message += f" {getattr(getattr(error, 'param', None), 'help', '')}"
        elif "extra argument" in message and "--policies" in arguments:
            message += "; policies are separated by commas and no spaces: mct,lpas"
        return _fail(message, 2) if message else 0  # without one, the help was shown instead
    except StoppedError as error:
        return _fail(str(error), STOPPED)
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return _reader_left()
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        from ..model import GridError, InputError

        if debug:
            print_exc()
        if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
            return _fail(f"{str(error.filename)[:40]}… is too long a name for a file", 2)
        if isinstance(error, InputError):
            return _fail(str(error), 2)
        if isinstance(error, GridError):
            return _fail(str(error), 1)
        return _fail(f"{type(error).__name__}: {error} (--debug shows where)", 1)
    if status == STOPPED:
        return _fail("stopped", STOPPED)
    return status if isinstance(status, int) else 0


LONGEST = 2000
"""Characters of a message."""
STOPPED = 130
"""The exit status after Ctrl-C."""


def _prepare_output() -> None:
    """Print what the terminal cannot show as a question mark, and into nothing if it is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _reader_left() -> int:
    """End quietly: the reader, such as `head`, has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(message: str, status: int) -> int:
    line = " ".join(message.split())
    if len(line) > LONGEST:  # somebody's words are in the middle, the reason is at the end
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    print("gridwright:", line, file=sys.stderr)
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
