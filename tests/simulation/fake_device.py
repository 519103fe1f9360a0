"""A device that runs everything here, so that launching is tested anywhere."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from gridwright.compiler.link import bind


def _bytes(array: Any) -> Any:
    """Return what lies between the fields of records too, as a device copies it."""
    return array.view(np.ndarray).reshape(-1).view(np.uint8)


class Interpreter:
    """A device that runs everything here, in plain Python; it counts what it is asked for."""

    def __init__(self, memory: int = 1 << 30) -> None:
        self.name, self.memory, self.counts = "a fake GPU", memory, [0]
        self.hooks: set[str] = set()
        self.starts: list[int] = []
        self.side_by_side: list[int] = []

    @property
    def linked(self) -> int:
        """How many programs were linked."""
        return len(self.counts) - 1

    def beside(self) -> Interpreter:
        return copy(self)

    def free(self) -> int:
        return self.memory

    def put(self, array: Any, times: int = 1) -> Any:
        copied = (
            np.concatenate([_bytes(array)] * times).view(array.dtype).reshape(-1, *array.shape[1:])
        )
        return copied.view(np.recarray) if array.dtype.names else copied

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        _bytes(array)[...] = _bytes(there[first : first + len(array)])

    def write(self, there: Any, array: Any, first: int) -> None:
        _bytes(there[first : first + len(array)])[...] = _bytes(array)

    def extend(self, there: Any, array: Any) -> Any:
        return self.put(np.concatenate([there, array]))

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        self.place = len(self.counts)
        self.counts.append(0)
        self.hooks.update(hooks)
        return bind(kernel, **hooks)

    def start(self, linked: Any, count: int, side_by_side: int, *arguments: Any) -> None:
        self.counts[self.place] = max(self.counts[self.place], count)
        self.starts.append(self.place)
        self.side_by_side.append(side_by_side)
        linked(*arguments)

    def has_ended(self) -> bool:
        return True

    def wait(self) -> float:
        """Say that it took a millisecond: the next launch must not depend on this computer."""
        return 0.001
