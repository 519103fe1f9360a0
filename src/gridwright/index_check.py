"""Bounds checks that say in which line an index is out of range.

Numba's own check raises an IndexError without a place. Here the error carries the file and the line
of the code that is being compiled, so that a traceback shows it. An error in a function of this
package that a user's function calls is shown at the call: the index came from there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.imputils import fix_returning_optional
from numba.core.lowering import Lower

__all__ = ["located_checks"]

SAID = ("index is out of bounds",)


@contextmanager
def located_checks() -> Iterator[None]:
    """Give the bounds checks a place while a program is compiled.

    Numba compiles one program at a time, so nobody else's is changed.
    """
    changed: Any = cgutils
    before = Lower.lower_inst, changed.do_boundscheck, BaseContext.call_internal

    def note_place(self: Any, inst: Any) -> None:
        self.context.place = inst.loc, self.func_ir.func_id.func_name
        self.context.is_ours = _is_ours(self.func_ir.func_id.modname)
        before[0](self, inst)

    def check(context: Any, builder: Any, index: Any, length: Any, axis: Any = None) -> None:
        # a negative index has been wrapped around by now: one that is still negative is, without
        # its sign, larger than any length
        with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, length)):
            place = getattr(context, "place", (None, None))
            context.call_conv.return_user_exc(builder, IndexError, SAID, *place)

    def call(self: Any, builder: Any, fndesc: Any, sig: Any, args: Any) -> Any:
        if getattr(self, "is_ours", True) or not _is_ours(fndesc.modname):
            return before[2](self, builder, fndesc, sig, args)
        status, result = self.call_internal_no_propagate(builder, fndesc, sig, args)
        with cgutils.if_unlikely(builder, status.is_error):
            self.call_conv.return_user_exc(builder, IndexError, SAID, *self.place)
        return fix_returning_optional(self, builder, sig, status, result)

    Lower.lower_inst, changed.do_boundscheck, BaseContext.call_internal = note_place, check, call
    try:
        yield
    finally:
        Lower.lower_inst, changed.do_boundscheck, BaseContext.call_internal = before


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == __package__
