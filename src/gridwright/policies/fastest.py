"""The planner of k-percent best: the machines that are fastest for each class."""

import numpy as np

from ..allocation import Situation
from ..model import InputError

__all__ = ["fastest", "mark_fastest"]

ALLOCATES_NOTHING = True  # mark_fastest; the planner is for Python


def fastest(situation: Situation, k: int = 2, percent: float = 0.0) -> np.ndarray:
    """Permit the k machines fastest for each class, or that percentage of them, rounded down.

    Only machines that are up and can run the class count; the lowest index wins a tie at the cut.
    """
    machines = situation.rates.shape[1]
    if percent:
        k = int(percent * machines / 100 + 1e-9)
    if not 1 <= k <= machines:
        given = f"percent={percent:g} gives k = {k}" if percent else f"k is {k:g}"
        raise InputError(f"kpb: {given}; expected from 1 to {machines}, the number of machines")
    plan = np.empty(situation.rates.shape)
    mark_fastest(situation, int(k), plan)
    return plan


def mark_fastest(situation: Situation, k: int, plan: np.ndarray) -> None:
    """Mark the k machines fastest for each class in a plan."""
    classes, machines = situation.rates.shape
    for i in range(classes):
        for j in range(machines):
            plan[i, j] = 0.0
        for _ in range(k):
            best, most = -1, 0.0
            for j in range(machines):
                rate = situation.rates[i, j] * situation.availability[j]
                if rate > most and plan[i, j] == 0.0:
                    best, most = j, rate
            if best >= 0:
                plan[i, best] = 1.0
