"""System files: what is read from one, and what a system looks like in one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .distribution import Distribution
from .error import InputError
from .fit import with_defaults
from .kind import describe
from .record import Record, plain

if TYPE_CHECKING:
    from .system import System

__all__ = ["document", "read"]


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file; the path itself is left for the caller's message."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except IsADirectoryError:
        raise InputError("this is a folder; expected a system file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("this is not a text file; expected TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}") from None


def document(system: System, folder: Path | None = None) -> dict[str, Any]:
    """Describe a system in the words of a system file, leaving out what goes without saying."""
    words = _words(system, folder)
    assert isinstance(words, dict)
    unsaid = with_defaults({"rates": words["rates"]})
    return {
        key: value
        for key, value in words.items()
        if key in ("arrivals", "rates") or value != plain(unsaid.get(key))
    }


def _words(value: Any, folder: Path | None) -> Any:
    if isinstance(value, Distribution):
        return describe(value, folder)
    if isinstance(value, Record):
        fields = type(value).model_fields
        return {
            key: _words(item, folder)
            for key, item in value.parts().items()
            if fields[key].is_required() or _differs(item, fields[key].default)
        }
    if isinstance(value, tuple):
        return [_words(item, folder) for item in value]
    return plain(value)


def _differs(item: Any, default: Any) -> bool:
    return item is not None and not (type(item) is type(default) and item == default)
