"""Compile in less time, with private parts of Numba.

This file is used only with versions of Numba that it was tried with (``VERSIONS``), and not if the
environment variable ``GRIDWRIGHT_QUICK_COMPILER`` is 0. Without it, ``target.CPU`` compiles by
public means, and everything gives the same results. It does six things:

- Numba optimises every function and makes machine code of it, and then does the same again with
  the copies that are linked into its callers. Here a function that only compiled code calls is
  optimised where it ends up. That saves a third to a half of the time.
- Functions that many programs share are kept on disk before they are optimised. To link a new
  policy then needs only itself and the functions around it compiled: about half of the time.
- A loop can call a policy by its address, so that a new policy does not need a loop compiled
  (``tiers``). Numba's public pointers to functions lose exceptions.
- Numba tries the implementations of an operator one after the other at every place that uses it.
  Here the answer for the same types is remembered (``numba_shortcuts.py``).
- Numba reports every step, and searches instructions for variables in many small steps. Here it
  reports nothing that nobody listens to, and searches in fewer steps.
- A wrong index in a user's function is reported with its file and line. Numba's own check raises an
  IndexError without a place. An error in a function of this package that a user's function calls
  is reported at the call, because the index came from there.
"""

import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

VERSIONS = ("0.68.1",)
"""Versions of Numba that this file was tried with, by the tests of the compiler."""
if version("numba") not in VERSIONS:
    raise ImportError(f"the quick compiler was not tried with Numba {version('numba')}")

import numpy as np
from llvmlite import ir as llvm
from llvmlite.binding import parse_bitcode
from numba import njit, typeof
from numba import types as numba_types
from numba.core import base, cgutils, errors, ir, serialize
from numba.core.caching import NullCache
from numba.core.callconv import RETCODE_USEREXC, errcode_t
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.lowering import Lower
from numba.core.types.misc import unliteral
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import populate_array

from .cache import load_part, save_part
from .checks import by_address, inputs_of, result_refused, unpacked
from .numba_shortcuts import less_bookkeeping, remembered_calls
from .target import CPU, How

__all__ = ["QuickCPU"]

kinds: Any = numba_types
MESSAGE = ("index is out of bounds",)
OUT_OF_BOUNDS = errcode_t(RETCODE_USEREXC.constant + 1)
"""The code of this error. Numba treats every code from ``RETCODE_USEREXC`` on as an exception."""
DIGESTED = re.compile(r"_[0-9a-f]{24}B")
"""The end of a name that contains the digest of a part, before Numba's number of the function."""


