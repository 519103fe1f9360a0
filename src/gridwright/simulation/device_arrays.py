"""The arrays of many runs on a device, one behind the other in one array for each field."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..compiler.checks import ABREAST

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

    name: str

    def free(self) -> int:
        """Return the bytes of memory that are free."""

    def extend(self, there: Any, array: Any) -> Any:
        """Return an array of the device that continues with another one."""

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        """Compile a function of ``kernel``."""

    def beside(self) -> Device:
        """Return this device with a queue of its own: it works on several of them at once."""

    def start(self, linked: Any, count: int, side_by_side: int, *arguments: Any) -> None:
        """Run a linked function for so many of the runs side by side; do not wait for it."""

    def has_ended(self) -> bool:
        """Tell whether nothing that was started is running."""

    def wait(self) -> float:
        """Wait for what was started; return the seconds that it took."""


class Arrays:
    """The arrays of runs. Batches of them start with equal ones, and may share some.

    ``where`` is [run, field, 3]: the index where an array begins, its rows and its columns. Fields
    that lie ``abreast`` are in tiles of 32 runs of a batch, word by word: the first words of all of
    them, then the second ones. The index is then that of a word of eight bytes.
    """

    def __init__(
        self,
        device: Memory,
        batches: Sequence[tuple[Any, int]],
        shared: Collection[int],
        abreast: Collection[int] = (),
    ) -> None:
        self.device, self.like, self.shared = device, batches[0][0], shared
        self.abreast = abreast
        self.held: dict[int, Any] = {}
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

    @contextmanager
    def holding(self, fields: Iterable[int], most: int, *, changes: bool) -> Iterator[None]:
        """Copy fields of many batches here at once, of at most so many bytes, and back if changed.

        ``get`` and ``write`` then find them here: a device takes longer to begin a copy than to
        make a small one.
        """
        for field in fields:
            size = len(self.parts[field]) * self.dtypes[field].itemsize
            is_apart = field not in self.shared and field not in self.abreast
            if len(self.counts) > 1 and is_apart and size <= most:
                self.held[field] = np.empty(len(self.parts[field]), self.dtypes[field])
                self.device.get(self.parts[field], self.held[field])
        yield
        for field, here in self.held.items():
            if changes:
                self.device.write(self.parts[field], here, 0)
        self.held.clear()

    def get(self, field: int, like: Any, first: int, count: int) -> Any:
        """Copy a field of some runs of a batch back, as [run, …]; they are like an array."""
        if field in self.shared:
            return np.broadcast_to(like, (count, *like.shape))
        if field in self.abreast:
            lane, tiles = self._tiles(field, like, first, count)
            rows = tiles.transpose(0, 2, 1).reshape(-1, tiles.shape[1])[lane : lane + count]
            return np.ascontiguousarray(rows).view(like.dtype).reshape(count, *like.shape)
        if field in self.held:
            begin = int(self.where[first, field, 0])
            some = self.held[field][begin : begin + count * like.size]
            return some.reshape(count, *like.shape).copy()
        found = np.empty((count, *like.shape), like.dtype)
        if found.size:
            self.device.get(self.parts[field], found.reshape(-1), int(self.where[first, field, 0]))
        return found

    def write(self, field: int, array: Any, first: int) -> None:
        """Copy a field of some runs, as ``get`` returned it, to the device."""
        if array.size and field in self.abreast:
            lane, tiles = self._tiles(field, array[0], first, len(array))
            rows = tiles.transpose(0, 2, 1).reshape(-1, tiles.shape[1])
            rows[lane : lane + len(array)] = _words(array).reshape(len(array), -1)
            changed = rows.reshape(len(tiles), ABREAST, -1).transpose(0, 2, 1)
            flat = np.ascontiguousarray(changed).reshape(-1).view(_abreast(array.dtype))
            self.device.write(self.parts[field], flat, self._element(field, array.dtype, first))
        elif array.size:
            flat, begin = _flat(array), int(self.where[first, field, 0])
            if field in self.held:
                self.held[field][begin : begin + len(flat)] = flat
                return
            self.device.write(self.parts[field], flat, begin)

    def _tiles(self, field: int, like: Any, first: int, count: int) -> tuple[int, Any]:
        """Copy the tiles of some runs back, as [tile, word, run]; say which run is the first."""
        lane = self._lane(first)
        shape = -(-(lane + count) // ABREAST), like.nbytes // 8, ABREAST
        found = np.empty(shape, np.int64)
        if found.size:
            flat = found.reshape(-1).view(_abreast(like.dtype))
            self.device.get(self.parts[field], flat, self._element(field, like.dtype, first))
        return lane, found

    def _lane(self, run: int) -> int:
        batch = int(np.searchsorted(self.begins, run, side="right")) - 1
        return int(run - self.begins[batch]) % ABREAST

    def _element(self, field: int, dtype: Any, run: int) -> int:
        """Return the index of the first record or number of a run's tile."""
        words = int(self.where[run, field, 0]) - self._lane(run)
        return words * 8 // _abreast(dtype).itemsize

    def _times(self, field: int) -> Indices:
        return np.ones_like(self.counts) if field in self.shared else self.counts

    def _put(self, field: int, column: Sequence[Any]) -> Any:
        """Copy a field of all batches to the device."""
        times = self._times(field)
        if field in self.abreast:
            tiles = [np.repeat(_words(each), ABREAST) for each in column]
            numbers = -(-self.counts // ABREAST)
            numbers[-1] += 1  # records are read to the ends of their fields: those of all lanes
            if len(column) == 1 and column[0].size:
                return self.device.put(tiles[0].view(_abreast(column[0].dtype)), int(numbers[0]))
            repeated = [np.tile(tile, n) for tile, n in zip(tiles, numbers, strict=True)]
            joined = np.concatenate(repeated)
            spare = np.zeros(_abreast(column[0].dtype).itemsize // 8, np.int64)
            joined = joined if len(joined) else spare
            return self.device.put(joined.view(_abreast(column[0].dtype)))
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
        if field in self.abreast:
            words = sizes * column[0].itemsize // 8
            tiles = -(-self.counts // ABREAST)
            begins = np.repeat(ABREAST * (np.cumsum(words * tiles) - words * tiles), self.counts)
            place = np.arange(len(begins)) - np.repeat(self.begins, self.counts)
            tile, lane = place // ABREAST, place % ABREAST
            first = begins + tile * ABREAST * np.repeat(words, self.counts) + lane
            return np.column_stack([first, np.repeat(shapes, self.counts, axis=0)])
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


def words_abreast(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lay the words of runs, [run, …], side by side: [tile, word, run in the tile], flat."""
    rows = words.reshape(len(words), -1)
    tiles = -(-len(rows) // ABREAST)
    padded = np.zeros((tiles * ABREAST, rows.shape[1]), np.int64)
    padded[: len(rows)] = rows
    found = padded.reshape(tiles, ABREAST, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(found).reshape(-1)


@cache
def _abreast(dtype: Any) -> Any:
    """Return the type of records whose words are as far apart as those of a tile are."""
    if dtype.names is None:
        return dtype
    fields = [dtype.fields[name] for name in dtype.names]
    offsets = [place // 8 * 8 * ABREAST + place % 8 for _, place in fields]
    made: Any = {
        "names": dtype.names,
        "formats": [kind for kind, _ in fields],
        "offsets": offsets,
        "itemsize": dtype.itemsize * ABREAST,
    }
    return np.dtype(made, align=True)


def _words(array: Any) -> Any:
    return _flat(array).view(np.int64)


def _flat(array: Any) -> Any:
    return np.ascontiguousarray(array).view(np.ndarray).reshape(-1)
