"""Teach Numba read-only arrays, named tuples that are passed by their address, and Philox.

Numba takes a tuple of arrays apart at every call and puts it together again in the called function.
With two dozen arrays, this is most of the code to compile. The tuples that a program gets from
Python do not change while it runs, so it is enough to pass their address.

Both ways of compiling need this file. Besides ``numba.extending``, it uses two parts of
``numba.core``: ``cgutils``, as the examples in Numba's manual do, and ``AttributeTemplate``, which
``numba.extending.infer_getattr`` needs. ``make numba-versions`` tries it with every minor version
of Numba that ``pyproject.toml`` allows.
"""

from hashlib import blake2b
from typing import Any

import numba
from llvmlite import ir
from numba import errors
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    overload_method,
    register_jitable,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from .checks import ABREAST, addressed, interleaved, readonly, shaped
from .philox import METHODS, Philox, block, gamma

types: Any = numba.types


def register(cls: type) -> None:
    """Have tuples of a class passed by address."""

    @typeof_impl.register(cls)  # type: ignore[untyped-decorator]
    def typeof(value: Any, c: Any) -> Any:
        found = [typeof_impl(each, c) for each in value]
        return Reference(types.BaseTuple.from_types(found, cls))


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
    return _counted(context, builder, typ.named.types[index], loaded)


@unbox(Reference)  # type: ignore[untyped-decorator]
def take_address(typ: Any, obj: Any, c: Any) -> Any:
    """Lay a tuple from Python out in memory that lasts as long as the call.

    The address goes through an empty instruction that hides where it comes from: otherwise loads
    of what never changes might be moved before the stores here.
    """
    values = c.unbox(typ.named, obj)
    address = _stored(c.context, c.builder, typ, values.value)
    return NativeValue(address, cleanup=values.cleanup, is_error=values.is_error)


@type_callable(addressed)  # type: ignore[untyped-decorator]
def type_addressed(context: Any) -> Any:
    """Say what type ``addressed`` returns."""
    return lambda named: Reference(named)


