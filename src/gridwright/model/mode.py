"""The modes of a system: which parts of a system only one sort of policy understands.

A system has a core, which every policy understands, and the tables of at most one mode. Whether a
policy can run a system is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .batch import BatchTables
from .error import InputError

if TYPE_CHECKING:
    from .system import System


@dataclass(frozen=True, eq=False)
class Mode:
    """A way to run a system: who decides where work goes, and when."""

    name: str
    policies: str
    """Name the policies that run systems of this mode."""
    tables: Callable[[System], list[str]]
    """List the parts of a system that only this mode understands, as a system file names them."""
    missing: Callable[[System], str] = lambda system: ""
    """Say what a system lacks that this mode needs; empty if it lacks nothing."""


def mode_of(system: System) -> Mode:
    """Return the mode that the tables of a system are for; central if it has none."""
    return next((mode for mode in MODES if mode.tables(system)), CENTRAL)


def check(system: System, mode: Mode, asker: str) -> None:
    """Refuse a system with the tables of another mode, or without those that this mode needs.

    The asker says who wants to run the system: "mct is a push policy".
    """
    name = system.name or "the system"
    for other in MODES:
        if other is not mode and (found := other.tables(system)):
            raise InputError(f"{name} has {', '.join(found)}, for {other.policies} only; {asker}")
    if system.has_costs and mode in (BATCH, CHAINS):
        raise InputError(f"{name} has costs, for push, pull and decentralised policies; {asker}")
    if lack := mode.missing(system):
        raise InputError(f"{name} has no {lack}; {asker}")


def _batch_tables(system: System) -> list[str]:
    found = [f"[{key}]" for key in sorted(BatchTables.model_fields) if getattr(system, key)]
    if system.assumed is not None:
        fields = type(system.assumed).model_fields
        for key in ("execution", "scale", "shift"):
            if getattr(system.assumed, key) != fields[key].default:
                found.append(f"[assumed] {key}")
    return found


def _central_tables(system: System) -> list[str]:
    found = [f"[{key}]" for key in ("delays", "profile") if getattr(system, key)]
    return found + ["[assumed] arrivals that are measured"] * (system.arrivals_window is not None)


def _chain_tables(system: System) -> list[str]:
    has_chains = system.templates or system.random_templates
    return ["chains of applications (templates)"] if has_chains else []


def _decentralised_tables(system: System) -> list[str]:
    found = ["arrivals at machines (a matrix)"] if system.arrivals.ndim > 1 else []
    return found + (["rates that change ([changes])"] if system.changes else [])


def _no_matrix(system: System) -> str:
    if system.arrivals.ndim > 1:
        return ""
    return (
        "arrivals at machines; expected arrivals as a matrix, a row for each class, a column for "
        "each machine"
    )


def _no_chains(system: System) -> str:
    return "" if _chain_tables(system) else "chains of applications (templates)"


CENTRAL = Mode("central", "push and pull policies", _central_tables)
DECENTRALISED = Mode(
    "decentralised", "decentralised policies", _decentralised_tables, missing=_no_matrix
)
BATCH = Mode("batch", "batch policies", _batch_tables)
CHAINS = Mode("chains", "policies for chains", _chain_tables, missing=_no_chains)
MODES = (CENTRAL, CHAINS, DECENTRALISED, BATCH)
