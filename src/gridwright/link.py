"""Machine code from plain functions, cached on disk and never stale.

Numba's own cache looks at one file: it serves old code when a function that was inlined from
another file changes. Here a plain function is compiled together with every plain function that it
calls, into a cache folder named by a digest of all the files they stand in.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba

__all__ = ["link"]

KEPT_FOLDERS = 64
FOREIGN = ("math", "numba", "numpy")


@cache
def link(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a plain function and, recursively, the plain functions that it calls.

    >>> def twice(x):
    ...     return 2 * x
    >>> def fourfold(x):
    ...     return twice(twice(x))
    >>> link(fourfold)(1.5)
    6.0
    """
    assert isinstance(function, FunctionType)
    linked: dict[FunctionType, Any] = {}
    for inner in _callees(function):
        _compile(inner, linked)
    folder = _cache_folder([function, *linked])
    if folder is None:
        return _jit(_rebound(function, linked), cache=False)
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        return _jit(_rebound(function, linked), cache=True)
    finally:
        config.CACHE_DIR = before


def _compile(function: FunctionType, linked: dict[FunctionType, Any]) -> None:
    if function in linked:
        return
    for inner in _callees(function):
        _compile(inner, linked)
    linked[function] = _jit(_rebound(function, linked), cache=False)


def _jit(function: FunctionType, *, cache: bool) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit(
        function, cache=cache, nogil=True, error_model="numpy"
    )
    return compiled


def _rebound(function: FunctionType, linked: dict[FunctionType, Any]) -> FunctionType:
    """Copy a function so that it calls the compiled versions of what it calls."""
    names = {name: linked[inner] for name, inner in _named_callees(function)}
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    copy.__defaults__ = function.__defaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


def _callees(function: FunctionType) -> list[FunctionType]:
    return [inner for _, inner in _named_callees(function)]


def _named_callees(function: FunctionType) -> Iterator[tuple[str, FunctionType]]:
    for name in _names(function.__code__):
        found = function.__globals__.get(name)
        if isinstance(found, FunctionType) and found.__module__.split(".")[0] not in FOREIGN:
            yield name, found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _cache_folder(functions: list[FunctionType]) -> Path | None:
    """Make the folder for code from these functions; None where they stand in no file."""
    files = sorted({function.__code__.co_filename for function in functions})
    digest = blake2b(digest_size=12)
    for file in files:
        if not Path(file).is_file():
            return None
        digest.update(Path(file).read_bytes())
    folder = _cache_root() / digest.hexdigest()
    if not folder.exists():
        folder.mkdir()
        _prune(folder.parent)
    os.utime(folder)
    return folder


@cache
def _cache_root() -> Path:
    """Find a folder for compiled code; a read-only home falls back to a private one."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(home) / "gridwright"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError:
        return Path(tempfile.mkdtemp(prefix="gridwright-"))


def _prune(root: Path) -> None:
    """Drop the folders that have gone unused longest."""
    by_age = sorted(root.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_age[KEPT_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)
