"""The events of a grid as its journal has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

USUAL = ("submitted", "sent", "started", "finished")
"""Kinds of events that every job has."""
UNUSUAL = f"kind NOT IN {USUAL}"
"""The SQL condition for all other events, which have an index of their own."""
BY_OPERATORS = (
    *("paused", "resumed", "killed", "started again", "availability imposed", "prediction"),
    *("run paused", "run resumed", "run stopped"),
)
"""Kinds of events that operators cause; a failure that one causes has the field ``period``."""
FIELDS: dict[str, tuple[str, ...]] = {
    "arrivals": ("rates",),
    "availability": ("measured", "predicted"),
    "availability imposed": ("availability",),
    "begun": ("clock", "resumed"),
    "cancelled": ("why",),
    "changed": ("what", "task_class", "value"),
    "down": ("why",),
    "failed": ("why",),
    "failure": ("period",),
    "finished": ("known",),
    "lost": ("why",),
    "nobody": ("task_class",),
    "plan": ("number", "shares"),
    "prediction": ("mode",),
    "rates": ("rates",),
    "run paused": ("clock",),
    "run resumed": ("clock",),
    "run stopped": ("clock",),
    "started": ("length",),
    "timed out": ("then",),
}
"""The named fields that events of a kind may have; other kinds have none.

``clock`` is the time of day in seconds since 1970, ``rates`` and ``shares`` are [class, machine],
``then`` is what was done about a job that timed out. ``changed`` are rates of a machine that
decides for itself: ``what`` has become ``value``, a factor of the first rate or an availability. Of
batches and chains, ``length`` is how long a task should take, and ``known`` is how far the loop had
come when it learnt of an end.
"""
NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Entry(NamedTuple):
    """An event in the journal."""

    time: float
    kind: str
    job: int | None = None
    attempt: int | None = None
    machine: str | None = None
    fields: Mapping[str, Any] = NO_FIELDS
    """What else is known of it, by name: see `FIELDS`."""

    @property
    def detail(self) -> str:
        """The fields as a text: one value alone, or several with their names.

        >>> Entry(0.0, "availability", fields={"measured": 0.5, "predicted": 0.6}).detail
        'measured 0.5, predicted 0.6'
        """
        if len(self.fields) == 1:
            return " ".join(map(str, self.fields.values()))
        return ", ".join(f"{name} {value}" for name, value in self.fields.items())

    def as_json(self) -> dict[str, Any]:
        """Return the event as plain values."""
        return {**self._asdict(), "fields": dict(self.fields), "detail": self.detail}

    def row(self) -> tuple[Any, ...]:
        """Return the row of the table ``event``."""
        return (*self[:5], json.dumps(dict(self.fields)) if self.fields else None)

    @classmethod
    def read(cls, row: Sequence[Any]) -> Entry:
        """Return the event of a row; raise ValueError if its fields are damaged."""
        time, kind, job, attempt, machine, text = row
        fields = json.loads(text) if text else NO_FIELDS
        if not isinstance(fields, Mapping):
            raise ValueError("fields is not an object")
        return cls(time, kind, job, attempt, machine, fields)
