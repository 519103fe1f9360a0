"""Simulations: started in the background, watched, stopped, read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request
from pydantic import Field

from ..answer import plain
from ..guard import may_run_code
from ..pasted import LONGEST_CODE
from ..simulating import Simulation, Wanted
from ..simulations import Simulations
from .parts import FORBIDDEN, MISSING, Body, Number, SystemGiven, missing

__all__ = ["simulation_routes"]


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
