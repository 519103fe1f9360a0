"""Price affinity that commits late."""

from ..allocation import tolls
from .registry import pull
from .sharing_out import own_share
from .view import View


@pull(plan=tolls, idle="every", memory=("2 classes", "machines"))
def pas_late(machine: int, view: View) -> int:
    """Share out all that waits as if it were sent now; begin what loses most by waiting.

    Source: Gridwright, price affinity.
    """
    return own_share(machine, view)
