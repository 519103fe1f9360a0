"""The REST API under /api, described by OpenAPI at /api/openapi.json."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ...model import GridTimeoutError, GridwrightError, InputError
from ..documents import plain
from ..queue import BusyError
from ..services import Services
from .background import calibration_routes, published_routes, simulation_routes
from .experiments import experiment_routes
from .parts import GUARDED
from .runs import run_routes
from .systems import policy_routes, system_routes

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}


def make_api(services: Services | None = None) -> FastAPI:
    """Make the application that answers under /api."""
    services = services or Services()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        services.queue.close()  # else the process would wait for them to end

    api = FastAPI(
        lifespan=lifespan,
        title="Gridwright",
        version=version("gridwright"),
        description="Systems, simulations and runs on unequal machines.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual pages would load their scripts from elsewhere
        redoc_url=None,
        responses=GUARDED,
    )

    @api.exception_handler(GridwrightError)
    async def explained(request: Request, error: GridwrightError) -> JSONResponse:
        kinds = {BusyError: 503, InputError: 422, GridTimeoutError: 504, GridwrightError: 409}
        status = next(status for kind, status in kinds.items() if isinstance(error, kind))
        return JSONResponse({"detail": str(error)}, status_code=status)

    @api.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> JSONResponse:
        """Answer as usual; what was given may be no number of JSON."""
        return JSONResponse({"detail": plain(jsonable_encoder(error.errors()))}, status_code=422)

    all_routes = (
        system_routes(),
        experiment_routes(),
        calibration_routes(services.queue),
        policy_routes(),
        simulation_routes(services.queue),
        run_routes(services),
        published_routes(services.queue),
    )
    for routes in all_routes:
        api.include_router(routes, prefix="/api")
    found = [route for routes in all_routes for route in routes.routes]
    unknown = _Unknown([route for route in found if isinstance(route, Route)])
    api.router.routes[:0] = unknown.before()
    api.router.routes.append(Route("/api/{rest:path}", unknown, include_in_schema=False))
    return api


class _Unknown:
    """Answer what no route does: 405 if one has that path, else 404. Pages come after it."""

    def __init__(self, routes: list[Route]) -> None:
        self._routes = routes

    def before(self) -> list[Route]:
        """Make routes for the other methods of plain paths: /systems/read is no /systems/{name}."""
        plain = sorted({route.path for route in self._routes if "{" not in route.path})
        return [
            Route(f"/api{path}", self, methods=METHODS - set(self._allowed(path))) for path in plain
        ]

    def _allowed(self, path: str) -> list[str]:
        same = [route for route in self._routes if route.path == path]
        found = same or [route for route in self._routes if route.path_regex.match(path)]
        return sorted({method for route in found for method in route.methods or ()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        allowed = self._allowed(scope["path"].removeprefix("/api"))
        if allowed:
            words, status = f"{scope['method'][:20]} is not one of {', '.join(allowed)}", 405
        else:
            words, status = f"there is nothing at {scope['path'][:100]}", 404
        headers = {"allow": ", ".join(allowed)} if allowed else None
        answer = JSONResponse({"detail": words}, status_code=status, headers=headers)
        await answer(scope, receive, send)
