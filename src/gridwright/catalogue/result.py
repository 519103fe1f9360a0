"""Every printed result, one cell at a time."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["Cell", "results"]

Cell = dict[str, Any]
"""One printed cell; ``published/README.md`` tells what its fields mean."""


def results(**wanted: Any) -> list[Cell]:
    """List the printed cells whose fields have the wanted values.

    >>> results(src="A", table="2.1", system="2.B", policy="LPAS")
    [{'src': 'A', 'table': '2.1', 'system': '2.B', 'policy': 'LPAS', 'metric': 'Q_mean', 'lo': 5.21, 'hi': 5.26}]
    """
    return [
        dict(cell)
        for cell in _cells()
        if all(cell.get(field) == value for field, value in wanted.items())
    ]


@cache
def _cells() -> tuple[Cell, ...]:
    text = (files(__package__) / "results.jsonl").read_text("utf-8")
    return tuple(json.loads(line) for line in text.splitlines())
