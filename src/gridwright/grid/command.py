"""What the processes of machines run for `Submitter.run` and for chunks of `Submitter.map`.

The functions travel to the machines by value and need nothing but Python there.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from ..model import InputError

MOST = 1 << 20
"""The most bytes that are kept of each stream of a command."""


def filled(line: str, args: Sequence[Any]) -> str:
    """Replace each ``{}`` of a command by an argument, quoted for the shell.

    >>> filled("convert {} {}", ["my picture.png", "out.jpg"])
    "convert 'my picture.png' out.jpg"
    """
    if not isinstance(line, str) or not line.strip():
        raise InputError(f"the command is {line!r}; expected a text such as 'convert {{}} out.jpg'")
    parts = line.split("{}")
    if len(parts) != len(args) + 1:
        raise InputError(
            f"the command has {len(parts) - 1} of {{}} and {len(args)} arguments; "
            "expected one argument for each {}"
        )
    for k in range(1, len(parts)):
        with suppress(ValueError):
            list(shlex.shlex("{}".join(parts[:k]), posix=True, punctuation_chars=True))
            continue
        raise InputError(f"the command {line!r} has {{}} inside of quotes; leave the quotes out")
    words = [shlex.quote(str(each)) for each in args]
    return "".join(part + word for part, word in zip(parts, [*words, ""], strict=True))


def name_of(line: str) -> str:
    """Return the name of the program that a command begins with.

    >>> name_of("/usr/bin/convert 'my picture.png' out.jpg")
    'convert'
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"the command {line!r} cannot be read: {error}") from None
    return PurePath(words[0]).name or "command" if words else "command"


def call_each(function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> list[Any]:
    """Call a function with each set of arguments."""
    return [function(*args) for args in calls]


def run_shell(line: str, cwd: str | None, env: Mapping[str, str], most: int = MOST) -> Any:
    """Run a command; return its status and the ends of what it wrote."""
    import os
    import subprocess
    import tempfile

    def end_of(stream: Any) -> str:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - most))
        left_out = f"… {size - most:,} bytes left out …\n" if size > most else ""
        return left_out + str(stream.read().decode(errors="replace"))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = subprocess.run(
            line, shell=True, cwd=cwd, env={**os.environ, **env}, stdout=out, stderr=err
        ).returncode
        written = end_of(out), end_of(err)
    if status:
        raise subprocess.CalledProcessError(status, line, *written)
    return subprocess.CompletedProcess(line, status, *written)


def travels_by_value() -> None:
    """Let cloudpickle send these functions to machines that may lack this package."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
