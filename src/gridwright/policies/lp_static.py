"""LP-Static: follow the routing of the allocation and ignore the state."""

from ..allocation import grouped
from .choice import drawn
from .registry import push
from .view import View


@push(plan=grouped, informed=0)
def lp_static(task_class: int, view: View) -> int:
    """Send tasks to machines at random, in the proportions of the allocation.

    Source: Al-Azzoni 2009, section 2.3.
    """
    return drawn(task_class, view, -1)
