"""Simulations: started in the background, watched, stopped, read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from ..answer import plain
from ..simulating import Simulation, Simulations, Wanted
from .parts import MISSING, WRONG, Body, Number, SystemGiven, missing

__all__ = ["simulation_routes"]


class Simulating(Body):
    """What is to be simulated."""

    system: SystemGiven
    policies: Annotated[list[str], Field(min_length=1, max_length=20)]
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

    @routes.post("/simulations", status_code=202, responses=WRONG)
    def start(given: Simulating) -> dict[str, Any]:
        """Begin a simulation in the background."""
        return plain(simulations.start(Wanted(**given.model_dump())).progress())

    @routes.get("/simulations/{number}", responses=MISSING)
    def progress(number: Number) -> dict[str, Any]:
        """Say how far a simulation is, with the intervals so far."""
        return plain(known(number).progress())

    @routes.post("/simulations/{number}/stop", responses=MISSING)
    def stop(number: Number) -> dict[str, Any]:
        """End a simulation early; what it has found stays."""
        found = known(number)
        found.stop()
        return plain(found.progress())

    @routes.get("/simulations/{number}/result", responses=MISSING)
    def result(number: Number) -> dict[str, Any]:
        """Return everything that was found, so far or in the end."""
        return plain(known(number).result())

    return routes