class QuickCPU(CPU):
    """Compile for the processor of this computer, with private parts of Numba."""

    name = "cpu, quick, parts with own names"
    calls_by_address = True

    def inner(self, function: Callable[..., Any], how: How, part: str = "") -> Any:
        """Compile a function that only compiled code calls: Python needs no way in.

        It is compiled once for arguments of a type, not again for constants among them. Otherwise
        a variable that starts as a constant would have the functions that it is passed to compiled
        for that constant, before Numba finds that it varies.
        """
        dispatcher: Any = njit(
            function,
            pipeline_class=InnerCompiler,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            forceinline=how.inlined,
            **super().options(how),
        )
        once = dispatcher.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            return once(tuple(map(unliteral, args)), {key: unliteral(kws[key]) for key in kws})

        dispatcher.get_call_template = get_call_template
        if part:
            dispatcher._cache = PartCache(part)
        return dispatcher

    def options(self, how: How) -> dict[str, Any]:
        """Return Numba's options for a function that Python calls, or that has an address."""
        return {"pipeline_class": OuterCompiler, **super().options(how)}

    def guarded(self, value: Any) -> Any:
        """Return nothing: calls are checked when their types are known."""
        return None

    def built_in(self, value: Any) -> Any:
        """Return what stands for a policy in a loop that calls it by its address."""
        return value if value is by_address else None

    def addressed(self, function: Callable[..., Any], how: How, cached: bool) -> Any:
        """Compile a function that other compiled code calls by its address."""
        return njit(
            function,
            cache=cached,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            **self.options(how),
        )

    def asked(self, loop: Any, name: str, given: tuple[Any, ...], at: int) -> Any:
        """Compile a loop that calls by address; return the types it calls with, or None.

        The argument at the given place is a tuple of one array of words.
        """
        types = self._types(given, at)
        asked, kept = set[Any](), f"{name}-{_short(list(types))}"
        with _recording(asked):
            loop.compile(types)
        if asked:
            save_part(kept, serialize.dumps(asked))
        elif found := load_part(kept):  # the machine code came from the disk, too
            asked = pickle.loads(found)
        return asked.pop() if len(asked) == 1 else None

    def way_in(self, loop: Any, given: tuple[Any, ...], at: int) -> Any:
        """Return a compiled loop for arguments of these types only, which looks at no types."""
        return loop.overloads[self._types(given, at)].entry_point

    def _types(self, given: tuple[Any, ...], at: int) -> tuple[Any, ...]:
        words = (np.zeros(2, np.int64),)
        return tuple(typeof(words if k == at else each) for k, each in enumerate(given))

    def address(self, answer: Any, asked: Any, arguments: Any) -> Any:
        """Compile a policy for what it is asked with; return the first words, or None."""
        found = tuple(map(typeof, arguments))
        if not all(map(_is_packed, found)):
            return None
        types = (*asked, Packed(found))
        answer.compile(types)
        result = answer.overloads[types]
        if unliteral(result.signature.return_type) != kinds.int64:
            return None
        return result.library.get_pointer_to_function(result.fndesc.llvm_func_name), _mark(asked)


class PartCache(NullCache):  # type: ignore[misc]
    """Keeps a function that is linked into others, a file for each signature."""

    def __init__(self, part: str) -> None:
        self.part = part

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept for a signature, or None."""
        kept = load_part(self._name(sig))
        known, name, code, *rest = pickle.loads(kept) if kept is not None else (None, "", b"")
        if known != sig:
            return None
        library = InnerLibrary(target_context.codegen(), name)
        library._final_module = library._shared_module = _with_own_names(parse_bitcode(code))
        library._finalized = True
        fndesc, environment, signature, environments = rest
        return CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, fndesc, environment),
            fndesc=fndesc,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=[],
            referenced_envs=environments,
        )

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep what was compiled for a signature."""
        library, fndesc = cres.library, cres.fndesc
        fndesc.typemap = fndesc.calltypes = None  # they are large, and not needed any more
        code = library._get_module_for_linking().as_bitcode()
        environments = tuple(cres._find_referenced_environments())
        kept = sig, library.name, code, fndesc, cres.environment, cres.signature, environments
        with suppress(pickle.PicklingError):  # it is compiled again next time
            save_part(self._name(sig), serialize.dumps(kept))

    def _name(self, sig: Any) -> str:
        return f"{self.part}-{_short(sig)}"


def _short(types: Any) -> str:
    return blake2b(str(types).encode(), digest_size=8).hexdigest()


def _with_own_names(module: Any) -> Any:
    """Keep the names of Numba's functions in a module that another process compiled to itself.

    A process numbers the functions that it compiles, and the number is all that tells some of them
    apart. Without this, linking would take a function of this process for one of the other process
    that has the same number. The functions of this package have a digest in their names.
    """
    for function in module.functions:
        if not (function.is_declaration or DIGESTED.search(function.name)):
            function.linkage = "internal"
    return module


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into other code and never runs by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return WithoutEnvironments(self._codegen)


