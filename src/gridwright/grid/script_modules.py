"""Modules that lie beside the user's script: they travel with the calls that need them.

Local machines import such modules themselves, because their processes search where this process
searches. Machines of other computers, and those of a grid that is served, cannot.
"""

from __future__ import annotations

import os
import pickle
import sys
import sysconfig
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from .worker import with_modules

MOST = 1 << 17
"""The most bytes of compressed modules that travel with a call; if there are more, none do."""
Known = tuple[tuple[str, bool, Path | None], ...]
"""The name of each module, whether it is a package, and its file, if it has one."""


def with_script_modules(work: bytes, *, always: bool = False) -> bytes:
    """Return a pickled call with the modules beside the script, if it names one of them.

    ``always`` adds them even if it names none, for a call whose arguments are not known yet.
    """
    known = _modules()
    names = {name.partition(".")[0].encode() for name, _, _ in known}
    if not names or not (always or any(name in work for name in names)):
        return work
    packed = _packed(known)
    return with_modules(work, packed) if 0 < len(packed) <= MOST else work


_looked: tuple[Any, Known] = (None, ())
_read: tuple[Any, bytes] = (None, b"")


def _modules() -> Known:
    """Return the modules beside the script that were imported so far."""
    global _looked
    state = len(sys.modules)  # it changes when something is imported
    if _looked[0] != state:
        folders, found = _folders(), []
        own = {name for name in list(sys.modules) if "." not in name and _lies_in(name, folders)}
        for name in sorted(sys.modules):
            if name.partition(".")[0] in own:
                file, is_package = _file(name), "__path__" in _facts(name)
                if is_package or file.endswith(".py"):  # a compiled module cannot travel
                    found.append((name, is_package, Path(file) if file else None))
        _looked = (state, tuple(found))
    return _looked[1]


def _folders() -> tuple[str, ...]:
    """Return the folder of the script, and the present one if Python searches it.

    Folders of installed packages do not count: a script may be one of them.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    found = [os.path.dirname(os.path.abspath(script))] if script else []
    with suppress(OSError):  # the present folder was removed
        here = os.getcwd()
        found += [here] if "" in sys.path or here in sys.path else []
    installed = sysconfig.get_paths().values()
    return tuple(each for each in found if each not in installed)


def _lies_in(name: str, folders: Sequence[str]) -> bool:
    """Tell whether a module or a package lies in one of some folders."""
    if name in ("__main__", "__mp_main__", "gridwright"):
        return False
    places = list(_facts(name).get("__path__", ())) or [_file(name)]
    return any(os.path.dirname(os.path.abspath(each)) in folders for each in places if each)


def _file(name: str) -> str:
    found = _facts(name).get("__file__")
    return found if isinstance(found, str) else ""


def _facts(name: str) -> dict[str, Any]:
    """Return the attributes of a module without a call to its code: some import when asked."""
    module = sys.modules.get(name)
    return object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}


def _packed(known: Known) -> bytes:
    """Return the sources of modules, compressed; read them again if a file has changed."""
    global _read
    try:
        state = [(each, each[2] and each[2].stat().st_mtime_ns) for each in known]
        if _read[0] != state:
            sources = {
                name: (is_package, str(file or ""), file.read_bytes() if file else b"")
                for name, is_package, file in known
            }
            _read = (state, zlib.compress(pickle.dumps(sources)))
    except OSError:  # the file of a module was removed
        return b""
    return _read[1]
