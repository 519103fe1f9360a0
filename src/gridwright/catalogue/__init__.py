"""The published systems and every printed result, as data."""

from .entry import Entry, cite, entries, find, find_or_read, load
from .result import Cell, Remark, Table, remarks_on, results, results_of, tables

__all__ = [
    "Cell",
    "Entry",
    "Remark",
    "Table",
    "cite",
    "entries",
    "find",
    "find_or_read",
    "load",
    "remarks_on",
    "results",
    "results_of",
    "tables",
]
