"""Systems: those of the catalogue, and one's own, checked and allocated."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from ...allocation import allocate
from ...catalogue import entries, find
from ...model import InputError
from ...policies import Policy, policies
from ...policies.policy import CHOICES, word
from ..documents import (
    LONGEST_TEXT,
    MOST_MACHINES,
    document_of,
    find_mistakes,
    plain,
    read_text,
    system_of,
)
from ..queue import solved
from .parts import BUSY, MISSING, Body, SystemGiven, missing


class Allocating(Body):
    """A system, and the machines that are switched off in it."""

    system: SystemGiven
    method: str = "grouped"
    down: Annotated[tuple[str, ...], Field(max_length=MOST_MACHINES)] = ()


class Text(Body):
    """The text of a system file, or a matrix of rates."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]


def system_routes() -> APIRouter:
    """Make the routes of systems."""
    routes = APIRouter(tags=["systems"])

    @routes.get("/systems")
    def list_systems() -> list[dict[str, Any]]:
        """List the catalogue."""
        return [
            {
                "name": each.name,
                "where": each.where,
                "shape": each.shape,
                "has_capacity": each.has_capacity,
            }
            for each in entries()
        ]

    @routes.get("/systems/{name}", responses=MISSING)
    def one_system(name: str) -> dict[str, Any]:
        """Show a system of the catalogue."""
        try:
            entry = find(name)
        except InputError as error:
            raise missing(f"such system: {error}") from None
        document = None if entry.parts is None else document_of(entry.system)
        return {
            "name": entry.name,
            "where": entry.where,
            "note": entry.note,
            "horizon": entry.horizon,
            "down": list(entry.down),
            "document": plain(document),
            "toml": None if entry.parts is None else entry.system.to_toml(),
        }

    @routes.post("/systems/validate", responses=BUSY)
    async def validate(document: dict[str, Any]) -> dict[str, Any]:
        """Check what a system file would say; mistakes are told place by place."""
        found = await solved(lambda: find_mistakes(document))
        return {
            "valid": not found,
            "mistakes": [{"place": list(each.place), "words": each.words} for each in found],
        }

    @routes.post("/systems/read", responses=BUSY)
    async def read(given: Text) -> dict[str, Any]:
        """Turn the text of a system file, or of a matrix of rates, into a document."""
        return await solved(lambda: {"document": plain(read_text(given.text))})

    @routes.post("/systems/toml", responses=BUSY)
    async def to_toml(document: dict[str, Any]) -> dict[str, str]:
        """Write a document as a system file."""
        return await solved(lambda: {"toml": system_of(document).to_toml()})

    @routes.post("/systems/allocate", responses=BUSY)
    async def solve(given: Allocating) -> dict[str, Any]:
        """Solve the allocation, and say what changes with machines that are switched off."""
        return await solved(lambda: _allocation(given))

    return routes


def _allocation(given: Allocating) -> dict[str, Any]:
    system = system_of(given.system)
    found = allocate(system, given.method, down=given.down)
    answer = found.as_json()
    if given.down:
        answer["change"] = allocate(system, given.method).change(found)._asdict()
    return plain(answer)


def policy_routes() -> APIRouter:
    """Make the routes of policies."""
    routes = APIRouter(tags=["policies"])

    @routes.get("/policies")
    def list_policies() -> list[dict[str, Any]]:
        """List the policies that are shipped."""
        return [describe_policy(each) for each in policies().values() if each.is_shipped]

    return routes


def describe_policy(policy: Policy) -> dict[str, Any]:
    """Say what a policy is and which parameters it takes."""
    parameters = [_parameter(key, value) for key, value in policy.parameters.items()]
    return {
        "name": policy.name,
        "kind": policy.kind.name,
        "about": policy.doc,
        "parameters": parameters,
    }


def _parameter(key: str, value: Any) -> dict[str, Any]:
    choices: list[str] = []
    if key in CHOICES:
        kind, choices = "choice", sorted(CHOICES[key])
    elif isinstance(value, IntEnum):
        kind, choices = "choice", list(type(value).__members__)
    elif isinstance(value, bool):
        kind = "boolean"
    elif isinstance(value, int):
        kind = "integer"
    else:
        kind = "number" if isinstance(value, float) else "text"
    return {"name": key, "kind": kind, "default": word(value), "choices": choices}
