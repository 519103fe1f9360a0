"""A policy: a function that decides, its kind, and the values of its parameters."""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import IntEnum
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation import (
    Situation,
    dantzig,
    dual,
    grouped,
    interior,
    prices,
    steady,
    tolls,
    vertex,
    weights,
)
from ..compiler.checks import readonly
from ..model import Floats, InputError, did_you_mean
from .kind import BY_PAIR, KINDS, ON_TIMEOUT, Kind
from .view import Count, Pairs, PerClass, Table

MOST_MEMORY = 10_000_000
"""The most numbers that ``view.memory`` may have."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy with values for its parameters; call it with other values to get another one.

    >>> from gridwright.policies import kpb
    >>> str(kpb), str(kpb(k=3)), str(kpb(k=3, tie="random"))
    ('kpb', 'kpb:k=3', 'kpb:k=3:tie=random')
    """

    decide: FunctionType
    kind: Kind
    planner: Callable[..., Any] | None
    own: MappingProxyType[str, Any]
    """Values of the function's own parameters, in its order."""
    planning: MappingProxyType[str, Any]
    """Values of the planner's parameters."""
    options: MappingProxyType[str, Any]
    """Values of the options of its kind."""
    use_availability: bool = True
    """Whether the planner knows the CPU availabilities."""
    allocating: bool = False
    """Whether the function creates arrays, which makes compiled code slower."""

    @property
    def name(self) -> str:
        """The name of the policy: that of its function."""
        return self.decide.__name__

    def arguments(self, shape: tuple[int, int]) -> tuple[Any, ...]:
        """Return the parameters for compiled code, given the number of classes and machines.

        They are numbers, booleans, and read-only arrays [class, machine] or [class].
        """
        found: dict[str, Any] = dict(self.own)
        for key, value in self.own.items():
            if key in self.arrays:
                found[key] = readonly(as_array(self.name, key, value, shape[: self.arrays[key]]))
            elif isinstance(value, Table):
                found[key] = readonly(value.array)
            elif isinstance(value, IntEnum):
                found[key] = int(value)
        return tuple(found.values())

    def memory(self, shape: tuple[int, int], before: Floats | None = None) -> Floats:
        """Make ``view.memory`` for so many classes and machines; keep the numbers of one before."""
        wanted = self.options.get("memory", BY_PAIR)
        rows, columns = (_length(each, dict(zip(BY_PAIR, shape, strict=True))) for each in wanted)
        if rows * columns > MOST_MEMORY:
            raise InputError(
                f"{self.name}: its memory has {rows:,} × {columns:,} numbers; expected at most "
                f"{MOST_MEMORY:,}"
            )
        made = np.zeros((rows, columns))
        if before is not None:
            made[: before.shape[0], : before.shape[1]] = before
        return made

    def plan(self, situation: Situation) -> Floats:
        """Run the planner in Python and return its plan [class, machine]; refuse any other answer.

        The planner gets a copy of the situation, so that it cannot change the arrays of the caller.
        Without classes or machines, as a grid may be at its start, it is not asked.
        """
        assert self.planner is not None
        if situation.rates.size == 0:
            return np.zeros(situation.rates.shape)
        copies: Any = (part.copy() for part in situation)
        made, shape = self.planner(Situation(*copies), **self.planning), situation.rates.shape
        try:
            plan = np.asarray(made, dtype=float)
            is_whole = plan.shape == shape and not np.isnan(plan).any()
        except (TypeError, ValueError):
            is_whole = False
        if not is_whole:
            short = " ".join(reprlib.repr(made).split())
            raise InputError(
                f"{self.name}: the plan is {short}; expected {shape[0]} × {shape[1]} numbers "
                "[class, machine]"
            )
        return plan

    @property
    def is_shipped(self) -> bool:
        """Whether its function and its planner are part of the package, not a user's own."""
        parts = [each for each in (self.decide, self.planner) if each is not None]
        own = __package__.partition(".")[0]
        return all(getattr(each, "__module__", "").partition(".")[0] == own for each in parts)

    @property
    def preempts(self) -> bool:
        """Whether it interrupts tasks for others."""
        return bool(self.options.get("preempt"))

    @property
    def arrays(self) -> dict[str, int]:
        """The parameters that may differ by class (1), or by class and machine (2)."""
        notes = self.decide.__annotations__
        known = {Pairs: 2, "Pairs": 2, PerClass: 1, "PerClass": 1}
        return {key: known[notes[key]] for key in self.own if notes.get(key) in known}

    @property
    def doc(self) -> str:
        """What it does, in a sentence."""
        return inspect.cleandoc(self.decide.__doc__ or "").partition("\n")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter and its value, the planner's included."""
        values = {**self.planning, **self.own}
        if self.planner in PLANNERS.values():
            values["planner"] = next(k for k, v in PLANNERS.items() if v is self.planner)
        if self.planner is not None:
            values["use_availability"] = self.use_availability
        for key, option in self.kind.options.items():
            if option.choices and self.options[key] is not None:
                values[key] = self.options[key]
        return values

    def __call__(self, **values: Any) -> Policy:
        """Return the policy with other values of some parameters."""
        if "planner" in values and self.planner is not None:
            name = checked(self.name, "planner", values.pop("planner"), "")
            own = {k: self.planning.get(k, v) for k, v in _planning(PLANNERS[name]).items()}
            planned = replace(self, planner=PLANNERS[name], planning=MappingProxyType(own))
            return planned(**values) if values else planned
        known = self.parameters
        for key, value in values.items():
            if key not in known:
                hint = did_you_mean(key, known) or f"; it takes {', '.join(known) or 'none'}"
                raise InputError(f"{self.name} has no parameter {key!r}{hint}")
            if key in self.arrays:
                values[key] = checked_numbers(self.name, key, value, self.arrays[key])
            else:
                values[key] = checked(self.name, key, value, known[key])
            if self.decide.__annotations__.get(key) in (Count, "Count") and values[key] < 1:
                raise InputError(f"{self.name}: {key} is {value}; expected at least 1")
        changed: dict[str, Any] = {
            part: MappingProxyType({k: values.get(k, v) for k, v in getattr(self, part).items()})
            for part in ("own", "planning", "options")
        }
        use_availability = values.get("use_availability", self.use_availability)
        made = replace(self, **changed, use_availability=use_availability)
        if made.preempts and made.options["idle"] != self.original.options["idle"]:
            raise InputError(f"{made}: with preempt=true all machines are asked; leave out idle")
        return made

    def __str__(self) -> str:
        """Write the policy as the command line takes it."""
        plain = self.original.parameters
        changed = {k: v for k, v in self.parameters.items() if k not in plain or v != plain[k]}
        return ":".join([self.name, *(f"{k}={word(v)}" for k, v in changed.items())])

    def __repr__(self) -> str:
        return f"<{self.kind} policy {self}>"

    @property
    def original(self) -> Policy:
        """The policy as it was written, every parameter at its default."""
        found: Policy = getattr(self.decide, "policy", self)
        return found


