"""Guided-LPAS-2/k: ask two machines that are not ahead of their shares."""

from ..allocation import grouped
from .choice import sooner, two_within
from .registry import push
from .view import Pairs, View


@push(plan=grouped, informed=None)
def guided_lpas_2k(task_class: int, view: View, c: Pairs = 1.0) -> int:
    """Draw two machines that are not ahead of their share; send the task where it finishes first.

    A machine is ahead as in guided_lpas, with c as there. Source: Al-Azzoni 2009, section 2.4.
    """
    first, second = two_within(task_class, view, c)
    return sooner(task_class, view, first, second, 0)
