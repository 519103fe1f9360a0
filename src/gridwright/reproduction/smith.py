"""The batches of Smith et al.: the printed figures under every reading of the rules.

The text leaves open, or contradicts its own results in, four things: whether tasks whose deadline
has passed are discarded, the deadline's factor, whether the load of a task picked for a full
machine counts, and whether MOC goes by the probability of one task or of all that a machine holds.
The text's own reading answers the printed cells; every other one is labelled as fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf

from ..catalogue import Cell, results

__all__ = ["POLICIES", "best_reading", "other_readings"]

POLICIES = {"MECT": "mect", "MM": "mm", "MMU": "mmu", "MOC": "moc:joint=true", "MSD": "msd"}
"""As the text has them."""
DISCARDS = ("never", "batch", "both")
FACTORS = (1, 2)
FULL, JOINT = ("full", ("leaves", "counts")), ("joint", ("true", "false"))
"""What is read in two ways, the text's way first."""
OWN = {"MOC": JOINT, "MECT": ("", ("",))}
"""What of it concerns a policy; the others are concerned by what is full."""
WORDS = {
    "leaves": "full: leaves",
    "counts": "full: load counts",
    "true": "joint",
    "false": "marginal",
}


def other_readings(name: str) -> Iterator[Cell]:
    """Give every printed cell of Figure 1 once more, for each reading but the text's."""
    if name != "S:Figure 1":
        return
    for discard, factor in product(DISCARDS, FACTORS):
        for cell in results(src="S", table="Figure 1"):
            key, values = OWN.get(cell["policy"], FULL)
            for value in values:
                is_text = (discard, factor, value) == ("never", 1, values[0])
                if is_text or (cell["policy"] == "MECT" and discard != "never"):
                    continue  # what is never discarded is the same under every rule
                words = [f"discard {discard}", f"factor {factor}", WORDS.get(value, "")]
                yield {
                    **cell,
                    "variant": ", ".join(filter(None, words)) + " (fitted)",
                    "settings": {key: value} if key else {},
                    "changes": {"deadlines": {"factor": factor, "discard": discard}},
                }


def best_reading(cells: Sequence[Cell], off: Sequence[float]) -> list[int]:
    """Return the cells of that one reading of all rules that is off least in all, by number."""
    found: list[int] = []
    least, policies = inf, len({cell["policy"] for cell in cells})
    for discard, factor, full, joint in product(DISCARDS, FACTORS, FULL[1], JOINT[1]):
        wanted = [k for k, cell in enumerate(cells) if _is_read(cell, discard, factor, full, joint)]
        total = sum(off[k] for k in wanted)
        if len(wanted) == policies and total < least:
            found, least = wanted, total
    return found


def _is_read(cell: Cell, discard: str, factor: int, full: str, joint: str) -> bool:
    """Tell whether a cell is read in a way; MECT, which discards nothing, is under every rule."""
    rule = cell.get("changes", {"deadlines": {"factor": 1, "discard": "never"}})["deadlines"]
    if cell["policy"] == "MECT":
        return bool(rule["factor"] == factor)
    text = {"joint": "true"} if cell["policy"] == "MOC" else {"full": "leaves"}
    own = {"full": full, "joint": joint, **cell.get("settings", text)}
    ways = (rule["discard"], rule["factor"], own["full"], own["joint"])
    return ways == (discard, factor, full, joint)
