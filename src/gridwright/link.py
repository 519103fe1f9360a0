"""Machine code from plain functions, cached on disk and never stale.

Numba's own cache looks at one file: it serves old code when a function that was inlined from
another file changes. Here a plain function is compiled together with every plain function that it
calls, into a cache folder named by a digest of all their code and of the constants they use. A
function marked as a *hook* is a place for another one, given by its name: that is how a policy gets
into a loop.
"""

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np

__all__ = ["bind", "hook", "link", "point", "rare", "shared"]

KEPT_FOLDERS = 256
_LOCK = Lock()
_SHARED: list[type] = []
FOREIGN = ("builtins", "math", "numba", "numpy")

CONSTANT = (bool, int, float, str, tuple, np.dtype)

Function = Callable[..., Any]
Shared = TypeVar("Shared")


def hook(function: Function) -> Function:
    """Mark a function as a place that another one of its name can be put into."""
    function.is_hook = True  # type: ignore[attr-defined]
    return function


def rare(function: Function) -> Function:
    """Mark a function that is called now and then: it is called, where others are inlined."""
    function.is_rare = True  # type: ignore[attr-defined]
    return function


def shared(cls: type[Shared]) -> type[Shared]:
    """Mark a class of named tuples that compiled functions hand to each other by address.

    Only Python makes such tuples; compiled code reads their fields by name.
    """
    _SHARED.append(cls)
    return cls


def _register_shared() -> None:
    """Tell Numba of the classes that are shared."""
    from .reference import register

    while _SHARED:
        register(_SHARED.pop())


@cache
def link(
    function: Function,
    /,
    *,
    allocating: bool = False,
    inlined: bool = False,
    **hooks: Function,
) -> Function:
    """Compile a plain function and, recursively, the plain functions that it calls.

    Code that allocates nothing is compiled without reference counting, which is quicker to
    compile and to run: that of modules that say so, and what they call, hooks included unless
    they are allocating. What is called may be inlined throughout, for speed, but for what is rare.

    >>> def twice(x):
    ...     return 2 * x
    >>> def fourfold(x):
    ...     return twice(twice(x))
    >>> link(fourfold)(1.5)
    6.0
    """
    import numba

    from .inner import OuterCompiler

    _register_shared()
    tag = _tag(function, hooks)

    def treat(inner: FunctionType) -> Any:
        forceinline = inlined and not getattr(inner, "is_rare", False)
        return _made_inner(inner, tag, forceinline=forceinline, **_options(inner, allocating))

    linked = _linked(function, hooks, treat)
    outer = _rebound(function, linked, hooks)
    outer.__qualname__ += f"_{tag}"
    own = {"pipeline_class": OuterCompiler, **_options(outer)}
    folder = _cache_folder(function, linked)
    return _cached(lambda caching: numba.njit(outer, cache=caching, **own), folder)


@cache
def point(function: Function, returns: Any, *takes: Any) -> Any:
    """Compile a function by itself, and return a pointer that compiled code can be passed.

    Code that calls it through the pointer need not be compiled with it: a planner is compiled
    once, whatever loops it runs in. An exception in it would be lost, so it must not raise.
    """
    import numba
    from numba.core import types

    from .inner import OuterCompiler

    _register_shared()
    tag = _tag(function, {})
    linked = _linked(function, {}, lambda inner: _made_inner(inner, tag, **_options(inner)))
    outer = _rebound(function, linked, {})
    signature = returns(*takes)
    own = {"pipeline_class": OuterCompiler, **_options(outer)}
    folder = _cache_folder(function, linked)
    compiled = _cached(lambda caching: numba.cfunc(signature, cache=caching, **own)(outer), folder)

    class Pointer(types.WrapperAddressProtocol):
        def __wrapper_address__(self) -> Any:
            return compiled.address

        def signature(self) -> Any:
            return signature

    return Pointer()


def _tag(function: Function, hooks: dict[str, Function]) -> str:
    """Return what tells the functions of one program from those of another.

    Code from the cache and code compiled now may number their functions alike, and then one of
    them runs the other's function of the same name, with another policy in it: so names differ.
    """
    assert isinstance(function, FunctionType)
    return _digest((function, *_linked(function, hooks, lambda inner: inner)))


def _made_inner(function: FunctionType, tag: str, **options: Any) -> Any:
    """Make a function that only compiled code calls: it needs no way in from Python.

    It is compiled once for arguments of a type, not once more for constants among them: a variable
    that starts as a constant would have what it is passed to compiled for that constant, before
    Numba finds that it varies.
    """
    import numba
    from numba.core.types.misc import unliteral

    from .inner import InnerCompiler

    function.__qualname__ += f"_{tag}"
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(function, pipeline_class=InnerCompiler, **options)
    once = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return once(tuple(map(unliteral, args)), {key: unliteral(kws[key]) for key in kws})

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _cached(compiled: Callable[[bool], Any], folder: Path | None) -> Any:
    """Compile with a cache in a folder; where that cannot be written, without."""
    with _caching_in(folder) as caching:
        try:
            made = compiled(caching)
        except (OSError, RuntimeError) as error:  # Numba's word for a folder that is not there
            if not caching:
                raise
            _say_uncached(error)
            return compiled(False)
        cache_of = getattr(made, "_cache", None)
        if caching and cache_of is not None:
            save = cache_of.save_overload
            cache_of.save_overload = lambda *given: _save(save, *given)
        return made


