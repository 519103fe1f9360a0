"""Simulations: started in the background, watched, stopped, read."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import Field

from ...reproduction import Section, explanations, read_page
from ..documents import plain
from ..guard import may_run_code
from ..pasted_policy import LONGEST_CODE
from ..simulations import Simulation, Simulations, Wanted
from ..tasks import MOST, Calibrating, Calibrator, Reruns
from .parts import FORBIDDEN, MISSING, WRONG, Body, Number, SystemGiven, missing

__all__ = [
    "calibration_routes",
    "published",
    "published_routes",
    "simulation_routes",
]


class Simulating(Body):
    """What is to be simulated."""

    system: SystemGiven
    policies: Annotated[tuple[str, ...], Field(max_length=20)] = ()
    code: Annotated[
        str,
        Field(
            max_length=LONGEST_CODE,
            description="Python code with further policies; only on this computer, with the token.",
        ),
    ] = ""
    horizon: Annotated[float, Field(gt=0, le=1e7)] | None = None
    replications: Annotated[int, Field(ge=1, le=1000)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    warmup: Annotated[float, Field(ge=0)] = 0.0


def simulation_routes(simulations: Simulations) -> APIRouter:
    """Make the routes of simulations."""
    routes = APIRouter(tags=["simulations"])

    def known(number: int) -> Simulation:
        found = simulations.find(number)
        if found is None:
            raise missing(f"simulation {number}")
        return found

    @routes.get("/simulations")
    def list_simulations() -> list[dict[str, Any]]:
        """List the simulations of this server, the latest first."""
        return [plain(each.progress()) for each in simulations.all()]

    @routes.post("/simulations", status_code=202, responses=FORBIDDEN)
    def start(given: Simulating, request: Request) -> dict[str, Any]:
        """Begin a simulation in the background."""
        if given.code.strip() and not may_run_code(request):
            raise HTTPException(403, "code runs only on this computer, for who shows the token")
        return plain(simulations.start(Wanted(**given.model_dump())).progress())

    @routes.get("/simulations/{number}", responses=MISSING)
    def progress(number: Number) -> dict[str, Any]:
        """Say how far a simulation is, with the intervals so far."""
        return plain(known(number).progress())

    @routes.post("/simulations/{number}/stop", responses=MISSING)
    def stop(number: Number) -> dict[str, Any]:
        """End a simulation early; what it has found stays."""
        found = known(number)
        simulations.stop(found)
        return plain(found.progress())

    @routes.get("/simulations/{number}/result", responses=MISSING)
    def result(number: Number) -> dict[str, Any]:
        """Return everything that was found, so far or in the end."""
        return plain(known(number).result())

    return routes


Name = Annotated[str, Field(min_length=1, max_length=200)]


class Asked(Body):
    """Which machines, how often each job runs, and the seconds of the longest, about."""

    machines: Annotated[list[Name], Field(min_length=1, max_length=MOST)]
    repeats: Annotated[int, Field(ge=1, le=20)] = 3
    longest: Annotated[float, Field(ge=0.01, le=2)] = 0.1


def calibration_routes(calibrator: Calibrator) -> APIRouter:
    """Make the routes of calibrations."""
    routes = APIRouter(tags=["machines"])

    def known(number: int) -> Calibrating:
        found = calibrator.find(number)
        if found is None:
            raise missing(f"calibration {number}")
        return found

    @routes.post("/calibrations", status_code=202, responses=WRONG)
    def start(given: Asked) -> dict[str, Any]:
        """Begin to measure machines, each a process of this computer; one calibration at a time."""
        made = calibrator.start(given.machines, repeats=given.repeats, longest=given.longest)
        return plain(made.as_json())

    @routes.get("/calibrations/{number}", responses=MISSING)
    def progress(number: Number) -> dict[str, Any]:
        """Say how far a calibration is, and what came of it."""
        return plain(known(number).as_json())

    @routes.post("/calibrations/{number}/stop", responses=MISSING)
    def stop(number: Number) -> dict[str, Any]:
        """End a calibration early."""
        found = known(number)
        found.stop()
        return plain(found.as_json())

    return routes


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
