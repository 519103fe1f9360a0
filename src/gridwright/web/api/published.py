"""The published tables beside ours, as they were last reproduced."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ...reproduction import Section, explanations, read_page
from ..answer import plain
from ..reproducing import Reruns
from .parts import MISSING, Body, missing

__all__ = ["published", "published_routes"]


class Again(Body):
    """How a table is to be run again."""

    quick: bool = True


@cache
def published() -> tuple[str, dict[str, Section]]:
    """Return at which scale the tables were made, and the tables by name."""
    made, sections = read_page()
    return made, {section.name: section for section in sections}


def full_name(name: str) -> str:
    """Return a table's name in full; as on the command line, ``A:`` may be left out."""
    sections = published()[1]
    return name if name in sections or f"A:{name}" not in sections else f"A:{name}"


def published_routes(reruns: Reruns) -> APIRouter:
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
        found = published()[1].get(full_name(name))
        if found is None:
            raise missing("such table")
        return found.as_json()

    @routes.get("/published/{name}/reasons", responses=MISSING)
    def reasons(name: str, row: Annotated[int, Query(ge=0, le=10**6)] = 0) -> dict[str, Any]:
        """Say what is known of a cell of a table, by its row: an erratum, or why it differs."""
        name = full_name(name)
        found = published()[1].get(name)
        if found is None or row >= len(found.rows):
            raise missing("such cell")
        known = [each._asdict() for each in explanations(name, found.rows[row])]
        return {"row": found.rows[row]._asdict(), "reasons": known}

    @routes.post("/published/{name}/rerun", status_code=202, responses=MISSING)
    def run_again(name: str, given: Again) -> dict[str, Any]:
        """Run a table again in the background, on much shorter runs unless told otherwise."""
        return plain(reruns.start(full_name(name), quick=given.quick).as_json())

    @routes.get("/published/{name}/rerun", responses=MISSING)
    def how_far(name: str) -> dict[str, Any]:
        """Say how far a table is that is run again, and what came of it."""
        found = reruns.find(full_name(name))
        if found is None:
            raise missing("such table that was run again")
        return plain(found.as_json())

    @routes.post("/published/{name}/rerun/stop", responses=MISSING)
    def stop(name: str) -> dict[str, Any]:
        """End early what is run again."""
        found = reruns.find(full_name(name))
        if found is None:
            raise missing("such table that was run again")
        found.stop()
        return plain(found.as_json())

    return routes
