"""Compile a plain function together with the plain functions that it calls.

Numba's own cache looks at one file: it serves old code when a function that was inlined from
another file changes. Here a *program*, which is a function and everything that it calls, is
compiled as a whole, into a cache folder named by a digest of everything that its machine code
depends on (``digest.py``). A function marked as a *hook* is replaced by another function, given by
its name: this is how a policy gets into a loop.

Functions of users check every index, and so does everything that they call. The loops of this
package do not.
"""

import os
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .cache import compile_into, folder_of, holds_code
from .checks import by_address, is_dispatcher, refuse_unchecked
from .digest import Digest, Program, Route, digest_of, is_known, used
from .target import CPU, How, Target
from .tiers import ANSWERS, PARAMETERS, PATIENCE, POLICY, Starting, Tier

SWITCH = "GRIDWRIGHT_QUICK_COMPILER"
"""The environment variable that turns ``quick.py`` off if it is 0."""
_LINKING = RLock()
_SHARED: list[type] = []
_OURS: dict[Any, tuple[Program, Digest]] = {}
"""Programs of this package alone, which do not change while it is loaded."""
_LINKED: dict[str, tuple[Any, Digest]] = {}
"""Compiled programs. Objects that a digest knows by their identity must live as long."""
_TIERS: dict[str, tuple[Tier, Digest]] = {}
"""How long loops have run with policies that are not linked with them yet."""
_COMMON: dict[Any, Any] = {}
"""Compiled functions of this package that several programs may use."""

Function = Callable[..., Any]
Marked = TypeVar("Marked", bound=Function)
Shared = TypeVar("Shared")


def hook(function: Function) -> Function:
    """Mark a function that another one of its name can replace."""
    function.is_hook = True  # type: ignore[attr-defined]
    return function


def rare(function: Function) -> Function:
    """Mark a function that is called seldom: it is called, where others are inlined."""
    function.is_rare = True  # type: ignore[attr-defined]
    return function


def special_case(of: Function) -> Callable[[Marked], Marked]:
    """Mark a function that does what another one does, but faster and not in all programs."""

    def mark(function: Marked) -> Marked:
        function.general = of  # type: ignore[attr-defined]
        return function

    return mark


def slow_to_compile(loop: Marked) -> Marked:
    """Mark a loop that takes seconds to compile, and spends little time in its policy.

    It calls its policy by address for longer (``tiers``). Until then it has no special cases in its
    hooks, so that it is compiled once for all of them.
    """
    loop.is_slow_to_compile = True  # type: ignore[attr-defined]
    return loop


def memory_bound(function: Marked) -> Marked:
    """Mark a function whose threads mostly wait for memory, if a GPU runs it.

    It gets fewer registers, so that more threads run at once.
    """
    function.memory_bound = True  # type: ignore[attr-defined]
    return function


def allocates_nothing(function: Marked) -> Marked:
    """Mark a function that allocates no memory, and calls nothing that does.

    It is compiled without reference counting, which is quicker to compile and to run.
    """
    function.allocates_nothing = True  # type: ignore[attr-defined]
    return function


def shared(cls: type[Shared]) -> type[Shared]:
    """Mark a class of named tuples that compiled functions pass to each other by address.

    Only Python makes such tuples; compiled code reads their fields by name.
    """
    _SHARED.append(cls)
    return cls


def link(
    function: Function,
    /,
    *,
    allocating: bool = False,
    inlined: bool = False,
    made_for: Target | None = None,
    **hooks: Function,
) -> Function:
    """Compile a plain function and, recursively, the plain functions that it calls.

    Parameters
    ----------
    function
        The function that Python will call.
    allocating
        Hooks from outside of the function's package may allocate, even if it allocates nothing.
    inlined
        Inline all functions but those marked as rare.
    made_for
        The processor that runs it; by default, that of this computer.
    hooks
        Functions to use in place of the hooks of these names.

    Examples
    --------
    >>> def twice(x):
    ...     return 2 * x
    >>> def fourfold(x):
    ...     return twice(twice(x))
    >>> link(fourfold)(1.5)
    6.0
    """
    chosen = target() if made_for is None else made_for
    program, name = _digested(function, hooks, "link", chosen.name, allocating, inlined)

    def make() -> Any:
        free = [each for each in hooks.values() if allocating and _is_apart(each, function)]
        return _compiled(chosen, program, name, chosen.entry, _hows(program, free, inlined))

    if chosen.calls_by_address and _asks(function, hooks) and not _is_ready(name):
        return _starting(function, hooks, allocating, inlined, chosen, name, make)
    return _once(name, make)


