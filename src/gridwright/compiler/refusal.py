"""What a user's function may not use: code in which Numba checks no index.

A user's function is compiled with a check of every index, and what it is shown cannot be written
to. Some values lead around both: functions that are compiled already, pointers to functions, and
functions of NumPy and Numba that neither check an index nor respect an array that is read-only. Of
NumPy and Numba, only functions that are known to be safe are allowed.
"""

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from .digest import DEEPEST, Route, attributes, is_known

__all__ = [
    "is_dispatcher",
    "refuse_unchecked",
]

REFUSED = ("builtins.getattr", "builtins.setattr", f"{__package__}.readonly.readonly")
REFUSED_ATTRIBUTES = {"ctypes", "flat", "itemset", "view"}
NUMBA = {"literal_unroll", "literally", "prange"}
"""Of Numba itself, all that is allowed, besides its types and containers."""
NUMPY = """
all allclose amax amin angle any append arange argmax argmin argsort argwhere around array
array_equal array_split asarray asarray_chkfinite atleast_1d atleast_2d atleast_3d average
bartlett blackman broadcast_arrays broadcast_shapes broadcast_to clip column_stack concatenate
convolve copy corrcoef correlate count_nonzero cov cross cumprod cumsum diag diagflat diff
digitize dot dsplit dstack dtype ediff1d empty empty_like expand_dims eye finfo flatnonzero
flip fliplr flipud full full_like geomspace hamming hanning hsplit hstack identity iinfo imag
indices interp intersect1d isclose iscomplex iscomplexobj isin isneginf isposinf isreal
isrealobj isscalar kaiser kron linspace logspace max mean median min moveaxis nanargmax
nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
nanquantile nanstd nansum nanvar ndenumerate ndindex nonzero ones ones_like outer percentile
prod ptp quantile ravel real reshape roll rot90 round searchsorted setdiff1d setxor1d shape
sinc size sort split stack std sum swapaxes take trace transpose trapezoid tri tril
tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from union1d unique
unwrap vander var vdot vsplit vstack where zeros zeros_like
"""
"""Of NumPy itself, all that is allowed, besides its types and its functions of single numbers."""
NUMPY_MODULES = ("numpy.linalg", "numpy.random")
"""Modules of NumPy that are allowed whole."""


def refuse_unchecked(function: FunctionType, uses: dict[Route, Any]) -> None:
    """Refuse a user's function that uses what is not checked, or has it as a default."""
    for path, value in uses.items():
        is_unwrapped = is_dispatcher(value) and not is_known(value.py_func)
        if not is_unwrapped and _holds_unchecked(value):
            _refuse(function, ".".join(path))
    for name in sorted(attributes(function) & REFUSED_ATTRIBUTES):
        _refuse(function, f".{name}")
    if any(map(_holds_unchecked, (function.__defaults__, function.__kwdefaults__))):
        _refuse(function, "a compiled function as a default")


def _refuse(function: FunctionType, name: str) -> None:
    raise TypeError(
        f"{function.__name__} uses {name}, which is not checked; use an index, or call a plain "
        "function by its name"
    )


def is_dispatcher(value: Any) -> bool:
    """Tell whether a value is a function that ``numba.njit`` compiles."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(value).__mro__)
    return ("numba.core.dispatcher", "Dispatcher") in kinds


def _holds_unchecked(value: Any) -> bool:
    return any(map(_is_unchecked, _parts(value, 0)))


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """Return a value, and what it contains."""
    yield value
    if depth < DEEPEST and isinstance(value, tuple | list | set | frozenset | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _parts(each, depth + 1)


def _is_unchecked(value: Any) -> bool:
    kind = type(value)
    if _package(kind) == "numba":
        return not _is_type_of_numba(value)
    if hasattr(kind, "__wrapper_address__") or _is_pointer(value):
        return True
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if f"{module}.{name}" in REFUSED:
        return True
    if _package(value) == "numba":
        return not (name in NUMBA or str(module).startswith("numba.typed."))
    if _package(value) == "numpy" and callable(value):
        is_plain = isinstance(value, np.ufunc) or (
            isinstance(value, type) and issubclass(value, np.generic)
        )
        is_allowed = (module == "numpy" and name in NUMPY.split()) or module in NUMPY_MODULES
        return not (is_plain or is_allowed)
    return False


def _package(value: Any) -> str:
    return str(getattr(value, "__module__", None)).partition(".")[0]


def _is_pointer(value: Any) -> bool:
    """Tell whether a value is a function of a C library."""
    makers = (type(value), type(getattr(value, "__self__", None)))
    modules = {kind.__module__ for maker in makers for kind in maker.__mro__}
    return not modules.isdisjoint({"_ctypes", "_cffi_backend"})


def _is_type_of_numba(value: Any) -> bool:
    from numba.core.types import Type

    return isinstance(value, Type)
