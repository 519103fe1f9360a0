"""The ``gridwright`` command: its commands and groups, and the exit status of errors.

The status is 0 on success, 2 for wrong input, 1 for another failure, and 130 after Ctrl-C.
"""

import os
import sys
from collections.abc import Callable, Mapping
from errno import ENAMETOOLONG
from functools import cache
from io import TextIOWrapper
from traceback import print_exc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from .. import __version__
from . import grid, machines, research, runs, traces, workers
from .allocate import allocate
from .demo import demo
from .leaderboard import leaderboard
from .old_spellings import translate
from .output import CommandFailedError, StoppedError, warn
from .policies import policies
from .run import run as run_experiment
from .simulate import compare, simulate
from .size import size
from .sweep import sweep
from .systems import systems
from .ui import ui

app = typer.Typer(
    name="gridwright",
    help="Manage work on unequal machines: allocation, scheduling policies, simulation.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: list[Callable[..., None]] = [demo, simulate, compare, sweep, allocate, size, systems]
COMMANDS += [policies, run_experiment, ui]
GROUPS = {
    "grid": grid.app,
    "runs": runs.app,
    "machines": machines.app,
    "traces": traces.app,
    "dask": workers.app,
    "research": research.app,
}

research.app.command()(leaderboard)
for command in COMMANDS:
    app.command(rich_help_panel="Commands")(command)
for name, group in GROUPS.items():
    app.add_typer(
        group, name=name, no_args_is_help=name != "runs", rich_help_panel="Groups of commands"
    )


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


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(run(sys.argv[1:]))


WRONG_INPUT = 2
FAILED = 1
STOPPED = 130
"""Exit status after Ctrl-C."""
LONGEST = 2000
"""Characters of an error message; what is in the middle is left out."""


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    _prepare_output()
    try:
        arguments = translate(arguments)
        status = _commands().main(
            arguments or ["--help"], prog_name="gridwright", standalone_mode=False
        )
        sys.stdout.flush()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return _reader_left()
    except BrokenPipeError:
        return _reader_left()
    except CommandFailedError as error:
        return int(error.args[0])
    except Exception as error:
        if debug and not isinstance(error, TyperException | StoppedError):
            print_exc()
        return _fail(*_explain(error, arguments))
    if status == STOPPED:
        return _fail("stopped", STOPPED)
    return status if isinstance(status, int) else 0


@cache
def _commands() -> TyperGroup:
    """Return the commands with their options, worked out once: it takes a tenth of a second."""
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def _explain(error: Exception, arguments: list[str]) -> tuple[str, int]:
    """Return the message and the exit status of an error."""
    if isinstance(error, TyperException):
        message = _usage_message(error, arguments)
        return message, WRONG_INPUT if message else 0  # no message: the help was shown instead
    if isinstance(error, StoppedError):
        return str(error), STOPPED
    from ..model import GridwrightError, InputError  # slow, and help needs neither

    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        return f"{str(error.filename)[:40]}… is too long for the name of a file", WRONG_INPUT
    if isinstance(error, InputError):
        return str(error), WRONG_INPUT
    if isinstance(error, GridwrightError):
        return str(error), FAILED
    return f"{type(error).__name__}: {error} (--debug shows where)", FAILED


def _usage_message(error: TyperException, arguments: list[str]) -> str:
    """Return the message about a wrong option or command, with a hint where there is one."""
    message = error.format_message()
    if message.startswith("Missing"):
        return f"{message} {getattr(getattr(error, 'param', None), 'help', '')}"
    if "extra argument" in message and {"--policies", "--policy"} & set(arguments):
        return f"{message}; policies are separated by commas and no spaces: mct,lpas"
    if message.startswith("No such command") and arguments[0] not in GROUPS:
        groups: Mapping[str, Any] = _commands().commands
        found = [
            f"'gridwright {name} {arguments[0]}'"
            for name in GROUPS
            if arguments[0] in groups[name].commands
        ]
        return f"{message} There is {' and '.join(found)}." if found else message
    return message


def _fail(message: str, status: int) -> int:
    line = " ".join(message.split())
    if len(line) > LONGEST:  # the reason is often at the end
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    if line:
        warn(line)
    return status


def _prepare_output() -> None:
    """Print characters that the terminal cannot show as '?', and nothing if stdout is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _reader_left() -> int:
    """End quietly after the reader of the output, such as `head`, has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