def _starting(
    loop: Any,
    hooks: dict[str, Function],
    allocating: bool,
    inlined: bool,
    made_for: Any,
    name: Digest,
    make: Callable[[], Any],
) -> Function:
    """Return a loop that calls a new policy by its address, until it pays to link the two."""
    policy = hooks[POLICY]
    at = loop.__code__.co_varnames.index(PARAMETERS)
    is_slow = getattr(loop, "is_slow_to_compile", False)

    def asking() -> tuple[Any, Digest]:
        settings = "asking", made_for.name, inlined
        others = {key: _general(each) if is_slow else each for key, each in hooks.items()}
        program, own = _digested(loop, {**others, POLICY: by_address}, *settings)
        hows = _hows(program, [], inlined)
        return _once(own, lambda: _compiled(made_for, program, own, made_for.entry, hows)), own

    def answering(count: int) -> Any:
        settings = "answering", made_for.name, allocating
        program, own = _digested(ANSWERS[count], {POLICY: policy}, *settings)
        hows = _hows(program, [policy] if allocating else [], True)
        return _once(own, lambda: _compiled(made_for, program, own, made_for.addressed, hows))

    def prepared(given: tuple[Any, ...], only: bool) -> tuple[Any, Any] | None:
        try:
            with _LINKING:
                compiled, own = asking()
                asked = made_for.asked(compiled, own.name, given, at)
                first = asked and made_for.address(answering(len(asked)), asked, given[at])
        except Exception:  # linking says what is wrong with the policy
            return None
        if not first:
            return None
        return made_for.way_in(compiled, given, at) if only else compiled, first

    _register_types()
    tier, _ = _TIERS.setdefault(name.name, (Tier(), name))
    return Starting(tier, at, prepared, lambda: _once(name, make), PATIENCE if is_slow else 1.0)


def _asks(loop: Any, hooks: dict[str, Function]) -> bool:
    """Tell whether a function is a loop that asks a policy from outside of its package."""
    names = loop.__code__.co_varnames[: loop.__code__.co_argcount]
    return POLICY in hooks and _is_apart(hooks[POLICY], loop) and PARAMETERS in names


def _general(function: Function) -> Function:
    """Return the function that one is a special case of, if it is one."""
    found: Function = getattr(function, "general", function)
    return found


def _is_ready(name: Digest) -> bool:
    """Tell whether a program is compiled, in this process or on disk."""
    return name.name in _LINKED or (not name.unknown and holds_code(name.name))


def entry(function: Function, /, *arguments: Any) -> Function:
    """Compile a plain function, and return its entry for arguments of these types.

    A call of it takes microseconds: it looks at no types. All arguments must be of these types.

    >>> def twice(x):
    ...     return 2 * x
    >>> entry(twice, 1.5)(2.5)
    5.0
    """
    from numba import typeof

    compiled: Any = link(function)
    types = tuple(map(typeof, arguments))
    compiled.compile(types)
    found: Function = compiled.overloads[types].entry_point
    return found


def point(function: Function, returns: Any, *takes: Any) -> Any:
    """Compile a function by itself, and return a pointer that compiled code can be passed.

    Code that calls it through the pointer need not be compiled with it: a planner is compiled
    once, whatever loops it runs in. An exception in it would be lost, so it must not raise.
    """
    from numba import types

    _register_types()
    signature = returns(*takes)
    made_for = target()
    program, name = _digested(function, {}, "point", made_for.name, str(signature))

    def make() -> Any:
        def callback(outer: Function, how: How, cached: bool) -> Any:
            return made_for.callback(outer, how, cached, signature)

        compiled = _compiled(made_for, program, name, callback, _hows(program, [], False))

        class Pointer(types.WrapperAddressProtocol):  # type: ignore[misc]
            def __wrapper_address__(self) -> Any:
                return compiled.address

            def signature(self) -> Any:
                return signature

        return Pointer()

    return _once(name, make)


