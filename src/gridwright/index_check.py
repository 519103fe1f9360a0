"""Bounds checks that say in which line an index is out of range.

Numba's own check raises an IndexError without a place. Here the error carries the file and the line
of the code that is being compiled, so that a traceback shows it. An error in a function of this
package that a user's function calls is shown at the call: the index came from there.

NumPy's functions that write their result into an array of the caller check neither its length nor
whether it may be written to. In a user's function they are refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import base, cgutils, errors, ir
from numba.core import types as numba_types
from numba.core.callconv import RETCODE_USEREXC, errcode_t
from numba.core.lowering import Lower

__all__ = ["located_checks"]

kinds: Any = numba_types
SAID = ("index is out of bounds",)
OUT_OF_BOUNDS = errcode_t(RETCODE_USEREXC.constant + 1)
"""The code of this error; Numba takes any code from ``RETCODE_USEREXC`` on for an exception."""
INPUTS: dict[Any, int] = {np.dot: 2, np.outer: 2}
"""How many arrays functions of NumPy read; the next one is written to."""


@contextmanager
def located_checks() -> Iterator[None]:
    """Give the bounds checks a place while a program is compiled.

    Numba compiles one program at a time, so nobody else's is changed.
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
    """Compile the error, with a code that tells it from other errors."""
    convention.set_static_user_exc(builder, IndexError, SAID, *place)
    status = convention.check_try_status(builder)
    with builder.if_then(builder.not_(status.in_try)):
        convention._return_errcode_raw(builder, OUT_OF_BOUNDS)


def _refuse_results(lower: Any, inst: Any) -> None:
    """Refuse a call of NumPy that is given an array for its result."""
    call: Any = getattr(inst, "value", None)
    if not (isinstance(call, ir.Expr) and call.op == "call"):
        return
    called: Any = getattr(lower.typeof(call.func.name), "typing_key", None)
    most = called.nin if isinstance(called, np.ufunc) else INPUTS.get(called)
    absent = kinds.Omitted, kinds.NoneType
    given = [each for each in lower.fndesc.calltypes[call].args if not isinstance(each, absent)]
    if most is not None and len(given) > most:
        raise errors.TypingError(
            f"np.{called.__name__} is given an array for its result, which is not checked; "
            f"write x = np.{called.__name__}(…)"
        )


def _shown_at_the_call(call: Any, fndesc: Any) -> Any:
    """Let a user's function that calls one of this package raise its wrong index as its own."""
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


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == __package__


def _is_users(module: str | None) -> bool:
    return not (_is_ours(module) or (module or "").partition(".")[0] == "numba")
