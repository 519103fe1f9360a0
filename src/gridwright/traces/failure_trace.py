"""A failure trace: when the machines of a place were up, and when they were not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .account import Account

__all__ = ["FailureTrace"]

Floats = NDArray[np.float64]


class FailureTrace:
    """Periods of nodes, up or down, in the order of their rows. Times are in seconds since 1970.

    >>> trace = FailureTrace(["a", "b", "a"], [0, 5, 60], [60, 9, 70], [True, False, False])
    >>> trace, trace.nodes
    (FailureTrace(2 nodes, 2 times down), ('a', 'b'))
    """

    def __init__(
        self,
        names: Any,
        start: Any,
        end: Any,
        up: Any,
        columns: dict[str, list[str]] | None = None,
        account: Account | None = None,
        lines: Any = (),
        places: Any = None,
    ) -> None:
        known = dict.fromkeys(names)
        self.nodes: tuple[str, ...] = tuple(known)
        numbers = {name: number for number, name in enumerate(known)}
        self.node = np.array([numbers[name] for name in names], dtype=int)
        self.start: Floats = np.asarray(start, dtype=float)
        self.end: Floats = np.asarray(end, dtype=float)
        self.up = np.asarray(up, dtype=bool)
        self.columns = {} if columns is None else columns
        """What else its file says, as it stands there."""
        self.account = Account(len(self)) if account is None else account
        self.lines = np.asarray(lines, dtype=int) if len(lines) else np.zeros(len(self), int)
        self.seen = self._seen(list(names) if places is None else list(places))
        """From when to when each node is known of [node, 2]: up, whenever it is not down."""

    def __len__(self) -> int:
        return len(self.node)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FailureTrace)
            and self.nodes == other.nodes
            and all(
                np.array_equal(getattr(self, part), getattr(other, part))
                for part in ("node", "start", "end", "up")
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FailureTrace({len(self.nodes):,} nodes, {int((~self.up).sum()):,} times down)"

    def _seen(self, places: list[str]) -> Floats:
        """Return from when to when something is known of each node's place: of itself, usually."""
        first: dict[str, float] = {}
        last: dict[str, float] = {}
        where: dict[int, str] = {}
        for node, place, start, end in zip(
            self.node.tolist(), places, self.start.tolist(), self.end.tolist(), strict=True
        ):
            where.setdefault(node, place)
            first[place] = min(first.get(place, start), start)
            last[place] = max(last.get(place, end), end)
        spans = [(first[where[k]], last[where[k]]) for k in range(len(self.nodes))]
        return np.array(spans, dtype=float).reshape(-1, 2)

    def down(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return node, start and end of every time that one was down, overlapping ones as one."""
        chosen = ~self.up & (self.end > self.start)
        order = np.lexsort((self.start[chosen], self.node[chosen]))
        rows = zip(
            self.node[chosen][order].tolist(),
            self.start[chosen][order].tolist(),
            self.end[chosen][order].tolist(),
            strict=True,
        )
        merged: list[list[Any]] = []
        for node, start, end in rows:
            if merged and merged[-1][0] == node and start <= merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], end)
            else:
                merged.append([node, start, end])
        table = np.array(merged, dtype=float).reshape(-1, 3)
        return table[:, 0].astype(int), table[:, 1], table[:, 2]

    def spells(self) -> tuple[Floats, Floats]:
        """Return how long nodes were up between two times down, and how long they were down."""
        node, start, end = self.down()
        same = node[1:] == node[:-1]
        return (start[1:] - end[:-1])[same], end - start

    def time_up(self) -> tuple[float, int]:
        """Return how long all nodes were up together, and how often a failure ended that.

        Time up before a node's first failure and after its last counts, and that of nodes that
        never failed; a node that is down when it is first known of has not been seen to fail.
        """
        node, start, end = self.down()
        known = self.seen[:, 1] - self.seen[:, 0]
        return float(known.sum() - (end - start).sum()), int((start > self.seen[node, 0]).sum())
