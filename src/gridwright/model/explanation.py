"""From a validation error to one line: where the value stands, what it is, what was expected."""

from datetime import date, time
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .error import did_you_mean

__all__ = ["Mistake", "explain", "mistakes"]

EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "tuple_type": "a list",
}
SHOWN = 3
"""Errors told in one line."""
MOST = 200
"""Mistakes told place by place."""
LONGEST = 80
"""Characters of a place that are shown."""
BOUNDS = {"greater_than": ">", "greater_than_equal": "≥", "less_than": "<", "less_than_equal": "≤"}


def explain(error: ValidationError, record: type[BaseModel]) -> str:
    """Say in one line what a record's errors are, and where; the first few if they are many.

    An unknown key comes before a missing one: it is often the same key, misspelt.
    """
    errors = sorted(
        error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden"
    )
    more = f" (and {len(errors) - SHOWN} more)" if len(errors) > SHOWN else ""
    return "; ".join(_sentence(each, record) for each in errors[:SHOWN]) + more


class Mistake(NamedTuple):
    """Something that is wrong in a record: where, and what."""

    place: tuple[int | str, ...]
    words: str


def mistakes(error: ValidationError, record: type[BaseModel]) -> list[Mistake]:
    """Say of every error where it is, step by step, and what it is; of very many, the first."""
    return [
        Mistake(tuple(step for step in each["loc"] if not _is_tag(step)), _sentence(each, record))
        for each in error.errors(include_url=False)[:MOST]
    ]


def _sentence(error: ErrorDetails, record: type[BaseModel]) -> str:
    kind, where = error["type"], _cut(place(error["loc"]), LONGEST)
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"unknown key {where}{did_you_mean(str(error['loc'][-1]), _keys(record, error))}"
    if kind == "value_error":
        text = str(error["ctx"]["error"])
        return f"{where}: {text}" if where else text
    if kind in BOUNDS:
        (bound,) = error["ctx"].values()
        expected = f"a number {BOUNDS[kind]} {bound:g}"
    elif kind == "literal_error":
        expected = str(error["ctx"]["expected"])
    else:
        expected = EXPECTED.get(kind, error["msg"])
    return f"{where} is {shortened(error['input'])}; expected {expected}"


def place(path: tuple[int | str, ...]) -> str:
    """Name a place in a file as its reader would.

    >>> place(("rates", 1, 0)), place(("failures", "uptime")), place(("availability", 2, "step"))
    ('rates, row 2, column 1', '[failures] uptime', 'availability, entry 3, step')
    """
    words = ""
    steps = [step for step in path if not _is_tag(step)]
    for number, step in enumerate(steps):
        following = steps[number + 1 :]
        if isinstance(step, str):
            table = following and isinstance(following[0], str)
            words += (", " if words.endswith(DIGITS) else "") + (f"[{step}] " if table else step)
        elif isinstance(steps[number - 1], int):
            words += f", column {step + 1}"
        else:
            row = following and isinstance(following[0], int)
            words += f", {'row' if row else 'entry'} {step + 1}"
    return words


DIGITS = tuple("0123456789")


def _is_tag(step: int | str) -> bool:
    """Tell the branch of a union, which Pydantic puts into the path, from what a reader wrote."""
    return isinstance(step, str) and step.startswith("\0")


def shortened(value: Any, length: int = 40) -> str:
    """Show a value, cut where it would fill the line."""
    text = " ".join((str if isinstance(value, date | time) else repr)(value).split())
    return _cut(text, length)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _keys(record: type[BaseModel], error: ErrorDetails) -> list[str]:
    """List the keys allowed where an unknown one was found."""
    for step in error["loc"][:-1]:
        field = record.model_fields.get(str(step))
        for inner in getattr(field.annotation, "__args__", ()) if field else ():
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                record = inner
    return list(record.model_fields)
