"""Read TOML within limits, and write it with matrices row by row."""

import json
import re
import tomllib
from typing import Any

from .error import InputError

DEEPEST_KEY = 20
"""The most parts of a dotted key; the parser takes time with the square of their number."""
BITS = 64
"""The most bits of a whole number, as TOML says."""

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?)"""
_WORD = re.compile(
    r'"""(?s:\\.|.)*?(?:"""|\Z)'
    r"|'''(?s:.)*?(?:'''|\Z)"
    r"|#.*"
    rf"|({_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+)"
)
"""A text of several lines, a comment, or words with points between them: a key, or a value.

Unclosed quotes end with their line or the document, so that no character is read twice.
"""


def parse_toml(text: str) -> dict[str, Any]:
    """Read a document; refuse early what would take long to parse.

    >>> parse_toml("failures.mean_uptime = 20")
    {'failures': {'mean_uptime': 20}}
    """
    _check_keys(text)
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}") from None
    if (bits := _most_bits(document)) > BITS:
        raise InputError(f"a number of {bits} bits; expected at most {BITS}, as TOML has it")
    return document


def _check_keys(text: str) -> None:
    """Refuse keys of very many parts."""
    for found in _WORD.finditer(text):
        word = found[1] or ""
        if word.count(".") >= DEEPEST_KEY and len(re.findall(_PART, word)) > DEEPEST_KEY:
            line = text.count("\n", 0, found.start()) + 1
            raise InputError(
                f"line {line}: a key of more than {DEEPEST_KEY} parts; expected one or two"
            )


def _most_bits(value: Any) -> int:
    """Return the number of bits of the largest whole number in a document."""
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return max(map(_most_bits, parts), default=0)
    return 0


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
    """Return whether a value is a section; a table that names its kind is written on one line."""
    return isinstance(value, dict) and "kind" not in value


def _is_list_of_sections(value: Any) -> bool:
    """Return whether a value is a list of sections: tables that have names."""
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(map(_is_section, value)) and "name" in value[0]


def _top_value(value: Any) -> str:
    """Write a value on its own line; a list of lists or tables gets a line for each."""
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
