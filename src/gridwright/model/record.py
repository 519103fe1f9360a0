"""Immutable records, validated once, and one-line explanations of what is wrong in them."""

from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Annotated, Any, NamedTuple, Self, TypeVar

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
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from .error import InputError, did_you_mean

SMALLEST, LARGEST = 1e-30, 1e30
"""Numbers outside this range are mistakes; they make sums overflow or vanish."""


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
    """Base class of everything that can be in a file: frozen, without unknown keys."""

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
        """Return the fields and their values."""
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


def is_nested(rows: Any) -> str:
    """Tell a list of numbers from a list of rows, for a union of the two."""
    nested = isinstance(rows, list | tuple) and rows and isinstance(rows[0], list | tuple)
    return "\0several" if nested else "\0one"


def read_only(rows: Iterable[Any]) -> NDArray[np.float64]:
    """Turn rows of equal length into a read-only array."""
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


EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "tuple_type": "a list",
}
SHOWN = 3
"""How many errors are listed in one line."""
MOST = 200
"""How many mistakes are listed by place."""
LONGEST = 80
"""How many characters of a place are shown."""
BOUNDS = {"greater_than": ">", "greater_than_equal": "≥", "less_than": "<", "less_than_equal": "≤"}


def explain(error: ValidationError, record: type[BaseModel]) -> str:
    """Return one line that says what is wrong in a record, and where; the first few errors.

    Unknown keys come before missing ones: often it is the same key, misspelt.
    """
    errors = sorted(
        error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden"
    )
    more = f" (and {len(errors) - SHOWN} more)" if len(errors) > SHOWN else ""
    return "; ".join(_sentence(each, record) for each in errors[:SHOWN]) + more


class Mistake(NamedTuple):
    """A mistake in a record: where it is, and what it is."""

    place: tuple[int | str, ...]
    words: str


def mistakes(error: ValidationError, record: type[BaseModel]) -> list[Mistake]:
    """Return the place and the words of every error; of very many, the first."""
    return [
        Mistake(tuple(step for step in each["loc"] if not _is_tag(step)), _sentence(each, record))
        for each in error.errors(include_url=False)[:MOST]
    ]


def _sentence(error: ErrorDetails, record: type[BaseModel]) -> str:
    kind, where = error["type"], _cut(place(error["loc"]), LONGEST)
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"unknown key {where}{did_you_mean(str(error['loc'][-1]), _keys(record, error))}"
    if kind == "value_error":
        text = str(error["ctx"]["error"])
        return f"{where}: {text}" if where else text
    if kind in BOUNDS:
        (bound,) = error["ctx"].values()
        expected = f"a number {BOUNDS[kind]} {bound:g}"
    elif kind == "literal_error":
        expected = str(error["ctx"]["expected"])
    else:
        expected = EXPECTED.get(kind, error["msg"])
    return f"{where} is {shortened(error['input'])}; expected {expected}"


def place(path: tuple[int | str, ...]) -> str:
    """Name a place in a file as a reader would.

    >>> place(("rates", 1, 0)), place(("failures", "uptime")), place(("availability", 2, "step"))
    ('rates, row 2, column 1', '[failures] uptime', 'availability, entry 3, step')
    """
    words = ""
    steps = [step for step in path if not _is_tag(step)]
    for number, step in enumerate(steps):
        following = steps[number + 1 :]
        if isinstance(step, str):
            table = following and isinstance(following[0], str)
            words += (", " if words.endswith(DIGITS) else "") + (f"[{step}] " if table else step)
        elif isinstance(steps[number - 1], int):
            words += f", column {step + 1}"
        else:
            row = following and isinstance(following[0], int)
            words += f", {'row' if row else 'entry'} {step + 1}"
    return words


DIGITS = tuple("0123456789")


def _is_tag(step: int | str) -> bool:
    """Return whether a step is the branch of a union, which Pydantic adds to the path."""
    return isinstance(step, str) and step.startswith("\0")


def shortened(value: Any, length: int = 40) -> str:
    """Return the text of a value, cut at a length."""
    text = " ".join((str if isinstance(value, date | time) else repr)(value).split())
    return _cut(text, length)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _keys(record: type[BaseModel], error: ErrorDetails) -> list[str]:
    """List the keys that are allowed in the place of an unknown one."""
    for step in error["loc"][:-1]:
        field = record.model_fields.get(str(step))
        for inner in getattr(field.annotation, "__args__", ()) if field else ():
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                record = inner
    return list(record.model_fields)
