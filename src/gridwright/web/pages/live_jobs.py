"""The jobs of a run: a page of them at a time, found by the database."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui
from nicegui import run as background

from ...grid import JobPage, job_page
from ..running import open_journal
from .frame import figure

__all__ = ["Jobs", "columns_of"]

COLUMNS = {
    "number": "id",
    "attempt": "attempt",
    "class": "class",
    "machine": "machine",
    "submitted": "submitted",
    "sent": "sent",
    "started": "started",
    "ended": "done",
    "stage": "status",
    "timed_out": "timed out",
    "lost": "lost",
    "error": "error",
}
STAGES = ("", "waiting", "queued", "sent", "finished", "failed", "cancelled")
TIMES = ("submitted", "sent", "started", "ended")


class Jobs:
    """A table of jobs that is filtered, sorted and turned over by the database."""

    def __init__(self, number: int) -> None:
        self.number = number
        ui.label("Jobs").props("role=heading aria-level=2")
        with ui.row().classes("gap-2"):
            self.stage = ui.select(
                {each: each or "every status" for each in STAGES}, value="", label="Status"
            ).classes("w-40")
            self.machine = ui.input("Machine").props("dense debounce=250 clearable")
            self.task_class = ui.input("Class").props("dense debounce=250 clearable")
        columns = [{**each, "sortable": True} for each in columns_of(COLUMNS)]
        self.table = ui.table(
            columns=columns,
            rows=[],
            row_key="number",
            pagination={"rowsPerPage": 10, "page": 1, "rowsNumber": 0, "sortBy": "number"},
        ).classes("w-full")
        self.table.props('flat dense no-data-label="No job is like that yet."')
        self.table.on("request", self._turn)
        for field in (self.stage, self.machine, self.task_class):
            field.on_value_change(self._first)

    async def _turn(self, event: events.GenericEventArguments) -> None:
        """Show another page of jobs, or another order."""
        wanted = event.args["pagination"]
        kept = {key: wanted.get(key) for key in ("page", "rowsPerPage", "sortBy", "descending")}
        self.table.pagination = {**self.table.pagination, **kept}
        await self.show()

    async def _first(self) -> None:
        self.table.pagination = {**self.table.pagination, "page": 1}
        await self.show()

    async def show(self) -> None:
        """Show the page that is wanted, as it is now."""
        turned = self.table.pagination
        size = turned.get("rowsPerPage") or 100
        fields = {"stage": self.stage, "machine": self.machine, "class": self.task_class}
        filters = {key: str(field.value or "") for key, field in fields.items()}

        def look() -> JobPage:
            with open_journal(self.number) as journal:
                return job_page(
                    journal,
                    offset=(turned.get("page", 1) - 1) * size,
                    limit=size,
                    sort=turned.get("sortBy") or "number",
                    descending=bool(turned.get("descending")),
                    **filters,
                )

        page = await background.io_bound(look)
        if page is None or turned is not self.table.pagination:
            return  # another page was asked for meanwhile
        rows = [{**job, **{key: figure(job[key], ".3f") for key in TIMES}} for job in page.jobs]
        if self.table.rows != rows:
            self.table.rows = rows
        if turned.get("rowsNumber") != page.total:
            self.table.pagination = {**turned, "rowsNumber": page.total}


def columns_of(labels: dict[str, str]) -> list[dict[str, Any]]:
    """Say how the columns of a table are called."""
    return [
        {"name": name, "label": label, "field": name, "align": "left"}
        for name, label in labels.items()
    ]