def check_central(policy: Policy, limit: str, why: str = "") -> None:
    """Refuse a policy that is neither push nor pull; the limit says what is for these alone."""
    if not policy.kind.is_central:
        words = f"{policy.name} is a {policy.kind} policy; {limit} push and pull policies"
        raise InputError(f"{words}{why}")


def check_not_preemptive(policy: Policy) -> None:
    """Refuse a policy that interrupts tasks where these are real or recorded jobs."""
    if policy.preempts:
        raise InputError(
            f"{policy} interrupts tasks, which only a simulation can do: real and recorded jobs "
            f"end where they began; use {policy.name}:preempt=false"
        )


def policy_of(
    decide: Any, kind: Kind, plan: Callable[..., Any] | None = None, **options: Any
) -> Policy:
    """Make a policy without registering its name."""
    _check_signature(kind, decide)
    chosen = {key: option.default for key, option in kind.options.items()} | options
    for key, option in kind.options.items():
        if option.choices and chosen[key] is not None:
            checked(decide.__name__, key, chosen[key], option.default)
    late = chosen.get("on_timeout")
    if late is not None and not callable(late) and late not in ON_TIMEOUT:
        words = ", ".join(ON_TIMEOUT)
        raise InputError(
            f"{decide.__name__}: on_timeout is {late!r}; expected {words}, or a function"
        )
    _check_memory(decide.__name__, chosen.get("memory", BY_PAIR))
    leading = len(kind.subjects) + 1
    own = {p.name: p.default for p in list(inspect.signature(decide).parameters.values())[leading:]}
    planning = MappingProxyType(_planning(plan))
    policy = Policy(decide, kind, plan, MappingProxyType(own), planning, MappingProxyType(chosen))
    decide.policy = policy
    return policy


def _planning(plan: Callable[..., Any] | None) -> dict[str, Any]:
    """Return the parameters of a planner and their defaults."""
    if plan is None:
        return {}
    return {p.name: p.default for p in list(inspect.signature(plan).parameters.values())[1:]}


def _length(wanted: int | str, known: dict[str, int]) -> int:
    """Return a number of rows or columns: itself, what a word stands for, or a multiple of that."""
    times, _, word = str(wanted).rpartition(" ")
    return wanted if isinstance(wanted, int) else int(times or 1) * known[word]


def _check_memory(name: str, memory: Any) -> None:
    """Refuse rows and columns of a memory that are neither numbers nor known words."""
    is_pair = isinstance(memory, tuple | list) and len(memory) == 2
    if not is_pair or not all(
        re.fullmatch(rf"([1-9]\d* )?({'|'.join(BY_PAIR)})", each)
        if isinstance(each, str)
        else type(each) is int and each > 0
        for each in memory
    ):
        raise InputError(
            f"{name}: memory is {memory!r}; expected (rows, columns), each of them a whole number "
            "from 1, 'classes', 'machines' or a multiple such as '2 classes'"
        )


