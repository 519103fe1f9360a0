"""Digest all that a program's machine code depends on.

A program is a plain function with the functions that it calls. Its machine code contains the values
of the globals that they use, so these count by value: numbers, strings, tuples, arrays, and what is
read from other modules (``helper.TABLE``). A class may say how its objects differ (``__digest__``).
A value of another type cannot be digested: it is known by its identity only, and code that contains
it must not outlive the process.
"""

import builtins
import dis
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .computer import numba_settings, processor, toolchain

FOREIGN = ("builtins", "cmath", "math", "numba", "numpy", "operator", "random")
"""Modules whose contents are known by the versions of Python, NumPy and Numba."""
PLAIN = (bool, int, float, complex, str, bytes, range, slice, type(None), type(...))
DEEPEST = 50

Route = tuple[str, ...]
"""A global name, and the attributes that are read from it: ``("helper", "TABLE")``."""
Program = dict[FunctionType, dict[Route, Any]]
"""Functions, those called by others first, each with the globals that it uses."""


class Digest(NamedTuple):
    """What names a program."""

    name: str
    unknown: tuple[Any, ...]
    """Values that cannot be digested; the name is good as long as these objects live."""


def digest_of(program: Program, *settings: Any) -> Digest:
    """Digest a program, how it is compiled, and the compiler."""
    numbers = {function: k for k, function in enumerate(program)}
    unknown: list[Any] = []

    def described(value: Any) -> str:
        if isinstance(value, FunctionType) and value in numbers:
            return f"function {numbers[value]}"
        try:
            return _described(value, 0)
        except _UnknownError:
            unknown.append(value)
            return f"object at {id(value)}"

    made_by = f"{toolchain()} {processor()} {numba_settings()} {settings!r}"
    digest = blake2b(made_by.encode(), digest_size=12)
    for function, uses in program.items():
        values = {path: described(uses[path]) for path in sorted(uses)}
        defaults = [described(each) for each in (function.__defaults__, function.__kwdefaults__)]
        digest.update(f"{_identity(function)} {defaults} {values};".encode())
    return Digest(digest.hexdigest(), tuple(unknown))


def used(function: FunctionType) -> dict[Route, Any]:
    """Return the globals that a function uses; attributes of modules by their own value.

    >>> import math
    >>> def area(radius):
    ...     return math.pi * SCALE * radius**2
    >>> area.__globals__["SCALE"] = 2.0
    >>> used(area) == {("math", "pi"): math.pi, ("SCALE",): 2.0}
    True
    """
    found: dict[Route, Any] = {}
    for path in _paths(function.__code__):
        if path[0]:
            depth, value = _resolved(function, path)
            found[path[:depth]] = value
    return found


def attributes(function: FunctionType) -> set[str]:
    """Return the names of the attributes that a function reads from anything but a module."""
    return {
        name
        for path in _paths(function.__code__)
        for name in path[_resolved(function, path)[0] if path[0] else 1 :]
    }


def _resolved(function: FunctionType, path: Route) -> tuple[int, Any]:
    """Follow a path through modules; return how far that goes, and the value there."""
    own = function.__globals__
    value = own[path[0]] if path[0] in own else getattr(builtins, path[0], None)
    depth = 1
    while isinstance(value, ModuleType) and depth < len(path):
        value = getattr(value, path[depth], None)
        depth += 1
    if isinstance(value, ModuleType) and not _is_foreign(value.__name__):
        name = ".".join(path)
        raise TypeError(
            f"{function.__name__} uses the module {name} as a value; expected {name} followed by "
            "a dot and a name"
        )
    return depth, value


def is_known(function: FunctionType) -> bool:
    """Tell whether the compiler knows a function: one of NumPy's, or one of its own."""
    return _is_foreign(function.__module__) or getattr(function, "is_built_in", False)


def _is_foreign(module: str | None) -> bool:
    """Tell whether a module is known by its version."""
    return module is not None and module.partition(".")[0] in FOREIGN


_PATHS: dict[int, tuple[CodeType, tuple[Route, ...]]] = {}
_BODIES: dict[int, tuple[CodeType, str]] = {}