@lower_builtin(addressed, types.BaseTuple)  # type: ignore[untyped-decorator]
def compile_addressed(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Lay a tuple of compiled code out in the memory of the function that made it."""
    return _stored(context, builder, sig.return_type, args[0])


def _stored(context: Any, builder: Any, typ: Any, values: Any) -> Any:
    """Store the fields of a tuple in memory of the function, and return the address."""
    fields = cgutils.unpack_tuple(builder, values, len(typ.named.types))
    address = cgutils.alloca_once(builder, context.get_value_type(typ).pointee)
    for index, field in enumerate(fields):
        builder.store(field, cgutils.gep_inbounds(builder, address, 0, index))
    kind = ir.FunctionType(address.type, [address.type])
    return builder.asm(kind, "", "=r,0,~{memory}", [address], side_effect=True)


class ReadonlyRecord(types.Record):  # type: ignore[misc]
    """A record of an array that cannot be written to; Numba's own records always can be."""

    mutable = False

    def __init__(self, record: Any) -> None:
        fields = [(name, field._asdict()) for name, field in record.fields.items()]
        super().__init__(fields, record.size, record.aligned)

    def can_convert_to(self, typingctx: Any, other: Any) -> None:
        """Refuse to convert it to a record that can be written to, by returning None."""


register_model(ReadonlyRecord)(models.RecordModel)


@type_callable(readonly)  # type: ignore[untyped-decorator]
def type_readonly(context: Any) -> Any:
    """Say what type ``readonly`` returns."""

    def typer(array: Any, rows: Any = None, columns: Any = None) -> Any:
        dtype = array.dtype
        if isinstance(dtype, types.Record) and not isinstance(dtype, ReadonlyRecord):
            dtype = ReadonlyRecord(dtype)
        lengths = [types.intp for each in (rows, columns) if each is not None]
        return array.copy(dtype=dtype, readonly=True)(array, *lengths)

    return typer


@lower_builtin(readonly, types.Array, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def compile_readonly(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Copy the fields of an array, with the shape that is given."""
    array, *shape = args
    given = cgutils.create_struct_proxy(sig.args[0])(context, builder, array)
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    for field in ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"):
        setattr(made, field, getattr(given, field))
    if shape:
        made.shape = cgutils.pack_array(builder, shape)
    return _counted(context, builder, sig.return_type, made._getvalue())


def _counted(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    """Count one more reference to a value that another one still refers to."""
    if context.enable_nrt:
        context.nrt.incref(builder, typ, value)
    return value


def _refuse(*_: Any) -> None:
    raise errors.TypingError("Cannot modify what a policy is shown")


lower_setattr_generic(ReadonlyRecord)(_refuse)
for kind in (types.StringLiteral, types.IntegerLiteral):
    lower_builtin("static_setitem", ReadonlyRecord, kind, types.Any)(_refuse)


def register_shaped(callable_: Any, lower: Any) -> None:
    """Compile ``shaped`` and ``interleaved``, with ``type_callable`` and ``lower_builtin``."""

    @callable_(shaped)  # type: ignore[untyped-decorator]
    def type_shaped(context: Any) -> Any:
        def typer(flat: Any, first: Any, rows: Any, columns: Any = None) -> Any:
            return types.Array(flat.dtype, 1 if columns is None else 2, "C")

        return typer

    @lower(shaped, types.Array, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
    def compile_shaped(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        flat, first, *shape = args
        given = context.make_array(sig.args[0])(context, builder, flat)
        made = context.make_array(sig.return_type)(context, builder)
        for field in ("meminfo", "parent", "itemsize"):
            setattr(made, field, getattr(given, field))
        made.data = builder.gep(given.data, [first])
        made.nitems, strides = shape[0], [given.itemsize]
        for columns in shape[1:]:
            made.nitems = builder.mul(made.nitems, columns)
            strides.insert(0, builder.mul(columns, given.itemsize))
        made.shape = cgutils.pack_array(builder, shape)
        made.strides = cgutils.pack_array(builder, strides)
        return _counted(context, builder, sig.return_type, made._getvalue())

    @callable_(interleaved)  # type: ignore[untyped-decorator]
    def type_interleaved(context: Any) -> Any:
        def typer(flat: Any, first: Any, rows: Any, columns: Any = None) -> Any:
            layout = "C" if isinstance(flat.dtype, types.Record) else "A"
            return types.Array(flat.dtype, 1 if columns is None else 2, layout)

        return typer

    @lower(interleaved, types.Array, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
    def compile_interleaved(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        flat, first, *shape = args
        given = context.make_array(sig.args[0])(context, builder, flat)
        made = context.make_array(sig.return_type)(context, builder)
        for field in ("meminfo", "parent", "itemsize"):
            setattr(made, field, getattr(given, field))
        words = builder.bitcast(given.data, ir.IntType(64).as_pointer())
        made.data = builder.bitcast(builder.gep(words, [first]), given.data.type)
        step = given.itemsize
        if sig.return_type.layout == "A":
            step = ir.Constant(step.type, 8 * ABREAST)
        made.nitems, strides = shape[0], [step]
        for columns in shape[1:]:
            made.nitems = builder.mul(made.nitems, columns)
            strides.insert(0, builder.mul(columns, step))
        made.shape = cgutils.pack_array(builder, shape)
        made.strides = cgutils.pack_array(builder, strides)
        return _counted(context, builder, sig.return_type, made._getvalue())


def register_philox(jitable: Any, method: Any, tuples: Any) -> None:
    """Have compiled code call the methods of a ``Philox``.

    The arguments are parts of the compiler's interface: ``register_jitable``, ``overload_method``,
    and its type of tuples with fields of one type.
    """
    options = {"_nrt": False, "error_model": "numpy"}
    for function in (block, *METHODS.values(), gamma):
        jitable(**options)(function)
    for name, function in METHODS.items():
        method(tuples, name, jit_options=options, strict=False)(_without_arguments(function))

    @method(tuples, "standard_gamma", jit_options=options, strict=False)  # type: ignore[untyped-decorator]
    def standard_gamma(rng: Any, shape: Any) -> Any:
        return (lambda rng, shape: gamma(rng.words, shape)) if _is_philox(rng) else None


def _without_arguments(function: Any) -> Any:
    def call(rng: Any) -> Any:
        return function(rng.words)

    def method(rng: Any) -> Any:
        return call if _is_philox(rng) else None

    call.__qualname__ = f"philox_{function.__name__}"  # Numba tells functions apart by this name
    return method


def _is_philox(rng: Any) -> bool:
    return rng.instance_class is Philox


register_shaped(type_callable, lower_builtin)
register_philox(register_jitable, overload_method, types.NamedUniTuple)
