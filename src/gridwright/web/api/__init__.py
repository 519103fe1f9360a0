"""The REST API under /api, described by OpenAPI at /api/openapi.json."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from ... import __version__
from ...model import InputError
from ..desk import Desk
from ..solving import BusyError
from .calibrations import calibration_routes
from .experiments import experiment_routes
from .policies import policy_routes
from .published import published_routes
from .runs import run_routes
from .simulations import simulation_routes
from .systems import system_routes

__all__ = ["make_api"]


def make_api(desk: Desk | None = None) -> FastAPI:
    """Make the application that answers under /api."""
    desk = desk or Desk()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()  # else the process would wait for them to end

    api = FastAPI(
        lifespan=lifespan,
        title="Gridwright",
        version=__version__,
        description="Systems, simulations and runs on unequal machines.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual pages would load their scripts from elsewhere
        redoc_url=None,
    )

    @api.exception_handler(InputError)
    async def wrong_input(request: Request, error: InputError) -> JSONResponse:
        status = 503 if isinstance(error, BusyError) else 422
        return JSONResponse({"detail": str(error)}, status_code=status)

    for routes in (
        system_routes(),
        experiment_routes(),
        calibration_routes(desk.calibrator),
        policy_routes(),
        simulation_routes(desk.simulations),
        run_routes(desk.runs),
        published_routes(desk.reruns),
    ):
        api.include_router(routes, prefix="/api")

    @api.api_route(
        "/api/{rest:path}", methods=["GET", "POST", "PUT", "DELETE"], include_in_schema=False
    )
    async def unknown(rest: str) -> None:
        raise HTTPException(404, f"there is nothing at /api/{rest[:100]}")

    return api
