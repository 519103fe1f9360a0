"""When which machine ran which class, had failed, or was in the hands of an operator."""

from collections.abc import Sequence

from nicegui import ui

from ..dashboard import Span
from .charts import COLOURS

STYLE = """
.gw-legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding-bottom: .4rem; }
.gw-gantt { width: 100%; max-height: 26rem; overflow: auto; }
.gw-gantt canvas { display: block; }
.gw-key { display: inline-block; width: 14px; height: 12px; vertical-align: -1px; }
"""


class Gantt(ui.element, component="gantt.js"):
    """A strip for each machine: one element of the page, however many there are."""

    def __init__(self, label: str) -> None:
        super().__init__()
        ui.add_css(STYLE)
        self._props["label"] = label
        self._props["colours"] = list(COLOURS)
        self._props["found"] = {"machines": [], "classes": [], "since": 0, "now": 1, "spans": []}
        self.classes("w-full")

    def show(
        self,
        machines: Sequence[str],
        classes: Sequence[str],
        spans: Sequence[Span],
        since: float,
        now: float,
    ) -> None:
        """Show what machines did between two times."""
        self._props["found"] = {
            "machines": list(machines),
            "classes": list(classes),
            "since": since,
            "now": now,
            "spans": [[*each[:4], int(each.lost)] for each in spans],
        }
        self.update()
