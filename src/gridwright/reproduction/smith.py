"""The batches of Smith et al.: the printed figures under every reading of the rules.

The text leaves open, or contradicts its own results in, four things: whether tasks whose deadline
has passed are discarded, the deadline's factor, whether the load of a task picked for a full
machine counts, and whether MOC goes by the probability of one task or of all that a machine holds.
The text's own reading answers the printed cells; every other one is labelled as fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..catalogue import Cell, results

__all__ = ["POLICIES", "other_readings"]

POLICIES = {"MECT": "mect", "MM": "mm", "MMU": "mmu", "MOC": "moc:joint=true", "MSD": "msd"}
"""As the text has them."""
DISCARDS = ("never", "batch", "both")
FACTORS = (1, 2)
OWN = {"MOC": ("joint", ("true", "false")), "MECT": ("", ("",))}
"""What is read in two ways of a policy, the text's way first; of the others what is full."""
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
            key, values = OWN.get(cell["policy"], ("full", ("leaves", "counts")))
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
