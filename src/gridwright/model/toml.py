"""TOML as a person would write it: matrices row by row, whole numbers without a point."""

import json
from typing import Any

__all__ = ["format_toml"]


def format_toml(document: dict[str, Any]) -> str:
    """Write a document of texts, numbers, lists and tables.

    >>> document = {"name": "two", "rates": [[8.0, 3.5], [4.0, 10.0]]}
    >>> print(format_toml({**document, "failures": {"mean_uptime": 20.0}}))
    name = "two"
    rates = [
      [8, 3.5],
      [4, 10],
    ]
    <BLANKLINE>
    [failures]
    mean_uptime = 20
    <BLANKLINE>
    """
    return "\n".join(_lines(document, ())) + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {key: value for key, value in table.items() if _is_section(value)}
    lists = {key: value for key, value in table.items() if _is_list_of_sections(value)}
    values = {key: value for key, value in table.items() if key not in {*tables, *lists}}
    lines = [f"{_key(key)} = {_top_value(value)}" for key, value in values.items()]
    for key, inner in tables.items():
        if not inner or not all(map(_is_section, inner.values())):
            lines += ["", f"[{'.'.join(map(_key, (*path, key)))}]"]
        lines += _lines(inner, (*path, key))
    for key, items in lists.items():
        for item in items:
            lines += ["", f"[[{'.'.join(map(_key, (*path, key)))}]]"]
            lines += _lines(item, (*path, key))
    return lines


def _is_section(value: Any) -> bool:
    """Tell a section from a value: a table that names its kind is a value, on one line."""
    return isinstance(value, dict) and "kind" not in value


def _is_list_of_sections(value: Any) -> bool:
    """Tell a list of things that have names, each a section, from a list of values."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(_is_section, value))
        and "name" in value[0]
    )


def _top_value(value: Any) -> str:
    """Write a value that has a line of its own; a list of lists or tables gets a line for each."""
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + "".join(f"  {_value(row)},\n" for row in value) + "]"
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
    return f"{{ {pairs} }}"


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)
