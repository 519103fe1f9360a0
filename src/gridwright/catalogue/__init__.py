"""The published systems and every printed result, as data."""

from .entry import Entry, cite, entries, find, find_or_read, load
from .result import Cell, results, results_of

__all__ = [
    "Cell",
    "Entry",
    "cite",
    "entries",
    "find",
    "find_or_read",
    "load",
    "results",
    "results_of",
]
