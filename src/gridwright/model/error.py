"""The errors of Gridwright, and hints at what a wrong word may have meant.

A command exits with 2 for an InputError and with 1 for every other error of this tree.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf
from numbers import Real
from os import PathLike
from pathlib import Path


class GridwrightError(Exception):
    """Base class of all errors that Gridwright raises on purpose."""


class InputError(GridwrightError, ValueError):
    """Wrong input. One line says what is wrong, where, and what is expected."""


class GridError(GridwrightError):
    """Base class of the errors of a live grid."""


class GridClosedError(GridError):
    """The grid is closed: it takes no calls, and jobs that had not ended are not run."""


class GridTimeoutError(GridError, TimeoutError):
    """The grid or one of its machines did not answer in time."""


class JournalError(GridError):
    """The journal of the grid cannot be written."""


class JobLostError(GridError):
    """The job was given up because its process died or it timed out too often.

    The message says what happened at each attempt, and on which machine.
    """


class DeadlineError(GridError):
    """The job was discarded because its deadline had passed before it could start.

    Only batch policies discard jobs.
    """


class JobFailedError(GridError):
    """The job failed with an exception that cannot be raised here as itself.

    The message is the traceback of the job. Such exceptions cannot be pickled, or would end this
    program, as ``SystemExit`` does.
    """


@contextmanager
def file_errors(path: str | PathLike[str], verb: str, name: str = "") -> Iterator[None]:
    """Turn errors of the operating system into an InputError: the file cannot be read, written.

    A pipe is not read: it would be waited for without end. Messages show the name, if there is one.
    """
    name = name or str(path)
    try:
        if verb == "read" and Path(path).is_fifo():
            raise InputError(f"{name} is a pipe; expected a regular file")
        yield
    except OSError as error:
        raise InputError(f"{name} cannot be {verb}: {error.strerror}") from None


def positive_numbers(name: str, values: Iterable[float], unit: str) -> tuple[float, ...]:
    """Return values as floats; refuse others than positive numbers of a unit."""
    found = tuple(values)
    for each in found:
        if isinstance(each, bool) or not isinstance(each, Real):
            raise InputError(f"{name} is {each!r}; expected a number")
        if not 0 < each < inf:
            raise InputError(f"{name} is {each:g}; expected a positive number of {unit}")
    return tuple(map(float, found))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a hint at the choices closest to a wrong word, or an empty text.

    >>> did_you_mean("rate", ["rates", "counts"])
    "; did you mean 'rates'?"
    >>> did_you_mean("mtc", ["moc", "mct"])
    "; did you mean 'mct' or 'moc'?"
    """
    by_lower = {choice.lower(): choice for choice in choices}
    close = [by_lower[match] for match in get_close_matches(word.lower(), by_lower, n=3)]
    close.sort(key=lambda choice: sorted(choice.lower()) != sorted(word.lower()))  # letters swapped
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
