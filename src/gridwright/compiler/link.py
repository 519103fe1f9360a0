"""Machine code from plain functions, cached on disk and never stale.

Numba's own cache looks at one file: it serves old code when a function that was inlined from
another file changes. Here a plain function is compiled together with every plain function that it
calls, into a cache folder named by a digest of all that the machine code depends on
(``digest.py``). A function marked as a *hook* is a place for another one, given by its name: that
is how a policy gets into a loop.

Functions of other packages, which are the user's, check every index, and so does whatever they
call. This package's own loops do not.
"""

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .digest import Digest, Program, Route, digest_of, is_known, used
from .refusal import is_dispatcher, refuse_unchecked

__all__ = [
    "bind",
    "hook",
    "link",
    "point",
    "rare",
    "shared",
]

KEPT_FOLDERS = 256
_LOCK = Lock()
_LINKING = RLock()
_SHARED: list[type] = []
_OURS: dict[Any, tuple[Program, Digest]] = {}
"""Programs of this package alone, which do not change while it is loaded."""
_LINKED: dict[str, tuple[Any, Digest]] = {}
"""What is linked, with its digest: the objects that are known by identity must live as long."""

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


@cache
def _extend_numba() -> None:
    """Tell Numba of arrays that cannot be written to."""
    from .readonly import register

    register()


def _register_shared() -> None:
    """Tell Numba of the classes that are shared."""
    from .reference import register

    _extend_numba()
    while _SHARED:
        register(_SHARED.pop())


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
    program, name = _digested(function, hooks, "link", allocating, inlined)

    def make() -> Any:
        import numba

        def options(inner: FunctionType) -> dict[str, Any]:
            forceinline = inlined and not getattr(inner, "is_rare", False)
            return {"forceinline": forceinline, **_options(inner, allocating)}

        return _compiled(program, name, options, numba.njit)

    return _once(name, make)


def point(function: Function, returns: Any, *takes: Any) -> Any:
    """Compile a function by itself, and return a pointer that compiled code can be passed.

    Code that calls it through the pointer need not be compiled with it: a planner is compiled
    once, whatever loops it runs in. An exception in it would be lost, so it must not raise.
    """
    import numba
    from numba.core import types

    _register_shared()
    signature = returns(*takes)
    program, name = _digested(function, {}, "point", str(signature))

    def make() -> Any:
        def cfunc(outer: Function, **options: Any) -> Any:
            return numba.cfunc(signature, **options)(outer)

        compiled = _compiled(program, name, _options, cfunc)

        class Pointer(types.WrapperAddressProtocol):
            def __wrapper_address__(self) -> Any:
                return compiled.address

            def signature(self) -> Any:
                return signature

        return Pointer()

    return _once(name, make)


def _digested(
    function: Function, hooks: dict[str, Function], *settings: Any
) -> tuple[Program, Digest]:
    """Return a program and its digest; a user's is digested every time, as it may have changed."""
    key = (function, frozenset(hooks.items()), settings)
    if key in _OURS:
        return _OURS[key]
    program = _program(function, hooks)
    found = program, digest_of(program, *settings)
    if all(map(_is_ours, program)):
        _OURS[key] = found
    return found


def _once(name: Digest, make: Callable[[], Any]) -> Any:
    """Return what was made before under the same digest, or make it."""
    with _LINKING:
        if name.name not in _LINKED:
            _LINKED[name.name] = make(), name
        return _LINKED[name.name][0]


def _compiled(
    program: Program,
    name: Digest,
    options: Callable[[FunctionType], dict[str, Any]],
    decorate: Callable[..., Any],
) -> Any:
    """Compile a program: what its last function calls for compiled code, that one for Python.

    The names of its functions contain the digest. Code from the cache and code compiled now may
    number their functions alike, and then one of them would run the other's function of the same
    name, with another policy in it.
    """
    from .quick import OuterCompiler

    _register_shared()
    checked = _checked(program)
    *inner, outer = program
    linked: dict[FunctionType, Any] = {}
    for each in inner:
        own = {"boundscheck": each in checked, **options(each)}
        linked[each] = _made_inner(_rebound(each, program, linked), name.name, **own)
    last = _rebound(outer, program, linked)
    last.__qualname__ += f"_{name.name}"
    own = {"boundscheck": outer in checked, "pipeline_class": OuterCompiler, **_options(outer)}
    folder = _cache_folder(program, name)
    return _cached(lambda caching: decorate(last, cache=caching, **own), folder)


