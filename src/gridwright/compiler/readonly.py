"""Arrays that a policy may read but not change.

In plain Python ``readonly`` returns a view that refuses to be written to. In compiled code it
changes the type of an array and nothing else: code that writes to such an array, or to one of its
records, does not compile.
"""

from typing import Any

__all__ = [
    "readonly",
    "register",
]


def readonly(array: Any, *shape: int) -> Any:
    """Return a view of an array that cannot be written to.

    The shape is that of the array. Compiled code takes its word for it: arrays that are given the
    same numbers are then known to be equally long, which saves most of the bounds checks.

    >>> import numpy as np
    >>> readonly(np.zeros(3), 3)[0] = 1.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    view = array.view()
    view.flags.writeable = False
    return view


readonly.is_built_in = True  # type: ignore[attr-defined]


def register() -> None:
    """Tell Numba how ``readonly`` is typed and compiled."""
    from numba.core import cgutils, errors
    from numba.core import types as numba_types
    from numba.core.datamodel import models, register_default
    from numba.core.imputils import (
        impl_ret_borrowed,
        lower_builtin,
        lower_setattr_generic,
    )
    from numba.core.typing.templates import AbstractTemplate, infer_global, signature

    types: Any = numba_types

    class ShownRecord(types.Record):  # type: ignore[misc]
        """A record of an array that cannot be written to; Numba's own records always can be."""

        mutable = False

        def __init__(self, record: Any) -> None:
            fields = [(name, field._asdict()) for name, field in record.fields.items()]
            super().__init__(fields, record.size, record.aligned)

        def can_convert_to(self, typingctx: Any, other: Any) -> None:
            return None

    register_default(ShownRecord)(models.RecordModel)

    @infer_global(readonly)
    class Readonly(AbstractTemplate):  # type: ignore[misc]
        key = readonly

        def generic(self, args: Any, kws: Any) -> Any:
            array, *shape = args
            dtype = array.dtype
            if isinstance(dtype, types.Record) and not isinstance(dtype, ShownRecord):
                dtype = ShownRecord(dtype)
            lengths = [types.intp] * len(shape)
            return signature(array.copy(dtype=dtype, readonly=True), array, *lengths)

    @lower_builtin(readonly, types.Array, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
    def retype(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, *shape = args
        given = cgutils.create_struct_proxy(sig.args[0])(context, builder, array)
        made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        for field in ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"):
            setattr(made, field, getattr(given, field))
        if shape:
            made.shape = cgutils.pack_array(builder, shape)
        return impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())

    def refuse(*_: Any) -> None:
        raise errors.TypingError("Cannot modify what a policy is shown")

    lower_setattr_generic(ShownRecord)(refuse)
    for kind in (types.StringLiteral, types.IntegerLiteral):
        lower_builtin("static_setitem", ShownRecord, kind, types.Any)(refuse)
