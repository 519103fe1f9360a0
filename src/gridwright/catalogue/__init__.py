"""The published systems, experiments and printed results, as data."""

from .entry import Entry, cite, entries, experiment_names, experiment_path, find, find_or_read, load
from .printed_results import (
    Cell,
    Erratum,
    Remark,
    Table,
    errata,
    remarks_on,
    results,
    results_of,
    tables,
)

__all__ = [
    "Cell",
    "Entry",
    "Erratum",
    "Remark",
    "Table",
    "cite",
    "entries",
    "errata",
    "experiment_names",
    "experiment_path",
    "find",
    "find_or_read",
    "load",
    "remarks_on",
    "results",
    "results_of",
    "tables",
]
