"""Bounds checks that say in which line an index is out of range.

Numba's own check raises an IndexError without a place. Here the error carries the file and the line
of the code that is being compiled, so that a traceback shows it. An error in a function of this
package that a user's function calls is shown at the call: the index came from there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import base, cgutils
from numba.core.lowering import Lower

__all__ = ["located_checks"]

SAID = ("index is out of bounds",)


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
        place = getattr(context, "place", (None, None))
        context.call_conv.return_user_exc(builder, IndexError, SAID, *place)


def _shown_at_the_call(call: Any, fndesc: Any) -> Any:
    """Let a user's function that calls one of this package raise its error as its own."""
    if not _is_ours(fndesc.modname):
        return call

    def implementation(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def raise_here(self: Any, builder: Any, status: Any) -> None:
            self.return_user_exc(builder, IndexError, SAID, *context.place)

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
