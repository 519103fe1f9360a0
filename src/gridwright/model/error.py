"""The errors of Gridwright, and close matches for a wrong word."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "GridClosedError",
    "GridError",
    "GridTimeoutError",
    "GridwrightError",
    "InputError",
    "JobFailedError",
    "JobLostError",
    "JournalError",
    "did_you_mean",
]


class GridwrightError(Exception):
    """Base class of all errors that Gridwright raises on purpose."""


class InputError(GridwrightError, ValueError):
    """Wrong input, told in one line: what was wrong, where, and what was expected."""


class GridError(GridwrightError):
    """Base class of the errors of a live grid."""


class GridClosedError(GridError):
    """Raised for a call to a closed grid, and for jobs that had not ended when it was closed."""


class GridTimeoutError(GridError, TimeoutError):
    """Raised when a grid or one of its machines does not answer in time."""


class JobFailedError(GridError):
    """Raised for a job that failed with an exception that cannot be raised here as itself.

    The message is the traceback of the job. Such exceptions cannot be pickled, or would end this
    program, as ``SystemExit`` does.
    """


class JobLostError(GridError):
    """Raised for a job that was given up: its process died or it timed out too often.

    The message says what happened at each attempt, and on which machine.
    """


class JournalError(GridError):
    """Raised when a grid's journal cannot be written."""


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
