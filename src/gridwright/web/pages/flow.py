"""The picture of a system in which tasks flow, for one policy or several beside each other."""

from typing import Any

from nicegui import ui

from ...model import System
from .charts import COLOURS


class Flow(ui.element, component="flow.js"):
    """Films of one system, each drawn on a canvas; the browser plays them at any speed."""

    def __init__(self) -> None:
        super().__init__()
        self.classes("w-full")
        self._props["scene"] = {"classes": [], "machines": [], "films": [], "end": 1}
        self._props["colours"] = list(COLOURS)

    def show(self, system: System, films: list[dict[str, Any]], end: float) -> None:
        """Show other films; they start from the beginning."""
        self._props["scene"] = {
            "classes": list(system.classes),
            "machines": list(system.machines),
            "films": films,
            "end": end,
        }
        self.update()
