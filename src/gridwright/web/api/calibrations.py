"""Calibrations: started in the background, watched, stopped."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from ..answer import plain
from ..calibrating import MOST, Calibrating, Calibrator
from .parts import MISSING, WRONG, Body, Number, missing

__all__ = ["calibration_routes"]

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