def _made_inner(function: FunctionType, tag: str, **options: Any) -> Any:
    """Make a function that only compiled code calls: it needs no way in from Python.

    It is compiled once for arguments of a type, not once more for constants among them: a variable
    that starts as a constant would have what it is passed to compiled for that constant, before
    Numba finds that it varies.
    """
    import numba
    from numba.core.types.misc import unliteral

    from .quick import InnerCompiler

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


def _checked(program: Program) -> set[FunctionType]:
    """Return the functions whose indices are checked: the user's, and what those call."""
    checked: set[FunctionType] = set()
    for function in reversed(program):  # callers come before what they call
        if not _is_ours(function) or function in checked:
            callees = (each for each in program[function].values() if _is_plain(each))
            checked |= {function, *callees}
    return checked


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
    program = _program(function, hooks)
    linked: dict[FunctionType, Any] = {}
    for each in program:
        linked[each] = _rebound(each, program, linked)
    bound: Function = linked[next(reversed(program))]
    return bound


def _program(function: Function, hooks: dict[str, Function]) -> Program:
    """List a function and all that it calls, those called by others first, with their globals.

    Hooks are in place of what they replace, and functions that were compiled with ``numba.njit``
    are the plain functions again: they are compiled anew, with everything else.
    """
    program: Program = {}
    filled: set[str] = set()

    def visit(inner: FunctionType, above: tuple[FunctionType, ...]) -> None:
        if inner in above:
            raise TypeError(f"{inner.__name__} calls itself, which cannot be compiled here")
        if inner.__closure__:
            raise TypeError(f"{inner.__name__} uses variables of a function around it")
        uses = used(inner)
        if not _is_ours(inner):
            refuse_unchecked(inner, uses)
        for path, value in uses.items():
            if getattr(value, "is_hook", False) and path[-1] in hooks:
                filled.add(path[-1])
                uses[path] = hooks[path[-1]]
            elif _is_jitted(value):
                uses[path] = value.py_func
        for callee in uses.values():
            if _is_plain(callee) and callee not in program:
                visit(callee, (*above, inner))
        program[inner] = uses

    assert isinstance(function, FunctionType)
    visit(function, ())
    if missing := hooks.keys() - filled:
        raise TypeError(f"{function.__name__} has no hook {', '.join(sorted(missing))}")
    return program


def _is_ours(function: FunctionType) -> bool:
    """Tell whether a function is part of this package, and not a user's."""
    return (function.__module__ or "").partition(".")[0] == __package__.partition(".")[0]


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a function that is compiled with its callers."""
    return isinstance(value, FunctionType) and not is_known(value)


def _is_jitted(value: Any) -> bool:
    """Tell whether a value is a user's function that ``numba.njit`` compiles."""
    return is_dispatcher(value) and _is_plain(value.py_func)


def _rebound(
    function: FunctionType, program: Program, linked: dict[FunctionType, Any]
) -> FunctionType:
    """Copy a function so that it calls the linked versions of what it calls."""
    names = dict(function.__globals__)
    for path, value in program[function].items():
        if _is_plain(value):
            _put(names, path, linked[value])
    copy = FunctionType(function.__code__, names, function.__name__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _put(names: dict[str, Any], path: Route, value: Any) -> None:
    """Put a value at a path; modules on the way are copied, so that others see no change."""
    name, *rest = path
    if rest:
        module = ModuleType(names[name].__name__)
        vars(module).update(vars(names[name]))
        _put(vars(module), tuple(rest), value)
        value = module
    names[name] = value


def _cache_folder(program: Program, name: Digest) -> Path | None:
    """Make the folder for code from a program; None where it must not outlive the process."""
    if name.unknown or not all(Path(each.__code__.co_filename).is_file() for each in program):
        return None
    folder = _cache_root() / name.name
    try:
        if not folder.exists():
            _prune(folder.parent)
        folder.mkdir(exist_ok=True)
        os.utime(folder)
    except OSError as error:
        _say_uncached(error)
        return None
    return folder


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
