"""The published systems and every printed result, as data."""

from .entry import Entry, entries, find, is_path, load
from .result import Cell, results

__all__ = ["Cell", "Entry", "entries", "find", "is_path", "load", "results"]
