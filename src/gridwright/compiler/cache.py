"""Keep machine code on disk, in one folder for each program, and the parts that programs share."""

import atexit
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from pickle import PicklingError
from threading import Lock
from time import monotonic, sleep
from typing import Any

KEPT_FOLDERS = 1024
"""Programs that are kept, with a quarter of a megabyte each: more than the tests compile."""
KEPT_PARTS = 1024
PARTS = "parts"
"""The folder of the parts that several programs use."""
CHECKED = 16
"""Bytes of the checksum of a part."""
SPARE = 4_000_000
"""Bytes that must be free on the disk, which is more than any program takes."""
PATIENCE = 120.0
"""Seconds to wait for a program that another process compiles."""
_LOCK = Lock()


def folder_of(name: str) -> Path | None:
    """Make the folder of a program; return None and warn if nothing can be written there."""
    folder = _root() / name
    try:
        if not folder.exists():
            _prune(folder.parent, KEPT_FOLDERS)
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        if next(folder.iterdir(), None) is None:
            with tempfile.TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, SPARE)
    except OSError as error:
        _warn(error)
        return None
    return folder


def holds_code(name: str) -> bool:
    """Tell whether the machine code of a program is on disk."""
    return next((_root() / name).glob("*.nbi"), None) is not None


def compile_into(folder: Path | None, compiled: Callable[[bool], Any]) -> Any:
    """Compile with Numba's cache in a folder; without a cache if there is no folder."""
    with _alone_in(folder), _caching_in(folder):
        try:
            made = compiled(folder is not None)
        except (OSError, RuntimeError) as error:  # RuntimeError: Numba cannot use the folder
            if folder is None:
                raise
            _warn(error)
            return compiled(False)
    _let_saving_fail(made)
    _let_others_wait(made, folder)
    return made


def _let_others_wait(made: Any, folder: Path | None) -> None:
    """Let one process compile a program at its first call; others load its machine code."""
    compile_now = getattr(made, "compile", None)
    if compile_now is None:
        return

    def compile_alone(signature: Any) -> Any:
        with _alone_in(folder):
            return compile_now(signature)

    made.compile = compile_alone


@contextmanager
def _alone_in(folder: Path | None) -> Iterator[None]:
    """Wait until no other process compiles into a folder, or that takes too long."""
    with ExitStack() as held:
        if folder is not None:
            with suppress(OSError):  # a disk may have no locks
                lock = held.enter_context((folder / "lock").open("w"))
                if _locked(lock):
                    held.callback(fcntl.flock, lock, fcntl.LOCK_UN)  # a fork has it open, too
        yield


def _locked(lock: Any) -> bool:
    """Lock a file; give up after a time: the process that holds it may have been stopped."""
    end = monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if monotonic() > end:
                return False
            sleep(0.02)


def _let_saving_fail(made: Any) -> None:
    """Warn if machine code cannot be saved at its first call, for example on a full disk.

    This is a private part of Numba and of numba-cuda. Without it, a full disk would end the run.
    """
    save = getattr(getattr(made, "_cache", None), "save_overload", None)
    if save is None:
        return

    def save_or_warn(*given: Any) -> None:
        try:
            save(*given)
        except (OSError, RuntimeError, PicklingError) as error:
            _warn(error)

    made._cache.save_overload = save_or_warn


def load_part(name: str) -> bytes | None:
    """Return what was kept of a part of programs; None if there is nothing, or it is damaged."""
    path = _root() / PARTS / name
    try:
        kept = path.read_bytes()
        os.utime(path)
        os.utime(path.parent)  # otherwise the whole folder would count as unused
    except OSError:
        return None
    return kept[CHECKED:] if kept[:CHECKED] == _checksum(kept[CHECKED:]) else None


def save_part(name: str, kept: bytes) -> None:
    """Keep a part that several programs use."""
    path = _root() / PARTS / name
    beside = path.with_name(f"{name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        _prune(path.parent, KEPT_PARTS)
        beside.write_bytes(_checksum(kept) + kept)
        beside.replace(path)
    except OSError as error:
        _warn(error)
        beside.unlink(missing_ok=True)


def _checksum(kept: bytes) -> bytes:
    return blake2b(kept, digest_size=CHECKED).digest()


@contextmanager
def _caching_in(folder: Path | None) -> Iterator[None]:
    """Point Numba's cache to a folder while functions are decorated."""
    import numba

    config: Any = numba.config
    with _LOCK:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder or "")
        try:
            yield
        finally:
            config.CACHE_DIR = before


_WARNED: list[str] = []


def _warn(error: Exception) -> None:
    """Warn once that code is not kept."""
    why = getattr(error, "strerror", None) or str(error)
    if not _WARNED:
        _WARNED.append(why)
        logging.getLogger("gridwright").warning(
            "gridwright: compiled code cannot be kept in %s: %s; it is compiled again next time",
            _root(),
            why,
        )


@cache
def _root() -> Path:
    """Return the folder of all compiled code; a temporary one if the home is read-only."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(home) / "gridwright" / "code"
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except (OSError, RuntimeError):
        private = Path(tempfile.mkdtemp(prefix="gridwright-"))
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        return private


def _prune(root: Path, most: int) -> None:
    """Remove what was not used for longest; other processes may do so too."""
    ages = {}
    for each in root.iterdir():
        with suppress(OSError):
            ages[each] = each.stat().st_mtime
    for each in sorted(ages, key=lambda each: ages[each], reverse=True)[most:]:
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
