"""Pass named tuples between compiled functions by their address.

Numba takes a tuple of arrays apart at every call and puts it together again in the called function.
With two dozen arrays, this is most of the code to compile. The tuples that a program gets from
Python do not change while it runs, so it is enough to pass their address.
"""

from hashlib import blake2b
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)


class Reference(types.Type):  # type: ignore[misc]
    """The address of a named tuple.

    Its name is short, because it is part of the name of every function that is passed one.
    """

    def __init__(self, named: Any) -> None:
        self.named = named
        digest = blake2b(str(named).encode(), digest_size=8).hexdigest()
        super().__init__(f"{named.instance_class.__name__}_{digest}")


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to the values of the fields."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        struct = ir.global_context.get_identified_type(f"shared.{fe_type.name}")
        if struct.is_opaque:
            struct.set_body(*(dmm.lookup(each).get_value_type() for each in fe_type.named.types))
        super().__init__(dmm, fe_type, struct.as_pointer())


@infer_getattr
class ReferenceAttribute(AttributeTemplate):  # type: ignore[misc]
    """Types of the fields."""

    key = Reference

    def generic_resolve(self, reference: Any, attr: str) -> Any:
        """Return the type of a field, None where there is none."""
        named = reference.named
        return named.types[named.fields.index(attr)] if attr in named.fields else None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def load(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    """Load a field; it never changes, so a loop need not load it again."""
    index = typ.named.fields.index(attr)
    loaded = builder.load(cgutils.gep_inbounds(builder, value, 0, index))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, typ.named.types[index], loaded)


@unbox(Reference)  # type: ignore[untyped-decorator]
def take_address(typ: Any, obj: Any, c: Any) -> Any:
    """Lay a tuple from Python out in memory that lasts as long as the call.

    The address goes through an empty instruction that hides where it comes from: otherwise loads
    of what never changes might be moved before the stores here.
    """
    values = c.unbox(typ.named, obj)
    fields = cgutils.unpack_tuple(c.builder, values.value, len(typ.named.types))
    address = cgutils.alloca_once(c.builder, c.context.get_value_type(typ).pointee)
    for index, field in enumerate(fields):
        c.builder.store(field, cgutils.gep_inbounds(c.builder, address, 0, index))
    kind = ir.FunctionType(address.type, [address.type])
    address = c.builder.asm(kind, "", "=r,0,~{memory}", [address], side_effect=True)
    return NativeValue(address, cleanup=values.cleanup, is_error=values.is_error)


def register(cls: type) -> None:
    """Have tuples of a class passed by address."""

    @typeof_impl.register(cls)  # type: ignore[untyped-decorator]
    def typeof(value: Any, c: Any) -> Any:
        found = [typeof_impl(each, c) for each in value]
        return Reference(types.BaseTuple.from_types(found, cls))
