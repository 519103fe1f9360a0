"""The guided stops of the page Learn, which are data: texts, systems, policies and questions."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any, Self

import numpy as np

from ..allocation import allocate
from ..experiments.variation import varied
from ..model import InputError, System
from ..policies import Policy, policies
from .documents import read_text

LARGEST = 1000.0
"""The largest rate of an address."""
MOST_TASKS = 5
"""How many times more tasks than in the text an address may ask for: anybody may open it."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One idea: a text, a system to watch under some policies, and a question."""

    title: str
    text: str
    arrivals: list[float]
    rates: list[list[float]]
    policies: list[str]
    tasks: int
    """About how many tasks a film shows."""
    predict: str
    do: str
    see: str
    """What happens then; the page hides it until the reader has tried."""
    try_: dict[str, Any]
    """What ``do`` changes: a load, a rate (class, machine, value), or the time to look at."""
    question: str
    choices: list[str]
    right: int
    hints: list[str]
    """One for each choice."""
    answer: str
    read: str
    """The page of ``docs/learn`` on the same idea."""
    failures: dict[str, Any] = field(default_factory=dict)
    lab: bool = False
    """Whether the lab of ninety minutes continues here."""

    @property
    def system(self) -> System:
        """The system as the text describes it."""
        made = System(arrivals=self.arrivals, rates=self.rates)
        return made.replace(failures=self.failures) if self.failures else made

    def tried(self) -> System:
        """Return the system with the change that ``do`` asks for."""
        if "load" in self.try_:
            return varied(self.system, "load", self.try_["load"])
        if "rate" in self.try_:
            i, j, value = self.try_["rate"]
            rates = self.system.rates.copy()
            rates[i - 1, j - 1] = value
            return self.system.replace(rates=rates.tolist())
        return self.system

    @property
    def end(self) -> float:
        """The length of a film in time units."""
        return self.tasks / sum(self.arrivals)


@cache
def stops() -> tuple[Stop, ...]:
    """Return the stops in their order.

    >>> stops()[0].title
    'Why the fastest machine is the wrong one'
    """
    text = files(__package__).joinpath("stops.toml").read_text("utf-8")
    return tuple(Stop(try_=each.pop("try"), **each) for each in read_text(text)["stop"])


@dataclass(frozen=True)
class Settings:
    """What is shown at a stop: it may differ from its text."""

    system: System
    policies: tuple[str, ...]
    seed: int = 1

    @classmethod
    def of(cls, stop: Stop, query: Mapping[str, str]) -> Self:
        """Read the settings of an address; the rest, and what is wrong there, is as in the text.

        >>> stop = stops()[0]
        >>> found = Settings.of(stop, {"arrivals": "3,9", "policies": "met,nonsense"})
        >>> found.system.arrivals.tolist(), found.policies, found.query(stop)
        ([3.0, 9.0], ('met', 'lpas'), 'arrivals=3,9')
        """
        system, shape = stop.system, stop.system.shape
        arrivals = _numbers(query.get("arrivals"), shape[0], MOST_TASKS * sum(stop.arrivals))
        rates = _numbers(query.get("rates"), shape[0] * shape[1])
        with suppress(InputError):
            changed = system.replace(arrivals=arrivals) if arrivals else system
            if rates:
                changed = changed.replace(rates=np.reshape(rates, shape).tolist())
            allocate(changed)
            system = changed
        policies = tuple(query.get("policies", "").split(","))
        if len(policies) != len(stop.policies) or not all(each in offered() for each in policies):
            policies = tuple(stop.policies)
        seed = query.get("seed", "")
        return cls(system, policies, int(seed) if re.fullmatch("[1-9][0-9]{0,5}", seed) else 1)

    def query(self, stop: Stop) -> str:
        """Return what an address says about the settings."""
        words = []
        for key, now, first in (
            ("arrivals", self.system.arrivals, stop.system.arrivals),
            ("rates", self.system.rates, stop.system.rates),
        ):
            if not np.array_equal(now, first):
                words.append(f"{key}={','.join(f'{each:.6g}' for each in np.ravel(now))}")
        if list(self.policies) != stop.policies:
            words.append(f"policies={','.join(self.policies)}")
        if self.seed != 1:
            words.append(f"seed={self.seed}")
        return "&".join(words)


def offered() -> dict[str, Policy]:
    """Return the policies that a film can show."""
    found = policies().items()
    return {name: each for name, each in found if each.kind.is_central and each.is_shipped}


def _numbers(text: str | None, length: int, total: float = inf) -> list[float] | None:
    """Return the numbers of a list with commas; None if they are not so many, or too large.

    >>> _numbers("3,9.5", 2), _numbers("3", 2), _numbers("3,nan", 2), _numbers("3,9", 2, 10)
    ([3.0, 9.5], None, None, None)
    """
    words = (text or "").split(",")
    if len(words) != length:
        return None
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    small = all(0 <= each <= LARGEST for each in numbers) and sum(numbers) <= total
    return numbers if small else None
