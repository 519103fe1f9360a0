"""Systems as they come over the web: documents that name no file of this computer."""

from __future__ import annotations

import tomllib
from typing import Any

from pydantic import ValidationError

from ..catalogue import find
from ..model import InputError, System
from ..model.record import Mistake, explain, mistakes
from ..model.toml import parse_toml
from ..testbed import parse_rates

__all__ = ["check_policy", "document_of", "find_mistakes", "read_text", "system_of"]

MOST_MACHINES = 10_000
MOST_CLASSES = 1_000
MOST_PAIRS = 500_000
"""Of a class and a machine."""
LONGEST_TEXT = 500_000
"""Characters of a file, or of a matrix of rates."""
NAMES = ("name", "classes", "groups")
"""Keys whose texts are only shown; any other may be a distribution, which may be code in a file."""
MOST = 100_000
"""The largest whole number that a document may count something with."""


def system_of(given: str | dict[str, Any]) -> System:
    """Return a system by its name in the catalogue, or made of a document."""
    if isinstance(given, str):
        return find(given).system  # which never looks for a file
    _check_document(given)
    try:
        return System.model_validate(given)
    except ValidationError as error:
        raise InputError(explain(error, System)) from None


def find_mistakes(document: dict[str, Any]) -> list[Mistake]:
    """Return what is wrong in a document, place by place; nothing where it is a system."""
    try:
        _check_document(document)
        System.model_validate(document)
    except ValidationError as error:
        return mistakes(error, System)
    except InputError as error:
        return [Mistake((), str(error))]
    return []


def document_of(system: System) -> dict[str, Any]:
    """Return a system as a document."""
    return tomllib.loads(system.to_toml())


def read_text(text: str, name: str = "the text") -> dict[str, Any]:
    r"""Read a system file, or a matrix of rates: commas, semicolons or tabs between them.

    Rates by themselves get an arrival rate of 1 for every class.

    >>> read_text("8, 3\n4, 10", "rates.mue")
    {'arrivals': [1.0, 1.0], 'rates': [[8.0, 3.0], [4.0, 10.0]]}
    """
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: {len(text):,} characters; expected at most {LONGEST_TEXT:,}")
    if "=" in text:
        try:
            return parse_toml(text)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    mark = "\t" if "\t" in text else ";" if ";" in text else ","
    rates = parse_rates(text.replace(mark, ","), name).tolist()
    return {"arrivals": [1.0] * len(rates), "rates": rates}


def check_policy(name: str) -> str:
    """Refuse a policy that is named by a file: code is not for whoever sends a request to run."""
    if "/" in name or "\\" in name or ".py" in name:
        raise InputError(f"policy {name[:80]!r}: over the web policies are named, not files")
    return name


def _check_document(document: dict[str, Any]) -> None:
    _check_parts(document, "")
    classes = max(map(_rows, ("rates", "arrivals", "classes", "template"), [document] * 4))
    if classes > MOST_CLASSES:
        raise InputError(f"{classes:,} classes; expected at most {MOST_CLASSES:,}")
    machines = _machines(document)
    if machines > MOST_MACHINES:
        raise InputError(f"{machines:,} machines; expected at most {MOST_MACHINES:,}")
    if classes * machines > MOST_PAIRS:
        raise InputError(
            f"{classes:,} classes on {machines:,} machines are {classes * machines:,} pairs; "
            f"expected at most {MOST_PAIRS:,}"
        )


def _rows(key: str, document: dict[str, Any]) -> int:
    value = document.get(key)
    return len(value) if isinstance(value, list) else 0


def _machines(document: dict[str, Any]) -> int:
    """Count the machines of a document, which need not make sense yet."""
    rates, counts = document.get("rates"), document.get("counts")
    rows = rates if isinstance(rates, list) else []
    columns = max((len(row) for row in rows if isinstance(row, list)), default=0)
    if not isinstance(counts, list):
        return columns
    return max(columns, sum(each for each in counts if isinstance(each, int) and each > 0))


def _is_measure(key: str) -> bool:
    """Tell a time or a rate, which may be as large as it likes, from a number of things."""
    return key in ("arrivals", "rates") or key.startswith("mean_")


def _check_parts(value: Any, key: str, depth: int = 0) -> None:
    if depth > 20:
        raise InputError("the document is nested too deeply")
    if isinstance(value, dict):
        for own, item in value.items():
            if own == "file":
                raise InputError(f"{own} = {item!r}: over the web a system names no file")
            _check_parts(item, str(own), depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_parts(item, key, depth + 1)
    elif isinstance(value, str) and ".py" in value and key not in NAMES:
        raise InputError(f"{key} = {value!r}: over the web a system names no file")
    elif isinstance(value, int) and abs(value) > MOST and not _is_measure(key):
        raise InputError(f"{key} is {_shown(value)}; expected at most {MOST:,}")


def _shown(value: int) -> str:
    """Write a number, of any size: of thousands of digits nobody wants to read them all."""
    return f"{value:,}" if value.bit_length() < 100 else f"a number of {value.bit_length()} bits"
