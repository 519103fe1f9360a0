"""The guided stops of the page Learn, which are data: texts, systems, policies and questions."""

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from ..model import System
from .documents import read_text


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
    question: str
    choices: list[str]
    right: int
    answer: str
    read: str
    """The page of ``docs/learn`` on the same idea."""
    failures: dict[str, Any] = field(default_factory=dict)

    @property
    def system(self) -> System:
        """The system as the text describes it."""
        made = System(arrivals=self.arrivals, rates=self.rates)
        return made.replace(failures=self.failures) if self.failures else made

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
    return tuple(Stop(**each) for each in read_text(text)["stop"])
