"""The format of a journal: the columns of its tables, and what every row and every key must be."""

from __future__ import annotations

from typing import Any

from .event import UNUSUAL
from .job import Stage

VERSION = 5
TIMES = ("assigned", "free", "heard_free", "sent", "started", "ended", "heard", "settled")
ENDED = tuple(str(stage) for stage in Stage if stage.is_final)
STANDING = ("stage", "machine", "attempt", *TIMES, "lost", "timed_out", "deaths", "causes")

SCHEMA = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE job (
    number INTEGER PRIMARY KEY, class TEXT NOT NULL, submitted REAL NOT NULL, work BLOB,
    key TEXT, options TEXT, needs TEXT,
    stage TEXT NOT NULL, machine TEXT, attempt INTEGER NOT NULL,
    {", ".join(f"{name} REAL" for name in TIMES)},
    lost INTEGER NOT NULL, timed_out INTEGER NOT NULL, deaths INTEGER NOT NULL, causes TEXT,
    result BLOB, error TEXT);
CREATE TABLE event (
    time REAL NOT NULL, kind TEXT NOT NULL, job INTEGER, attempt INTEGER, machine TEXT,
    fields TEXT);
CREATE INDEX keyed ON job (key) WHERE key IS NOT NULL;
CREATE INDEX unusual ON event (kind) WHERE {UNUSUAL};
CREATE TABLE decision (
    time REAL NOT NULL, asked TEXT NOT NULL, candidates TEXT NOT NULL, choice TEXT, plan INTEGER);
CREATE TABLE request (
    number INTEGER PRIMARY KEY, verb TEXT NOT NULL, machine TEXT NOT NULL, value TEXT NOT NULL,
    answer TEXT);
"""

_WHOLE = "typeof({0}) = 'integer' AND {0} >= 0"
_TEXT = "typeof({0}) = 'text'"
_TIME = "typeof({0}) = 'real' AND abs({0}) < 1e15"
_MAYBE = "{0} IS NULL OR "
SOUND = {
    "job": [
        *(_WHOLE.format(name) for name in ("number", "attempt", "lost", "timed_out", "deaths")),
        *(_TEXT.format(name) for name in ("class", "stage")),
        f"stage IN {tuple(map(str, Stage))}",
        "typeof(work) = 'blob'",
        _TIME.format("submitted"),
        *((_MAYBE + _TIME).format(name) for name in TIMES),
        *((_MAYBE + _TEXT).format(name) for name in ("machine", "error", "key")),
        "options IS NULL OR (json_valid(options) AND json_type(options) = 'object')",
        "needs IS NULL OR (json_valid(needs) AND json_type(needs) = 'array')",
        "result IS NULL OR typeof(result) = 'blob'",
        "causes IS NULL OR (json_valid(causes) AND json_type(causes) = 'array')",
    ],
    "event": [
        _TIME.format("time"),
        _TEXT.format("kind"),
        *((_MAYBE + _WHOLE).format(name) for name in ("job", "attempt")),
        (_MAYBE + _TEXT).format("machine"),
        (_MAYBE + "typeof({0}) = 'text' AND substr({0}, 1, 1) = '{{'").format("fields"),
    ],
    "decision": [
        _TIME.format("time"),
        *(_TEXT.format(name) for name in ("asked", "candidates")),
        (_MAYBE + _TEXT).format("choice"),
    ],
    "request": [_TEXT.format(name) for name in ("verb", "machine", "value")],
}
"""Conditions that every row of a table must meet."""
TOLD: dict[str, Any] = {
    "origin": float | int,
    "unit": float | int,
    "ended": float | int,
    "kind": str,
    "policy": str,
    "classes": list,
    "machines": list,
    "faults": list,
    "experiment": dict,
    "jobs": dict | list,
    "messages": dict,
    "outcome": dict,
}
"""The types of the keys of a description."""