def bind(function: Function, **hooks: Function) -> Function:
    """Return the function with its hooks filled, in plain Python: slow, but easy to debug.

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
        linked[each] = _rebound(each, _replacements(each, program, linked))
    bound: Function = linked[next(reversed(program))]
    return bound


def _register_types() -> None:
    """Register the types of read-only arrays and of shared tuples with Numba."""
    from .numba_types import register

    while _SHARED:
        register(_SHARED.pop())


def target() -> CPU:
    """Return the quick compiler if it is switched on and was tried with this version of Numba."""
    if os.environ.get(SWITCH) == "0":
        return CPU()
    try:
        from .quick import QuickCPU
    except ImportError:
        return CPU()
    return QuickCPU()


def _digested(
    function: Function, hooks: dict[str, Function], *settings: Any
) -> tuple[Program, Digest]:
    """Return a program and its digest. A user's is digested every time: it may have changed."""
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
    made_for: Target,
    program: Program,
    name: Digest,
    decorate: Callable[[Function, How, bool], Any],
    hows: dict[FunctionType, How],
) -> Any:
    """Compile all functions of a program, the last one for callers outside of it.

    Functions of this package that call no hook are compiled once for all programs.

    The names of functions contain the digest of the program, or of the part of it that they call.
    Code from the cache and code compiled now may number their functions alike. Without the digest,
    one of them could run the other's function of the same name, with another policy in it.
    """
    _register_types()
    linked: dict[FunctionType, Any] = {}
    common: set[FunctionType] = set()
    last = next(reversed(program))
    for each in program:
        known = {path: made_for.built_in(value) for path, value in program[each].items()}
        replaced = {path: value for path, value in known.items() if value}
        replaced |= _replacements(each, program, linked)
        if not _is_ours(each):
            guarded = {path: made_for.guarded(value) for path, value in program[each].items()}
            replaced = {path: value for path, value in guarded.items() if value} | replaced
        copy = _rebound(each, replaced)
        if each is last:
            break
        plain = filter(_is_plain, program[each].values())
        asks = any(value is by_address for value in program[each].values())
        is_ours = _is_ours(each) and not asks
        if is_ours and hows[each].allocates is not None and common.issuperset(plain):
            common.add(each)
            calls = frozenset((path, id(value)) for path, value in replaced.items())
            key = made_for.name, each, hows[each], calls
            if key not in _COMMON:
                part = _part(program, each, hows, made_for.name)
                copy.__qualname__ += f"_{part.name}"
                kept = "" if part.unknown else part.name
                _COMMON[key] = made_for.inner(copy, hows[each], kept)
            linked[each] = _COMMON[key]
        else:
            copy.__qualname__ += f"_{name.name}"
            linked[each] = made_for.inner(copy, hows[each])
    copy.__qualname__ += f"_{name.name}"
    is_known = made_for.is_kept and not name.unknown
    is_kept = is_known and all(Path(f.__code__.co_filename).is_file() for f in program)
    folder = folder_of(name.name) if is_kept else None
    return compile_into(folder, lambda cached: decorate(copy, hows[each], cached))


def _hows(program: Program, allocating: list[Function], inlined: bool) -> dict[FunctionType, How]:
    """Say how each function of a program is compiled."""
    checked = _called(program, [each for each in program if not _is_ours(each)])
    nothing = [each for each in program if getattr(each, "allocates_nothing", False)]
    without, something = _called(program, nothing), _called(program, allocating)

    def allocates(function: FunctionType) -> bool | None:
        if function in something:
            return True
        return False if function in without and not _is_apart(function, nothing[0]) else None

    return {
        each: How(each in checked, allocates(each), inlined and not getattr(each, "is_rare", False))
        for each in program
    }


def _part(
    program: Program, function: FunctionType, hows: dict[FunctionType, How], *settings: Any
) -> Digest:
    """Return the digest of a function of a program and everything that it calls."""
    called = _called(program, [function])
    part = {each: uses for each, uses in program.items() if each in called}
    return digest_of(part, *settings, *(tuple(hows[each]) for each in part))


def _called(program: Program, some: list[Any]) -> set[FunctionType]:
    """Return some functions of a program and everything that they call."""
    found = set(some)
    for function in reversed(program):  # callers come after the functions that they call
        if function in found:
            found |= {each for each in program[function].values() if _is_plain(each)}
    return found


def _program(function: Function, hooks: dict[str, Function]) -> Program:
    """List a function and everything that it calls, callers last, with the globals they use.

    Hooks are replaced. Functions that were compiled with ``numba.njit`` are plain functions again:
    they are compiled anew, with everything else.
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
            elif is_dispatcher(value) and _is_plain(value.py_func):
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


def _is_apart(function: Function, other: Function) -> bool:
    """Tell whether two functions are of different packages: a policy and a loop are."""
    one, two = (each.__module__.split(".")[:2] for each in (function, other))
    return one != two


def _is_plain(value: Any) -> bool:
    """Tell whether a value is a function that is compiled with its callers."""
    return isinstance(value, FunctionType) and not is_known(value)


def _replacements(
    function: FunctionType, program: Program, linked: dict[FunctionType, Any]
) -> dict[Route, Any]:
    """Return the linked versions of the functions that a function calls."""
    return {path: linked[each] for path, each in program[function].items() if _is_plain(each)}


def _rebound(function: FunctionType, replaced: dict[Route, Any]) -> FunctionType:
    """Copy a function so that it uses other values for some of its globals."""
    names = dict(function.__globals__)
    for path, value in replaced.items():
        _put(names, path, value)
    copy = FunctionType(function.__code__, names, function.__name__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _put(names: dict[str, Any], path: Route, value: Any) -> None:
    """Put a value at a path; copy the modules on the way, so that others see no change."""
    name, *rest = path
    if rest:
        module = ModuleType(names[name].__name__)
        vars(module).update(vars(names[name]))
        _put(vars(module), tuple(rest), value)
        value = module
    names[name] = value