def _paths(code: CodeType) -> tuple[Route, ...]:
    """Return the globals that code loads, worked out once: code never changes."""
    if id(code) not in _PATHS:
        _PATHS[id(code)] = code, tuple(sorted(set(_loads(code))))
    return _PATHS[id(code)][1]


def _loads(code: CodeType) -> Iterator[Route]:
    """Find the global names in code, each with the attributes that are read from it at once.

    Attributes of anything else come with an empty name.
    """
    path: Route = ()
    for each in dis.get_instructions(code):
        if each.opname == "EXTENDED_ARG":
            continue
        if each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = (*path, each.argval) if path else ("", each.argval)
            continue
        if path:
            yield path
        path = (each.argval,) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") else ()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loads(constant)


def _identity(function: FunctionType) -> str:
    """Describe a function's own code, where it stands, and how it asks to be compiled."""
    code = function.__code__
    if id(code) not in _BODIES:
        _BODIES[id(code)] = code, _body(code)
    where = f"{function.__module__}:{function.__qualname__}"  # cached code looks its module up
    marks = tuple(
        getattr(function, mark, False) for mark in ("is_rare", "allocates_nothing", "memory_bound")
    )
    return f"{where} {marks} {_BODIES[id(code)][1]}"


def _body(code: CodeType) -> str:
    constants = [
        _body(each) if isinstance(each, CodeType) else f"{type(each).__name__} {each!r}"
        for each in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
    where = code.co_filename, code.co_firstlineno
    return f"{where} {counts} {names} {code.co_code!r} {code.co_exceptiontable!r} {constants}"


class _UnknownError(Exception):
    """A value that cannot be digested."""


def _described(value: Any, depth: int) -> str:
    """Describe a value so that other values have other descriptions."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"

    def all_of(values: Iterable[Any]) -> list[str]:
        return [_described(each, depth + 1) for each in values]

    if depth > DEEPEST:
        raise _UnknownError
    if kind in PLAIN:
        return f"{name} {value!r}"
    if isinstance(value, Enum):
        return f"{_described(kind, depth + 1)} {value.name}"
    if isinstance(value, np.dtype):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return f"{name} {_of_array(value)}"
    if isinstance(value, tuple | list):
        return f"{name} {getattr(kind, '_fields', '')} {all_of(value)}"
    if isinstance(value, set | frozenset):
        return f"{name} {sorted(all_of(value))}"
    if isinstance(value, dict):
        return f"{name} {all_of(value)} {all_of(value.values())}"
    if isinstance(value, type):
        return _of_class(value, depth)
    if hasattr(kind, "__digest__"):
        return f"{name} {value.__digest__()}"
    return _of_code(value)


def _of_array(value: Any) -> str:
    if value.dtype.hasobject:
        raise _UnknownError
    contents = blake2b(value.tobytes(), digest_size=16).hexdigest()
    return f"{value.dtype!r} {value.shape} {value.strides} {value.flags.num} {contents}"


def _of_class(value: type, depth: int) -> str:
    name = f"class {value.__module__}.{value.__qualname__}"
    if _is_foreign(value.__module__):
        return name
    if issubclass(value, Enum):
        members = value.__members__.items()  # aliases too
        return f"{name} {[(key, _described(each.value, depth + 1)) for key, each in members]}"
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return f"{name} {value._fields}"
    raise _UnknownError


def _of_code(value: Any) -> str:
    """Name a function or a module that a version stands for, or a type of Numba."""
    where = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        is_sure = getattr(np, value.__name__, None) is value
    elif isinstance(value, BuiltinFunctionType):
        is_sure = where in (*FOREIGN, *sys.stdlib_module_names)
    elif isinstance(value, FunctionType):
        is_sure = is_known(value)
    else:
        is_sure = isinstance(value, ModuleType) and _is_foreign(where)
    if is_sure and name is not None:
        return f"{type(value).__name__} {where} {name}"
    if _is_type_of_numba(value):
        return f"{type(value).__name__} {value}"
    raise _UnknownError


def _is_type_of_numba(value: Any) -> bool:
    from numba import types

    return isinstance(value, types.Type)
