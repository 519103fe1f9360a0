"""System files: what is read from one, and what a system looks like in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .chain import PLURAL
from .distribution import Distribution
from .error import InputError
from .fit import with_defaults
from .kind import describe
from .record import Record, plain
from .toml import parse_toml

if TYPE_CHECKING:
    from .system import System

__all__ = ["document", "read"]

_SINGULAR = {many: one for one, many in PLURAL.items()}


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file; the path itself is left for the caller's message."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError("this is not a regular file; expected a system file")
        return parse_toml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except IsADirectoryError:
        raise InputError("this is a folder; expected a system file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("this is not a text file; expected TOML in UTF-8") from None


def document(system: System, folder: Path | None = None, *, named: bool = True) -> dict[str, Any]:
    """Describe a system in the words of a system file, leaving out what goes without saying.

    With named=False it need not be readable again: a distribution may stand in no file.
    """

    def name(distribution: Distribution) -> Any:
        return describe(distribution, folder) if named else (type(distribution), repr(distribution))

    words = _words(system, name)
    omitted = unsaid(system)
    return {_SINGULAR.get(key, key): value for key, value in words.items() if key not in omitted}


def unsaid(system: System) -> set[str]:
    """Name the parts of a system that are what they would be if they were not given."""
    parts: dict[str, Any] = {"rates": system.rates.tolist()}
    if system.has_chains:
        parts = {"templates": system.templates, "random_templates": system.random_templates}
    defaults = with_defaults(parts)
    return {
        key
        for key, value in defaults.items()
        if key not in parts and plain(getattr(system, key)) == plain(value)
    }


def _words(value: Any, name: Callable[[Distribution], Any]) -> Any:
    if isinstance(value, Distribution):
        return name(value)
    if isinstance(value, Record):
        fields = type(value).model_fields
        return {
            key: _words(item, name)
            for key, item in value.parts().items()
            if fields[key].is_required() or _differs(item, fields[key].default)
        }
    if isinstance(value, tuple):
        return [_words(item, name) for item in value]
    return plain(value)


def _differs(item: Any, default: Any) -> bool:
    return item is not None and not (type(item) is type(default) and item == default)
