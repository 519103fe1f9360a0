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
from pathlib import Path
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
        modules, folders = list(sys.modules.items()), _folders()
        own = {name for name, each in modules if "." not in name and _lies_in(each, folders)}
        found = [
            (name, hasattr(each, "__path__"), Path(file) if (file := _file(each)) else None)
            for name, each in sorted(modules, key=lambda pair: pair[0])
            if name.partition(".")[0] in own
        ]
        # a package without a file is a namespace; a compiled module cannot travel
        _looked = (state, tuple(each for each in found if each[1] or _is_source(each[2])))
    return _looked[1]


def _folders() -> tuple[str, ...]:
    """Return the folder of the script, and the present one if Python searches it.

    Folders of installed packages do not count: a script may be one of them.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    here = os.getcwd()
    found = [os.path.dirname(os.path.abspath(script))] if script else []
    found += [here] if "" in sys.path or here in sys.path else []
    installed = sysconfig.get_paths().values()
    return tuple(each for each in found if each not in installed)


def _is_source(file: Path | None) -> bool:
    return file is not None and file.suffix == ".py"


def _file(module: Any) -> str:
    return getattr(module, "__file__", None) or ""


def _lies_in(module: Any, folders: Sequence[str]) -> bool:
    """Tell whether a module or a package lies in one of some folders."""
    if getattr(module, "__name__", "__main__") in ("__main__", "__mp_main__", "gridwright"):
        return False
    places = [_file(module)] if not hasattr(module, "__path__") else list(module.__path__)
    return any(os.path.dirname(os.path.abspath(each)) in folders for each in places if each)


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