def _save(save: Callable[..., None], *given: Any) -> None:
    """Keep code that was compiled at its first call; a full disk is no reason to stop."""
    try:
        save(*given)
    except OSError as error:
        _say_uncached(error)


_SAID: list[str] = []


def _say_uncached(error: Exception) -> None:
    """Say once that code is not kept."""
    why = getattr(error, "strerror", None) or str(error)
    if not _SAID:
        _SAID.append(why)
        logging.getLogger("gridwright").warning(
            "gridwright: compiled code cannot be kept in %s: %s; it is compiled again next time",
            _cache_root(),
            why,
        )


@contextmanager
def _caching_in(folder: Path | None) -> Iterator[bool]:
    """Let Numba cache what is compiled now in a folder, if there is one."""
    import numba

    config: Any = numba.config
    with _LOCK:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder or "")
        try:
            yield folder is not None
        finally:
            config.CACHE_DIR = before


def _options(function: Function, allocating: bool = False) -> dict[str, Any]:
    """Say how a function is compiled."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if function.__globals__.get("ALLOCATES_NOTHING", False):
        options["_nrt"] = False
    elif allocating:
        options["_nrt"] = True
    return options  # without a word on it, as its caller


def bind(function: Function, **hooks: Function) -> Function:
    """Return the function with its hooks filled, in plain Python: slow, and easy to step through.

    >>> @hook
    ... def answer():
    ...     return 0
    >>> def ask():
    ...     return answer()
    >>> bind(ask, answer=lambda: 42)()
    42
    """
    return _rebound(function, _linked(function, hooks, lambda inner: inner), hooks)


def _linked(
    function: Function, hooks: dict[str, Function], treat: Callable[[FunctionType], Any]
) -> dict[FunctionType, Any]:
    """Treat every function that a function calls, those called by others first."""
    linked: dict[FunctionType, Any] = {}
    used: set[str] = set()

    def visit(inner: FunctionType, above: tuple[FunctionType, ...]) -> None:
        if inner in above:
            raise TypeError(f"{inner.__name__} calls itself, which cannot be compiled here")
        if inner.__closure__:
            raise TypeError(f"{inner.__name__} uses variables of a function around it")
        callees = _callees(inner, hooks)
        used.update(hooks.keys() & callees.keys())
        for callee in callees.values():
            if callee not in linked:
                visit(callee, (*above, inner))
        if above:
            linked[inner] = treat(_rebound(inner, linked, hooks))

    assert isinstance(function, FunctionType)
    visit(function, ())
    if unknown := hooks.keys() - used:
        raise TypeError(f"{function.__name__} has no hook {', '.join(sorted(unknown))}")
    return linked


def _rebound(
    function: Function, linked: dict[FunctionType, Any], hooks: dict[str, Function]
) -> FunctionType:
    """Copy a function so that it calls the treated versions of what it calls."""
    assert isinstance(function, FunctionType)
    names = {name: linked[inner] for name, inner in _callees(function, hooks).items()}
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _callees(function: Function, hooks: dict[str, Function]) -> dict[str, FunctionType]:
    """Name the plain functions that a function calls, hooks in place of what they replace."""
    assert isinstance(function, FunctionType)
    found = {}
    for name in _names(function.__code__):
        callee = function.__globals__.get(name)
        if getattr(callee, "is_hook", False):
            callee = hooks.get(name, callee)
        if isinstance(callee, FunctionType) and callee.__module__.split(".")[0] not in FOREIGN:
            found[name] = callee
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _cache_folder(function: Function, linked: dict[FunctionType, Any]) -> Path | None:
    """Make the folder for code from these functions; None where one stands in no file."""
    assert isinstance(function, FunctionType)
    if not all(Path(each.__code__.co_filename).is_file() for each in (function, *linked)):
        return None
    folder = _cache_root() / _digest((function, *linked))
    try:
        if not folder.exists():
            _prune(folder.parent)
        folder.mkdir(exist_ok=True)
        os.utime(folder)
    except OSError as error:
        _say_uncached(error)
        return None
    return folder


def _digest(functions: Iterable[FunctionType]) -> str:
    """Name a program by all that its machine code depends on."""
    digest = blake2b(digest_size=12)
    for each in functions:
        digest.update(_fingerprint(each).encode())
    return digest.hexdigest()


def _fingerprint(function: FunctionType) -> str:
    """Describe all that a function's machine code depends on but the functions it calls."""
    code = function.__code__
    names = {
        name: repr(value)
        for name in sorted(set(_names(code)))
        if isinstance(value := function.__globals__.get(name), CONSTANT)
    }
    # the module, because code in the cache looks it up by its name
    where = f"{function.__module__}:{code.co_firstlineno}:{function.__qualname__}"
    where += f" {code.co_filename}"
    return f"{where} {_body(code)} {function.__defaults__!r} {names!r};"


def _body(code: CodeType) -> str:
    constants = [_body(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code!r} {constants}"


@cache
def _cache_root() -> Path:
    """Find a folder for compiled code; a read-only home falls back to a private one."""
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


def _prune(root: Path) -> None:
    """Drop the folders that have gone unused longest; another process may be at it too."""
    ages = {}
    for folder in root.iterdir():
        with suppress(OSError):
            ages[folder] = folder.stat().st_mtime
    for folder in sorted(ages, key=lambda folder: ages[folder], reverse=True)[KEPT_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)
