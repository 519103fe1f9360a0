"""The published tables beside ours, as they were last reproduced."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter

from ...reproduction import Section, read_page
from .parts import MISSING, missing

__all__ = ["published", "published_routes"]


@cache
def published() -> tuple[str, dict[str, Section]]:
    """Return at which scale the tables were made, and the tables by name."""
    made, sections = read_page()
    return made, {section.name: section for section in sections}


def published_routes() -> APIRouter:
    """Make the routes of the published tables."""
    routes = APIRouter(tags=["published"])

    @routes.get("/published")
    def list_tables() -> dict[str, Any]:
        """List the tables with a count of the verdicts."""
        made, sections = published()
        tables = [
            {"name": each.name, "about": each.about, "summary": each.summary()}
            for each in sections.values()
        ]
        return {"made": made, "tables": tables}

    @routes.get("/published/{name}", responses=MISSING)
    def one_table(name: str) -> dict[str, Any]:
        """Show a table: every printed cell beside ours, with the verdict."""
        found = published()[1].get(name)
        if found is None:
            raise missing("such table")
        return found.as_json()

    return routes