def _check_signature(kind: Kind, decide: Any) -> None:
    """Refuse a wrong signature when the policy is made, before it runs."""
    if not isinstance(decide, FunctionType):
        raise InputError(f"@{kind} takes a function; {decide!r} is not one")
    signature = inspect.signature(decide)
    subjects = kind.subjects
    expected = f"def {decide.__name__}({', '.join(subjects)}, view, …parameters with defaults)"
    later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_later(decide) for is_later in later):
        raise InputError(f"{decide.__name__} does not return at once; expected {expected}")
    parameters = list(signature.parameters.values())
    stars = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    count = len(subjects) + 1
    leading, rest = parameters[:count], parameters[count:]
    if stars or len(leading) < count or any(p.default is not p.empty for p in leading):
        raise InputError(f"{decide.__name__}{signature} is no {kind} policy; expected {expected}")
    for parameter in rest:
        if not isinstance(parameter.default, bool | int | float | Table):
            raise InputError(
                f"{decide.__name__}: parameter {parameter.name!r} needs a default that is a "
                f"number or a boolean; expected {expected}"
            )


PLANNERS = {
    "dantzig": dantzig,
    "dual": dual,
    "grouped": grouped,
    "interior": interior,
    "prices": prices,
    "steady": steady,
    "tolls": tolls,
    "vertex": vertex,
    "weights": weights,
}
"""The planners that users may name as a parameter of a policy."""

CHOICES: dict[str, Collection[str]] = {"planner": PLANNERS} | {
    key: option.choices
    for kind in KINDS.values()
    for key, option in kind.options.items()
    if option.choices and not isinstance(option.default, bool)
}
"""The values of parameters that are words."""


def checked(name: str, key: str, value: Any, default: Any) -> Any:
    """Turn a value, or its text on the command line, into the type of the default."""
    if isinstance(value, np.generic):
        value = value.item()
    wrong = InputError(f"{name}: {key} is {value!r}; expected {_kind_of(key, default)}")
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise wrong
        return value
    if isinstance(default, Table):
        return value if isinstance(value, Table) else Table(value)
    if isinstance(default, IntEnum):
        choices = type(default).__members__
        if str(value) in choices:
            return choices[str(value)]
        if value in list(type(default)):
            return type(default)(value)
        raise wrong
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
        try:
            value = float(value) if isinstance(value, str) else value
        except ValueError:
            raise wrong from None
    if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong
    if isinstance(default, bool):
        return value
    if value != value or abs(value) == float("inf"):
        raise wrong
    if isinstance(default, int) and value != int(value):
        raise wrong
    return int(value) if isinstance(default, int) else float(value)


def checked_numbers(name: str, key: str, value: Any, dimensions: int) -> Any:
    """Turn a number, or numbers by class, into plain ones, or the text of either.

    The text is "1 2" in one dimension, by rows "1 2;3 4" in two.
    """
    if isinstance(value, str) and (" " in value.strip() or ";" in value):
        value = [row.split() for row in value.split(";")]
        value = value[0] if dimensions == 1 and len(value) == 1 else value
    if isinstance(value, int | float | str):
        return checked(name, key, value, 1.0)
    try:
        found = [[each] if dimensions == 1 else each for each in value]
        rows = [tuple(checked(name, key, each, 1.0) for each in row) for row in found]
    except TypeError:
        rows = []
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        several = "numbers" if dimensions == 1 else "rows of numbers"
        raise InputError(
            f"{name}: {key} is {value!r}; expected a number, or {several}, one a class"
        )
    return tuple(row[0] for row in rows) if dimensions == 1 else tuple(rows)


def as_array(name: str, key: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array with the value for every class, or for every class and machine."""
    given = np.array(value, dtype=float)
    if given.ndim and given.shape != shape:
        if len(shape) == 1:
            has, wanted = f"{len(given)} numbers", f"one for each of {shape[0]} classes"
        else:
            has = f"{given.shape[0]} rows of {given.shape[1]}"
            wanted = f"a row for each of {shape[0]} classes, with a number for each of {shape[1]} "
            wanted += "machines"
        raise InputError(f"{name}: {key} has {has}; expected {wanted}")
    return np.ascontiguousarray(np.broadcast_to(given, shape))


def _kind_of(key: str, default: Any) -> str:
    if key in CHOICES:
        return ", ".join(CHOICES[key])
    if isinstance(default, IntEnum):
        return " or ".join(type(default).__members__)
    if isinstance(default, bool):
        return "true or false"
    return "a whole number" if isinstance(default, int) else "a number"


def word(value: Any) -> str:
    """Write the value of a parameter as the command line takes it."""
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return (";" if isinstance(value[0], tuple) else " ").join(map(word, value))
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
