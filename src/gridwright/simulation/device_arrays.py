"""The arrays of many runs on a device, one behind the other in one array for each field."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Memory(Protocol):
    """Where arrays are. Indices are those of the first axis."""

    def put(self, array: Any, times: int = 1) -> Any:
        """Copy an array to the device, so many times one behind the other."""

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        """Copy back what begins at an index, as much as the array holds."""

    def write(self, there: Any, array: Any, first: int) -> None:
        """Copy an array into another one on the device, to an index."""


class Device(Memory, Protocol):
    """What runs the functions of ``kernel``, and where their arrays are."""

    def free(self) -> int:
        """Return the bytes of memory that are free."""

    def extend(self, there: Any, array: Any) -> Any:
        """Return an array of the device that continues with another one."""

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        """Compile a function of ``kernel``."""

    def launch(self, linked: Any, count: int, *arguments: Any) -> None:
        """Run a linked function for so many runs, and wait for it."""


class Arrays:
    """The arrays of runs. Batches of them start with equal ones, and may share some.

    ``where`` is [run, field, 3]: the index where an array begins, its rows and its columns.
    """

    def __init__(
        self, device: Memory, batches: Sequence[tuple[Any, int]], shared: Collection[int]
    ) -> None:
        self.device, self.like, self.shared = device, batches[0][0], shared
        self.counts = np.array([count for _, count in batches])
        self.begins = np.cumsum(self.counts) - self.counts
        columns = list(zip(*(leaves(arrays) for arrays, _ in batches), strict=True))
        self.dtypes = [column[0].dtype for column in columns]
        self.parts = [self._put(field, column) for field, column in enumerate(columns)]
        where = [self._where(field, column) for field, column in enumerate(columns)]
        self.where = np.stack(where, axis=1)
        self.where_there = device.put(self.where)

    @property
    def there(self) -> Any:
        """All arrays, as the kernel takes them."""
        return rebuilt(self.like, iter(self.parts))

    def get(self, field: int, like: Any, first: int, count: int) -> Any:
        """Copy a field of some runs of a batch back, as [run, …]; they are like an array."""
        if field in self.shared:
            return np.broadcast_to(like, (count, *like.shape))
        found = np.empty((count, *like.shape), like.dtype)
        if found.size:
            self.device.get(self.parts[field], found.reshape(-1), int(self.where[first, field, 0]))
        return found

    def write(self, field: int, array: Any, first: int) -> None:
        """Copy a field of some runs, as ``get`` returned it, to the device."""
        if array.size:
            flat = np.ascontiguousarray(array).view(np.ndarray).reshape(-1)
            self.device.write(self.parts[field], flat, int(self.where[first, field, 0]))

    def _times(self, field: int) -> Indices:
        return np.ones_like(self.counts) if field in self.shared else self.counts

    def _put(self, field: int, column: Sequence[Any]) -> Any:
        """Copy a field of all batches to the device."""
        times = self._times(field)
        if len(column) == 1 and column[0].size:
            return self.device.put(_flat(column[0]), int(times[0]))
        parts, done = [], 0
        for _, group in groupby(column, key=lambda array: array.shape):
            alike = np.stack(list(map(_flat, group)))
            parts.append(np.repeat(alike, times[done : done + len(alike)], axis=0).reshape(-1))
            done += len(alike)
        joined = np.concatenate(parts)
        return self.device.put(joined if len(joined) else np.zeros(1, joined.dtype))

    def _where(self, field: int, column: Sequence[Any]) -> Indices:
        times = self._times(field)
        shapes = np.array([each.shape if each.ndim == 2 else (len(each), 1) for each in column])
        sizes = shapes.prod(axis=1)
        begins = np.cumsum(sizes * times) - sizes * times
        first = np.repeat(begins, self.counts)
        if field not in self.shared:
            place = np.arange(len(first)) - np.repeat(self.begins, self.counts)
            first += place * np.repeat(sizes, self.counts)
        return np.column_stack([first, np.repeat(shapes, self.counts, axis=0)])


def leaves(arrays: Any) -> Iterator[Any]:
    """Return the arrays in tuples of arrays and tuples, in their order."""
    for each in arrays:
        if isinstance(each, tuple):
            yield from leaves(each)
        else:
            yield each


def rebuilt(like: Any, arrays: Iterator[Any]) -> Any:
    """Put other arrays into such tuples."""
    parts = [rebuilt(each, arrays) if isinstance(each, tuple) else next(arrays) for each in like]
    return tuple(parts) if type(like) is tuple else type(like)(*parts)


def _flat(array: Any) -> Any:
    return np.ascontiguousarray(array).view(np.ndarray).reshape(-1)