class WithoutEnvironments:
    """A code generator that leaves environments to the linked code."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class InnerCompiler(Compiler):  # type: ignore[misc]
    """Compile a function so that it can be linked, and no further."""

    def define_pipelines(self) -> Any:
        """Choose the library that the code goes into."""
        state = self.state
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class OuterCompiler(Compiler):  # type: ignore[misc]
    """Compile a function that Python calls, with the environments of the linked functions."""

    def compile_extra(self, func: Any) -> Any:
        """Compile it."""
        with remembered_calls(), less_bookkeeping(), located_checks():
            result = super().compile_extra(func)
        engine = result.codegen._engine
        for environment in result._find_referenced_environments():
            if engine.get_global_value_address(environment.env_name):
                result.codegen.set_env(environment.env_name, environment)
        return result


@contextmanager
def located_checks() -> Iterator[None]:
    """Give the bounds checks a place while a program is compiled.

    Numba compiles one program at a time, so this does not change other programs.
    """
    changed: Any = cgutils
    before = Lower.lower_inst, changed.do_boundscheck, base.user_function

    def lower_inst(self: Any, inst: Any) -> None:
        self.context.place = inst.loc, self.func_ir.func_id.func_name
        self.context.is_ours = _is_ours(self.func_ir.func_id.modname)
        if _is_users(self.func_ir.func_id.modname):
            _refuse_results(self, inst)
        before[0](self, inst)

    def user_function(fndesc: Any, libs: Any) -> Any:
        return _shown_at_the_call(before[2](fndesc, libs), fndesc)

    Lower.lower_inst, changed.do_boundscheck = lower_inst, _check
    base.user_function = user_function
    try:
        yield
    finally:
        Lower.lower_inst, changed.do_boundscheck, base.user_function = before


def _check(context: Any, builder: Any, index: Any, length: Any, axis: Any = None) -> None:
    """Compile the check of an index.

    A negative index has been wrapped around by now. One that is still negative is, without its
    sign, larger than any length.
    """
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, length)):
        _raise(context.call_conv, builder, getattr(context, "place", (None, None)))


def _raise(convention: Any, builder: Any, place: Any) -> None:
    """Compile the error, with a code of its own."""
    convention.set_static_user_exc(builder, IndexError, MESSAGE, *place)
    status = convention.check_try_status(builder)
    with builder.if_then(builder.not_(status.in_try)):
        convention._return_errcode_raw(builder, OUT_OF_BOUNDS)


def _refuse_results(lower: Any, inst: Any) -> None:
    """Refuse a call of NumPy that is given an array for its result."""
    call: Any = getattr(inst, "value", None)
    if not (isinstance(call, ir.Expr) and call.op == "call"):
        return
    called: Any = getattr(lower.typeof(call.func.name), "typing_key", None)
    most = inputs_of(called)
    absent = kinds.Omitted, kinds.NoneType
    given = [each for each in lower.fndesc.calltypes[call].args if not isinstance(each, absent)]
    if most is not None and len(given) > most:
        raise errors.TypingError(result_refused(called.__name__))


def _shown_at_the_call(call: Any, fndesc: Any) -> Any:
    """Report a wrong index in a function of this package where a user's function calls it."""
    if not _is_ours(fndesc.modname):
        return call

    def implementation(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def raise_here(self: Any, builder: Any, status: Any) -> None:
            is_index = builder.icmp_signed("==", status.code, OUT_OF_BOUNDS)
            with builder.if_else(is_index, likely=False) as (wrong_index, other):
                with wrong_index:
                    _raise(self, builder, context.place)
                with other:
                    before(self, builder, status)

        convention: Any = type(context.call_conv)
        before = convention.return_status_propagate
        if not getattr(context, "is_ours", True):
            convention.return_status_propagate = raise_here
        try:
            return call(context, builder, sig, args)
        finally:
            convention.return_status_propagate = before

    implementation.signature, implementation.libs = call.signature, call.libs  # type: ignore[attr-defined]
    return implementation


class Packed(kinds.Type):  # type: ignore[misc]
    """The address of the words that have the parameters of a policy, of these types."""

    def __init__(self, types: Any) -> None:
        self.types = types
        super().__init__(f"packed({', '.join(map(str, types))})")


register_model(Packed)(models.OpaqueModel)
_ASKED: list[set[Any]] = []


@contextmanager
def _recording(asked: set[Any]) -> Iterator[None]:
    """Record the types of the arguments with which compiled code calls by address."""
    _ASKED.append(asked)
    try:
        yield
    finally:
        _ASKED.pop()


def _mark(types: Any) -> int:
    """Return a number that stands for types of arguments."""
    return int.from_bytes(blake2b(str(tuple(types)).encode(), digest_size=7).digest(), "little")


def _is_packed(kind: Any) -> bool:
    """Tell whether ``words_of`` and ``unpacked`` agree on a type."""
    is_array = isinstance(kind, kinds.Array) and kind.layout == "C" and kind.aligned
    return is_array or kind in (kinds.int64, kinds.float64, kinds.boolean)


@infer_global(by_address)
class ByAddress(AbstractTemplate):  # type: ignore[misc]
    """The type of ``by_address``."""

    def generic(self, args: Any, kws: Any) -> Any:
        """Return its signature: whole numbers are of 64 bits."""
        whole = (kinds.int64 if isinstance(each, kinds.Integer) else each for each in args)
        return kinds.int64(*whole)


@lower_builtin(by_address, kinds.VarArg(kinds.Any))  # type: ignore[untyped-decorator]
def compile_by_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Call a policy. Types other than those it was compiled for are an error."""
    *asked, kind = sig.args
    for each in _ASKED:
        each.add(tuple(asked))
    words = context.make_array(kind)(context, builder, args[-1]).data
    mark = builder.load(cgutils.gep_inbounds(builder, words, 1))
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", mark, mark.type(_mark(asked)))):
        message = ("a policy was compiled for other types than those of the loop",)
        context.call_conv.return_user_exc(builder, TypeError, message)
    types = (*asked, Packed(()))
    convention = context.call_conv
    function = convention.get_function_type(kinds.int64, types).as_pointer()
    policy = builder.inttoptr(builder.load(words), function)
    given = (*args[:-1], builder.bitcast(words, context.get_value_type(types[-1])))
    status, answer = convention.call_function(builder, policy, kinds.int64, types, given)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return answer


@type_callable(unpacked)  # type: ignore[untyped-decorator]
def type_unpacked(context: Any) -> Any:
    """Say what type ``unpacked`` returns."""
    return lambda words: kinds.BaseTuple.from_types(words.types)


@lower_builtin(unpacked, Packed)  # type: ignore[untyped-decorator]
def compile_unpacked(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Read the parameters of a policy from the words after its address and the mark."""
    words = builder.bitcast(args[0], llvm.IntType(64).as_pointer())
    place, found = 2, []

    def load() -> Any:
        nonlocal place
        place += 1
        return builder.load(cgutils.gep_inbounds(builder, words, place - 1))

    for each in sig.args[0].types:
        if isinstance(each, kinds.Array):
            array = context.make_array(each)(context, builder)
            data = builder.inttoptr(load(), array.data.type)
            shape = [load() for _ in range(each.ndim)]
            size = context.get_constant(kinds.intp, context.get_abi_sizeof(data.type.pointee))
            strides = [size]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            populate_array(array, data, shape, strides, size, None)
            found.append(array._getvalue())
        elif each == kinds.float64:
            found.append(builder.bitcast(load(), llvm.DoubleType()))
        elif each == kinds.boolean:
            found.append(builder.trunc(load(), llvm.IntType(1)))
        else:
            found.append(load())
    return context.make_tuple(builder, sig.return_type, found)


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == __package__.partition(".")[0]


def _is_users(module: str | None) -> bool:
    return not (_is_ours(module) or (module or "").partition(".")[0] == "numba")
