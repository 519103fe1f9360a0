"""Keep users' functions from reading or writing memory that is not theirs.

A user's function is compiled with a check of every index, and the arrays that it is shown are
read-only. Some code would escape both: functions that are compiled already, pointers to functions,
and functions of NumPy and Numba that neither check an index nor respect a read-only array. A user's
function that uses such code is refused. Of NumPy and Numba, it may use only functions that are
known to be safe.
"""

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from .digest import DEEPEST, Route, attributes, is_known

BUILT_IN = ("readonly", "shaped", "interleaved", "addressed", "by_address", "unpacked")
OWN = tuple(f"{__name__}.{name}" for name in BUILT_IN)
REFUSED = ("builtins.getattr", "builtins.setattr", *OWN)
REFUSED_ATTRIBUTES = {"ctypes", "flat", "itemset", "view"}
NUMBA = {"literal_unroll", "literally", "prange"}
"""The functions of Numba that are allowed, besides its types and containers."""
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
"""The functions of NumPy that are allowed, besides its types and universal functions."""
NUMPY_MODULES = ("numpy.linalg", "numpy.random")
"""Modules of NumPy of which every function is allowed."""
INPUTS: dict[Any, int] = {np.dot: 2, np.outer: 2}
"""How many arrays these functions read. They would write to the next one."""
_WITHOUT_RESULTS: dict[Any, Any] = {}


def readonly(array: Any, *shape: int) -> Any:
    """Return a read-only view of an array.

    In compiled code this changes the type of the array and nothing else: code that writes to such
    an array, or to one of its records, does not compile. The shape must be that of the array.
    Compiled code does not check it: arrays that are given the same numbers are then known to be
    equally long, which saves most of the bounds checks.

    >>> import numpy as np
    >>> readonly(np.zeros(3), 3)[0] = 1.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    view = array.view()
    view.flags.writeable = False
    return view


def shaped(flat: Any, first: int, rows: int, columns: int | None = None) -> Any:
    """Return a part of an array, as [row] or [row, column], without a copy or a check.

    >>> import numpy as np
    >>> shaped(np.arange(10), 2, 3).tolist(), shaped(np.arange(10), 2, 2, 3).tolist()
    ([2, 3, 4], [[2, 3, 4], [5, 6, 7]])
    """
    if columns is None:
        return flat[first : first + rows]
    return flat[first : first + rows * columns].reshape(rows, columns)


def addressed(values: Any) -> Any:
    """Return a named tuple of a shared class; compiled code then passes its address.

    The address is valid until the same line makes another one. In plain Python it is the tuple.
    """
    return values


ABREAST = 32
"""Threads of a GPU that run in step: those of a warp."""


def interleaved(flat: Any, first: int, rows: int, columns: int | None = None) -> Any:
    """Return one of 32 arrays that lie word by word side by side; each word has eight bytes.

    ``first`` is the index of its first word. The type of records has its fields that far apart.

    >>> import numpy as np
    >>> interleaved(np.arange(128), 5, 3).tolist(), interleaved(np.arange(128), 0, 2, 2).tolist()
    ([5, 37, 69], [[0, 32], [64, 96]])
    """
    if columns is not None:
        return interleaved(flat, first, rows * columns).reshape(rows, columns)
    step = flat.itemsize if flat.dtype.names else 8 * ABREAST
    found: Any = np.ndarray((rows,), flat.dtype, flat.view(np.uint8), 8 * first, (step,))
    return found.view(np.recarray) if flat.dtype.names else found


def by_address(*given: Any) -> int:
    """Call a compiled policy; the last argument has its address (see ``tiers``)."""
    raise NotImplementedError("only compiled code has addresses")


def unpacked(words: Any) -> Any:
    """Return the parameters of a policy as a tuple, from the words that have its address."""
    raise NotImplementedError("only compiled code has addresses")


for each in BUILT_IN:
    globals()[each].is_built_in = True


def refuse_unchecked(function: FunctionType, uses: dict[Route, Any]) -> None:
    """Refuse a user's function that uses unchecked code, or has it as a default."""
    for path, value in uses.items():
        is_unwrapped = is_dispatcher(value) and not is_known(value.py_func)
        if not (is_unwrapped or inputs_of(value)) and _holds_unchecked(value):
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


def inputs_of(value: Any) -> int | None:
    """Return how many arrays a function of NumPy reads if it can also write to one, else None."""
    if isinstance(value, np.ufunc):
        return value.nin
    return next((count for function, count in INPUTS.items() if function is value), None)


def without_results(value: Any) -> Any:
    """Return a function that calls a function of NumPy, and does not compile with a result array.

    NumPy's functions that write their result into an array of the caller check neither its length
    nor whether it is read-only. Return None for any other value.
    """
    inputs = inputs_of(value)
    if inputs is None:
        return None
    if value not in _WITHOUT_RESULTS:
        from numba import errors, types
        from numba.extending import overload

        def call(*arrays: Any) -> Any:
            if sum(not isinstance(each, types.NoneType) for each in arrays) > inputs:
                raise errors.TypingError(result_refused(value.__name__))
            names = ", ".join("abcdefghi"[: len(arrays)])
            return eval(f"lambda {names}: value({names})", {"value": value})

        overload(call, strict=False)(call)
        _WITHOUT_RESULTS[value] = call
    return _WITHOUT_RESULTS[value]


def result_refused(name: str) -> str:
    """Say that a function of NumPy must not write into an array."""
    return (
        f"np.{name} is given an array for its result, which is not checked; write x = np.{name}(…)"
    )


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
    from numba import types

    return isinstance(value, types.Type)
