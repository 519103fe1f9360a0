"""A job trace: who submitted what and when, as a log of a cluster or a grid has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .account import Account

__all__ = ["LABELS", "JobTrace", "shortest"]

Floats = NDArray[np.float64]
LABELS = ("user", "group", "executable", "queue", "partition")
"""What jobs may be told apart by, besides their run times."""
UNKNOWN = ("-1", "")


class JobTrace:
    """Jobs in the order of their rows, a column for everything that is known of them.

    Columns hold numbers, −1 where something is unknown, or text. They have the same names whatever
    format they were read from: ``job``, ``submit``, ``wait``, ``run_time``, ``processors``,
    ``cpu_time``, ``memory``, ``requested_processors``, ``requested_time``, ``requested_memory``,
    ``status``, ``user``, ``group``, ``executable``, ``queue``, ``partition``, ``preceding``,
    ``think_time``. What only one format has is called as there. Times are in seconds.

    >>> trace = JobTrace({"submit": [0, 60], "run_time": [30, 45], "user": ["ann", "bob"]})
    >>> len(trace), trace.label("user").tolist(), trace.knows("partition")
    (2, ['ann', 'bob'], False)
    """

    def __init__(
        self,
        columns: dict[str, Any],
        header: tuple[str, ...] = (),
        account: Account | None = None,
        lines: Any = (),
    ) -> None:
        self.columns: dict[str, NDArray[Any]] = {
            name: np.asarray(values, dtype=object if _is_text(values) else float)
            for name, values in columns.items()
        }
        self.header = header
        """The comments, without the mark they begin with."""
        self.account = Account(len(self)) if account is None else account
        """Which rows were kept."""
        self.lines = np.asarray(lines, dtype=int) if len(lines) else np.zeros(len(self), int)
        """Where each job stands in its file, 0 if it never stood in one."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, JobTrace)
            and self.header == other.header
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(self.columns[key], other.columns[key]) for key in self.columns)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"JobTrace({len(self):,} jobs)"

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers, −1 throughout where there is none."""
        found = self.columns.get(name)
        return np.full(len(self), -1.0) if found is None or found.dtype == object else found

    def coded(self, name: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the texts that a column has, and which of them each job has.

        A grid's jobs are in the partition of the site that ran them.
        """
        found = self.columns.get(name)
        if name == "partition" and "LastRunSiteID" in self.columns and not _says_something(found):
            found = self.columns["LastRunSiteID"]
        if found is None:
            return ["-1"], np.zeros(len(self), int)
        if found.dtype != object:
            values, codes = np.unique(found, return_inverse=True)
            return [shortest(value) for value in values.tolist()], codes
        texts = sorted(set(found.tolist()))
        number = {text: k for k, text in enumerate(texts)}
        return texts, np.array([number[text] for text in found.tolist()], dtype=int)

    def label(self, name: str) -> NDArray[Any]:
        """Return a column as text."""
        texts, codes = self.coded(name)
        return np.array(texts, dtype=object)[codes] if len(self) else np.zeros(0, object)

    def knows(self, name: str) -> bool:
        """Tell whether a label is known of some job."""
        return bool(set(self.coded(name)[0]) - set(UNKNOWN))

    @property
    def first_submission(self) -> float:
        """When the first job was submitted, whether it can be replayed or not; 0 if none was."""
        known = self.numbers("submit")
        known = known[known >= 0]
        return float(known.min()) if len(known) else 0.0

    @property
    def about(self) -> dict[str, str]:
        """What the comments say in the form ``Key: value``; the first of several."""
        pairs = (line.partition(":") for line in self.header)
        found: dict[str, str] = {}
        for key, colon, value in pairs:
            if colon:
                found.setdefault(key.strip(), value.strip())
        return found

    def partition_names(self) -> dict[str, str]:
        """Return the names of partitions, where the comments have them."""
        found = {}
        for line in self.header:
            key, _, rest = line.partition(":")
            words = rest.split()
            if key.strip() == "Partition" and len(words) > 1:
                found[words[0]] = words[1]
        return found


def _says_something(column: Any) -> bool:
    return column is not None and bool(set(np.unique(column.astype(str))) - {*UNKNOWN, "-1.0"})


def shortest(value: float) -> str:
    """Write a number so that reading it gives the same.

    >>> shortest(3.0), shortest(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _is_text(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype.kind not in "iufb"
    return any(isinstance(value, str) for value in values)
