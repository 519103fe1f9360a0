"""Records: immutable, validated once, with one-line errors that say where the mistake is."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from .error import InputError
from .explanation import explain

__all__ = [
    "Count",
    "Fraction",
    "Matrix",
    "NonNegative",
    "OneOrList",
    "Positive",
    "PositiveOrInfinite",
    "Record",
    "freeze",
    "plain",
]

SMALLEST, LARGEST = 1e-30, 1e30
"""Numbers beyond these are mistakes, and would only make sums overflow or vanish."""


def _in_range(value: float) -> float:
    if 0 < value < SMALLEST or LARGEST < value < np.inf:
        raise ValueError(f"{value:g} is out of range; expected {SMALLEST:g} to {LARGEST:g}")
    return value


InRange = AfterValidator(_in_range)
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), InRange]
PositiveOrInfinite = Annotated[float, Field(strict=True, gt=0), InRange]
NonNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), InRange]
Fraction = Annotated[float, Field(strict=True, gt=0, le=1), InRange]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]

T = TypeVar("T")

OneOrList = Annotated[
    Annotated[T, Tag("\0one")] | Annotated[tuple[T, ...], Tag("\0several")],
    Discriminator(lambda value: "\0several" if isinstance(value, list | tuple) else "\0one"),
]
"""One value for all, or a list of them."""


class Record(BaseModel):
    """Base of everything that can stand in a file: frozen, and picky about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            self.__pydantic_validator__.validate_python(plain(values), self_instance=self)
        except ValidationError as error:
            raise InputError(f"{type(self).__name__}: {explain(error, type(self))}") from None

    # A record inside another is validated in place, so that an error knows its whole path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self  # it cannot change

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        for value in self.__dict__.values():
            if isinstance(value, np.ndarray):
                freeze(value)

    def parts(self) -> dict[str, Any]:
        """Return the fields and their values, without what was computed from them."""
        return {key: getattr(self, key) for key in type(self).model_fields}


class Array:
    """Field type: nested lists of numbers in, a read-only float array out."""

    def __init__(self, nested: Any):
        self.nested = nested

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            read_only,
            handler.generate_schema(self.nested),
            serialization=core_schema.plain_serializer_function_ser_schema(np.ndarray.tolist),
        )


Matrix = Annotated[NDArray[np.float64], Array(tuple[tuple[NonNegative, ...], ...])]


def read_only(rows: Iterable[Any]) -> NDArray[np.float64]:
    """Turn rows of equal length into an array that nobody can change."""
    rows = list(rows)
    lengths = [len(row) if isinstance(row, tuple) else 1 for row in rows]
    for number, length in enumerate(lengths, start=1):
        if length != lengths[0]:
            raise ValueError(f"row {number} has {length} values where row 1 has {lengths[0]}")
    return freeze(np.array(rows, dtype=float) + 0.0)  # no negative zeros


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only."""
    array.setflags(write=False)
    return array


def plain(value: Any) -> Any:
    """Turn arrays and NumPy scalars, however deep, into lists and plain numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
