"""Read, complete, check and write the description of a system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .chain import PLURAL, chain_defaults, check_chains, in_plural
from .distribution import Distribution, describe
from .error import InputError, did_you_mean
from .mode import CHAINS
from .record import Record, plain
from .toml import parse_toml

if TYPE_CHECKING:
    from .system import System

MOST_MACHINES = 100_000
_SINGULAR = {many: one for one, many in PLURAL.items()}


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file. The messages leave out its path, which the caller adds."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError("this is not a regular file; expected a system file")
        return parse_toml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except IsADirectoryError:
        raise InputError("this is a folder; expected a system file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("this is not a text file; expected TOML in UTF-8") from None


def document(system: System, folder: Path | None = None, *, named: bool = True) -> dict[str, Any]:
    """Return the contents of a system file, without parts that have their default values.

    With named=False, distributions need not be defined in a file; the result cannot be read back.
    """

    def name(distribution: Distribution) -> Any:
        return describe(distribution, folder) if named else (type(distribution), repr(distribution))

    words = _words(system, name)
    omitted = default_parts(system)
    return {_SINGULAR.get(key, key): value for key, value in words.items() if key not in omitted}


def default_parts(system: System) -> set[str]:
    """Return the names of the parts that have the values they would have by default."""
    parts: dict[str, Any] = {"rates": system.rates.tolist()}
    if system.mode is CHAINS:
        parts = {"templates": system.templates, "random_templates": system.random_templates}
    defaults = with_defaults(parts)
    return {
        key
        for key, value in defaults.items()
        if key not in parts and plain(getattr(system, key)) == plain(value)
    }


def _words(value: Any, name: Callable[[Distribution], Any]) -> Any:
    if isinstance(value, Distribution):
        return name(value)
    if isinstance(value, Record):
        fields = type(value).model_fields
        return {
            key: _words(item, name)
            for key, item in value.parts().items()
            if fields[key].is_required() or _differs(item, fields[key].default)
        }
    if isinstance(value, tuple):
        return [_words(item, name) for item in value]
    return plain(value)


def _differs(item: Any, default: Any) -> bool:
    return item is not None and not (type(item) is type(default) and item == default)


def numbered(count: int) -> tuple[str, ...]:
    """Return the numbers from 1 as names."""
    return tuple(str(number) for number in range(1, count + 1))


def slot_names(machine: str, slots: int) -> list[str]:
    """Return the names of the slots of a machine.

    >>> slot_names("big", 3), slot_names("small", 1)
    (['big/1', 'big/2', 'big/3'], ['small'])
    """
    return [machine] if slots == 1 else [f"{machine}/{k + 1}" for k in range(slots)]


def with_defaults(values: Any) -> Any:
    """Add the names, counts and availability that a description leaves out."""
    values = in_plural(values)
    if isinstance(values, dict) and "machines" in values:
        raise ValueError("unknown key machines; the columns of rates are named in groups")
    chains = chain_defaults(values) if isinstance(values, dict) else {}
    rows = {**chains, **values}.get("rates") if isinstance(values, dict) else None
    if not isinstance(rows, list | tuple) or not rows or not isinstance(rows[0], list | tuple):
        return values
    defaults = {
        "classes": numbered(len(rows)),
        "groups": numbered(len(rows[0])),
        "counts": (1,) * len(rows[0]),
        "availability": (1.0,) * len(rows[0]),
        **chains,
    }
    return {**defaults, **values}


def check_fit(system: System) -> None:
    """Raise if parts of a system contradict each other."""
    if system.rates.size == 0:
        raise ValueError("rates is empty; expected a row for each class, a column for each machine")
    check_chains(system)
    classes, columns = system.rates.shape
    _length("classes", system.classes, classes, "class")
    _length("groups", system.groups, columns, "column of rates")
    _length("counts", system.counts, columns, "column of rates")
    _length("slots", system.slots, columns, "column of rates")
    _length("costs", system.costs, classes, "class")
    _unique("classes", system.classes)
    _unique("groups", system.groups)
    if sum(system.sizes) > MOST_MACHINES:
        what = "counts" if sum(system.counts) > MOST_MACHINES else "slots"
        total = f"{sum(system.sizes):,}"
        raise ValueError(f"{what} add up to {total} machines; expected at most {MOST_MACHINES:,}")
    _unique("groups and counts give machines of which the name", system.machines)
    if system.mode is not CHAINS:  # no node needs to run a whole chain
        _everything_runs("rates", system.rates, system.classes)
    _arrivals_fit("arrivals", system.arrivals, system)
    _fits_machines("availability", system.availability, system)
    for key in ("execution", "interarrival"):
        _length(key, getattr(system, key), classes, "class")
    if system.failures is not None:
        for key, value in system.failures.parts().items():
            _length(f"[failures] {key}", value, columns, "column of rates")
    if system.delays is not None:
        for key, value in system.delays.parts().items():
            if isinstance(value, tuple):
                _fits_machines(f"[delays] {key}", value, system)
    if system.profile is not None and system.profile.factors.ndim > 1:
        _length("[profile] factors", tuple(system.profile.factors), classes, "class")
    _assumptions_fit(system)
    _batches_fit(system)


def _length(key: str, values: Any, expected: int, per: str) -> None:
    if isinstance(values, tuple) and len(values) != expected:
        raise ValueError(f"{key} has {len(values)} entries; expected {expected}, one per {per}")


def _unique(key: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"{key} has {twice!r} twice; expected names that differ")


def _everything_runs(key: str, rates: Any, classes: Sequence[str]) -> None:
    for number, row in enumerate(rates, start=1):
        if not row.any():
            raise ValueError(
                f"{key}, row {number} is all 0: no machine can run class {classes[number - 1]!r}; "
                "expected a rate > 0 somewhere"
            )
    for number, column in enumerate(rates.T, start=1):
        if not column.any():
            raise ValueError(
                f"{key}, column {number} is all 0: that machine can run no class; leave it out"
            )


def _arrivals_fit(key: str, arrivals: Any, system: System) -> None:
    classes, machines = system.shape
    _length(key, tuple(arrivals), classes, "row of rates")
    if arrivals.ndim == 1:
        return
    columns = arrivals.shape[1]
    if columns != machines:
        raise ValueError(f"{key} has {columns} columns; expected {machines}, one per machine")
    for row, rates in enumerate(arrivals, start=1):
        if not rates.any():
            raise ValueError(f"{key}, row {row} is all 0; expected a rate > 0 somewhere")


def _fits_machines(key: str, values: Sequence[Any], system: System) -> None:
    columns, machines = len(system.counts), sum(system.sizes)
    if len(values) not in (columns, machines):
        either = f"{columns}, one per column of rates"
        if machines != columns:
            either += f", or {machines}, one per machine"
        raise ValueError(f"{key} has {len(values)} entries; expected {either}")


def _assumptions_fit(system: System) -> None:
    assumed = system.assumed
    if assumed is None:
        return
    if system.follows_profile:
        _present_is_known(system)
    elif system.arrivals_window is not None:
        if assumed.inaccuracy.arrivals:
            raise ValueError(
                "[assumed] has arrivals that are measured and an inaccuracy of arrivals; expected "
                "one of them"
            )
    elif assumed.arrivals is not None:
        _length("[assumed] arrivals", assumed.arrivals, len(system.classes), "class")
    if assumed.rates is not None:
        if assumed.rates.shape != system.rates.shape:
            shapes = ["×".join(map(str, rates.shape)) for rates in (assumed.rates, system.rates)]
            raise ValueError(f"[assumed] rates is {shapes[0]}; expected {shapes[1]}, as rates")
        _everything_runs("[assumed] rates", assumed.rates, system.classes)
    if assumed.availability is not None:
        _fits_machines("[assumed] availability", assumed.availability, system)
    _length("[assumed] execution", assumed.execution, len(system.classes), "class")


def _present_is_known(system: System) -> None:
    """Refuse present arrival rates where there are none to know."""
    profile = system.profile
    if profile is None or profile.random:
        raise ValueError(
            "[assumed] arrivals is 'present'; expected a [profile] that is not random: its rates "
            "are those to know"
        )
    if not profile.factors.all():
        raise ValueError(
            "[assumed] arrivals is 'present', but [profile] factors has a 0; expected numbers > 0: "
            "a plan for a class that does not arrive would leave its tasks waiting"
        )


def _batches_fit(system: System) -> None:
    classes, columns = system.rates.shape
    if system.deadlines is not None:
        _length("[deadlines] allowance", system.deadlines.allowance, classes, "class")
    if system.pmf is None:
        return
    if system.pmf.times:
        _length("[pmf] times", system.pmf.times, classes, "class")
        for number, row in enumerate(system.pmf.times, start=1):
            _length(f"[pmf] times, row {number}", row, columns, "column of rates")
    if system.pmf.measured:
        _measurements_fit(system, system.pmf.measured)


def _measurements_fit(system: System, measured: dict[str, dict[str, Any]]) -> None:
    """Refuse unknown names, and pairs without a measured time."""
    for name, row in measured.items():
        if name not in system.classes:
            hint = did_you_mean(name, system.classes)
            raise ValueError(f"[pmf] measured: no class {name!r}{hint}")
        for group in row:
            if group not in system.groups:
                hint = did_you_mean(group, system.groups)
                raise ValueError(f"[pmf] measured: no machine or group {group!r}{hint}")
    for i, name in enumerate(system.classes):
        for j, group in enumerate(system.groups):
            if system.rates[i, j] > 0 and not measured.get(name, {}).get(group):
                raise ValueError(f"[pmf] measured: no time of class {name!r} on {group!r}")
