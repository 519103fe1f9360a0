"""The catalogue of published systems and experiments, by name."""

import tomllib
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any

from ..model import InputError, System, did_you_mean


@dataclass(frozen=True, eq=False)
class Entry:
    """One published system, or one case of it."""

    name: str
    source: str
    """The key of the source: A, K, S, D, W or Q."""
    where: str
    parts: dict[str, Any] | None
    """The contents of a system file; None if the source prints too little for one."""
    note: str = ""
    horizon: float | None = None
    """The published length of a run, in time units."""
    down: tuple[str, ...] = ()
    """Machines that are down in this example."""
    expected_capacity: float | None = None
    """λ* as printed."""
    expected_allocation: tuple[tuple[float, ...], ...] | None = None
    """δ* as printed, in the columns of the rates."""
    printed: dict[str, Any] = field(default_factory=dict)
    """What else the source prints, by the names of ``published/README.md``."""

    @property
    def shape(self) -> tuple[int, int] | None:
        """The number of classes and of machines, known without building the system."""
        if self.parts is None:
            return None
        if "rates" not in self.parts:  # templates that are drawn, on nodes
            return self.parts["random_templates"]["count"], sum(self.parts["counts"])
        rates = self.parts["rates"]
        return len(rates), sum(self.parts.get("counts") or [1] * len(rates[0]))

    @property
    def has_capacity(self) -> bool:
        """Whether it is a system that can be allocated."""
        return self.parts is not None and "rates" in self.parts

    @property
    def is_example(self) -> bool:
        """Whether the source explains something with it, and publishes no study of it."""
        return any(word in self.name for word in ("example", ".LP-", "Sharifnia"))

    @cached_property
    def system(self) -> System:
        """The system itself."""
        if self.parts is None:
            raise InputError(
                f"{self.name} can be shown ('gridwright systems {self.name}') but not solved: "
                "its source prints no rates and arrivals"
            )
        return System(**{**self.parts, "name": self.name})


def find(name: str) -> Entry:
    """Find an entry by its name; the error for a name with several cases lists them.

    >>> find("2.B").expected_capacity
    1.3333
    """
    system = name.partition(":")[0]
    known = _read(system) if system in _files() else {}
    if name in known:
        return known[name]
    cases = [key for key in known if key.startswith(f"{name}:")]
    if len(cases) == 1:
        return known[cases[0]]
    if cases:
        raise InputError(f"{name} has several cases, name one: {', '.join(cases)}")
    everything = [*(entry.name for entry in entries()), *_files()]
    hint = did_you_mean(name, everything) or "; 'gridwright systems' lists them"
    raise InputError(f"no system {name!r} in the catalogue{hint}")


def entries() -> list[Entry]:
    """List every entry of the catalogue by name."""
    return [entry for system in _files() for entry in _read(system).values()]


def find_or_read(name: str | PathLike[str]) -> Entry:
    """Find an entry of the catalogue by its name, or make one from the path of a system file."""
    if not isinstance(name, str | PathLike):
        raise InputError(f"{name!r} is no system; expected its name or the path of its file")
    if isinstance(name, str):
        is_path = "/" in name or "\\" in name or name.endswith(".toml")
        if not is_path and (len(name) >= 200 or not Path(name).is_file()):
            return find(name)
    system = System.from_file(name)
    return Entry(system.name or Path(name).stem, source="", where=str(name), parts=system.parts())


def load(name: str | PathLike[str]) -> System:
    """Get a system by its name in the catalogue, or by the path of a system file.

    >>> load("2.B")
    System('2.B': 2 classes, 2 machines, arrivals [5, 8])
    """
    return find_or_read(name).system


def cite(source: str) -> str:
    """Return the full reference of a source.

    >>> cite("W")
    'Ryan J. Wisnesky, Evaluating Scheduling Algorithms on Distributed Computational Grids, paper'
    """
    text = (files(__package__) / "sources.toml").read_text("utf-8")
    book = tomllib.loads(text)[source]
    return ", ".join(str(book[key]) for key in ("author", "title", "kind", "year") if key in book)


@cache
def _files() -> tuple[str, ...]:
    folder = files(__package__) / "systems"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir()))


@cache
def _read(system: str) -> dict[str, Entry]:
    """Read the file of a published system: one entry, or one for each case."""
    text = (files(__package__) / "systems" / f"{system}.toml").read_text("utf-8")
    table = tomllib.loads(text)
    cases = table.pop("case", {})
    if not cases:
        return {system: _entry(system, table)}
    found = {}
    for case, changes in cases.items():
        merged = {**table, **changes}
        for key in ("system", "printed"):
            merged[key] = {**table.get(key, {}), **changes.get(key, {})}
        name = f"{system}:{case}"
        found[name] = _entry(name, merged)
    return found


def _entry(name: str, table: dict[str, Any]) -> Entry:
    parts, down = table.pop("system", None), tuple(table.pop("down", ()))
    rows = table.pop("expected_allocation", None)
    allocation = rows and tuple(map(tuple, rows))
    return Entry(name=name, parts=parts, down=down, expected_allocation=allocation, **table)


@cache
def experiment_names() -> tuple[str, ...]:
    """List the experiments by name: those of the MGST testbed in their order, then the others.

    >>> experiment_names()[0], experiment_names()[-1]
    ('MGST-1', 'Wisnesky')
    """

    def order(name: str) -> tuple[float, str]:
        first, *rest = name.split("-")
        return (float(rest[0]) if first == "MGST" else inf, name)

    found = [path.name.removesuffix(".toml") for path in _folder().iterdir()]
    return tuple(sorted(found, key=order))


def experiment_path(name: str) -> Path:
    """Return the file of an experiment."""
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return Path(str(files(__package__))) / "experiments"
