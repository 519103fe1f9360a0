"""K-percent best."""

import numpy as np

from ..allocation import Situation
from ..model import InputError
from .choice import Tie, least_completion
from .contract import push
from .view import View


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
    rates = situation.rates * situation.availability
    order = np.argsort(-rates, axis=1, kind="stable")[:, : int(k)]
    plan = np.zeros(rates.shape)
    np.put_along_axis(plan, order, 1.0, axis=1)
    return plan * (rates > 0)


@push(plan=fastest)
def kpb(task_class: int, view: View, tie: Tie = Tie.lowest) -> int:
    """Least expected completion time among the k machines fastest for the class.

    Source: Maheswaran et al. 1999.
    """
    return least_completion(task_class, view, tie)
