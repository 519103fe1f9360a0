"""Form fields, derived from the models that they fill.

Labels, hints, choices and defaults come from the fields of a model: their titles, descriptions,
types and defaults. Messages about a model name its fields as the page shows them.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from ..model import InputError
from ..model.record import explain

CHOICES = {
    "failures": {"generated": "drawn from the mean times", "none": "none"},
    "on_timeout": {
        "resubmit": "send the job to another machine",
        "duplicate": "run it twice; the first result counts",
        "wait": "wait for the job",
        "fail": "the job has failed",
    },
    "detection": {"immediate": "at once", "timeout": "only by the time-out"},
    "job": {"wait": "sleep", "spin": "use the CPU"},
    "executor": {"local": "processes of this computer", "dask": "workers of a Dask cluster"},
    "mode": {
        "weekly": "weighted mean of earlier weeks",
        "recursive": "recursive mean of earlier weeks",
        "fixed": "fixed share",
    },
}
"""What the choices of a field mean; a choice that is missing here is shown as it is."""

Kind = Literal["choice", "whole", "number", "text", "other"]
M = TypeVar("M", bound=BaseModel)


class FormField(NamedTuple):
    """A field of a form."""

    key: str
    label: str
    hint: str
    kind: Kind
    default: Any
    choices: Mapping[str, str]

    @property
    def text(self) -> str:
        """The default, as a cell shows it."""
        return "" if self.default is None else as_text(self.default)

    def read(self, cell: str) -> Any:
        """Read what was typed; what is not a number stays a text, which the model refuses."""
        if self.kind == "number":
            return as_number(cell)
        return as_whole(cell) if self.kind == "whole" else cell


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, FormField]:
    """Return the fields of a model by their keys.

    >>> from gridwright.testbed import Experiment
    >>> fields_of(Experiment)["time_unit"].label
    'Time unit'
    """
    found = {}
    for key, field in model.model_fields.items():
        label = field.title or key.replace("_", " ").capitalize()
        default = None if field.default is PydanticUndefined else field.default
        known = CHOICES.get(key, {})
        plain = _without_none(field.annotation)
        options = get_args(plain) if get_origin(plain) is Literal else known
        choices = {each: known.get(each, each) for each in options}
        kinds: dict[Any, Kind] = {int: "whole", float: "number", str: "text"}
        kind: Kind = "choice" if choices else kinds.get(plain, "other")
        found[key] = FormField(key, label, field.description or "", kind, default, choices)
    return MappingProxyType(found)


def _without_none(annotation: Any) -> Any:
    """Return the type of a field that may also be None.

    >>> _without_none(float | None)
    <class 'float'>
    """
    given = [each for each in get_args(annotation) if each is not NoneType]
    if len(given) == 1 and NoneType in get_args(annotation):
        return get_args(given[0])[0] if get_origin(given[0]) is Annotated else given[0]
    return annotation


def validated(model: type[M], values: dict[str, Any]) -> M:
    """Make a model; raise an error that names its fields as the page shows them."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(with_labels(explain(error, model), model)) from None


def with_labels(message: str, *models: type[BaseModel]) -> str:
    """Name the fields of models in a message as the page shows them.

    >>> from gridwright.testbed import Experiment
    >>> with_labels("time_unit is -1; expected a number > 0", Experiment)
    'Time unit is -1; expected a number > 0'
    """
    message = re.sub(r"\[\w+\] (?=\w+ is|\w+:)", "", message)
    for model in models:
        for key, field in fields_of(model).items():
            start = "" if "_" in key else r"(?:^|(?<=; ))"  # other keys are plain words as well
            message = re.sub(rf"{start}(?<!')\b{key}\b(?!')(?=[ :,])", field.label, message)
    return message


def as_text(value: Any) -> str:
    """Write a value as a cell shows it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


@lru_cache(maxsize=20_000)  # a large system is read again at every edit
def as_number(cell: str) -> Any:
    """Read a number, or return the text, which the model refuses."""
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return cell


def as_whole(cell: str) -> Any:
    """Read a whole number, if it is one."""
    return int(cell) if cell.strip().isdecimal() and len(cell) < 20 else as_number(cell)
