"""An allocation as ``--json`` prints it and the web answers it."""

from typing import Any

from .allocation import Allocation, groups_of
from .verdict import verdict

__all__ = ["as_json", "kinds_of"]

MOST_KINDS = 8
"""Kinds of machines up to which the gain of one more is told for each."""
MOST_CELLS = 10_000
"""Pairs of a class and a kind of machine up to which it is told for more than one kind."""


def as_json(allocation: Allocation) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    said = verdict(allocation)
    return {
        "system": allocation.system.name,
        "capacity": allocation.capacity,
        "load": allocation.load,
        "method": allocation.method,
        "allocation": allocation.shares.tolist(),
        "routing": allocation.routing.tolist(),
        "classes": list(allocation.system.classes),
        "machines": list(allocation.system.machines),
        "down": [allocation.system.machines[j] for j in allocation.down],
        "left_out": list(allocation.left_out),
        "long_run_capacity": allocation.long_run_capacity,
        "stabilisable": said.stabilisable,
        "verdict": said.words,
        "class_prices": allocation.class_prices.tolist(),
        "machine_prices": allocation.machine_prices.tolist(),
        "efficiencies": allocation.efficiencies.tolist(),
        "loads": allocation.loads.tolist(),
        "one_more_adds": {
            allocation.system.machines[j]: allocation.gain(j) for j in kinds_of(allocation)
        },
        "bottleneck_classes": list(allocation.bottleneck_classes),
        "bottleneck_machines": list(allocation.bottleneck_machines),
        "information": {
            "lpas": {"machines": allocation.information(), "discount": allocation.discount()},
            "lpas_2k": {"machines": allocation.information(2), "discount": allocation.discount(2)},
        },
    }


def kinds_of(allocation: Allocation) -> list[int]:
    """Return the first machine of each kind; of many kinds, those with the highest prices.

    A gain takes a solution of its own, so a large system has that of one kind only.
    """
    if allocation.capacity <= 0:
        return []
    groups = groups_of(allocation.system.nominal).tolist()
    firsts = [groups.index(g) for g in range(max(groups) + 1)]
    if len(firsts) <= MOST_KINDS:
        return firsts
    dearest = sorted(firsts, key=lambda j: -allocation.machine_prices[j])
    large = len(allocation.system.classes) * len(firsts) > MOST_CELLS
    return sorted(dearest[: 1 if large else MOST_KINDS])
