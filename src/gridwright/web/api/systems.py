"""Systems of the catalogue and of the user: show, check and allocate them; the policies."""

from enum import IntEnum
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from ...allocation import allocate
from ...catalogue import entries, find
from ...model import InputError
from ...policies import Policy, policies
from ...policies.policy import CHOICES, word
from .. import documents
from ..documents import plain
from ..pasted_table import LONGEST_TEXT
from ..queue import solved
from .parts import BUSY, MISSING, Body, SystemGiven, listed, missing


class Allocating(Body):
    """A system, and its machines that are switched off."""

    system: SystemGiven
    method: str = "grouped"
    down: Annotated[tuple[str, ...], Field(max_length=documents.MOST_MACHINES)] = ()


class Text(Body):
    """The text of a system file, or a matrix of rates."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]


def system_routes() -> APIRouter:
    """Make the routes of systems."""
    routes = APIRouter(tags=["systems"])

    @routes.get("/systems")
    def list_systems() -> list[dict[str, Any]]:
        """List the catalogue."""
        keys = ("name", "where", "shape", "has_capacity")
        return [{key: getattr(each, key) for key in keys} for each in entries()]

    @routes.get("/systems/{name}", responses=MISSING)
    def one_system(name: str) -> dict[str, Any]:
        """Show a system of the catalogue."""
        try:
            entry = find(name)
        except InputError as error:
            raise missing(f"such system: {error}") from None
        about = {key: getattr(entry, key) for key in ("name", "where", "note", "horizon", "down")}
        document = toml = None
        if entry.parts is not None:
            document, toml = documents.document_of(entry.system), entry.system.to_toml()
        return plain({**about, "document": document, "toml": toml})

    @routes.post("/systems/validate", responses=BUSY)
    async def validate(document: dict[str, Any]) -> dict[str, Any]:
        """Check a system document; return its mistakes, each with its place."""
        return listed(await solved(lambda: documents.find_mistakes(document)))

    @routes.post("/systems/read", responses=BUSY)
    async def read(given: Text) -> dict[str, Any]:
        """Turn the text of a system file, or of a matrix of rates, into a document."""
        return await solved(lambda: {"document": plain(documents.read_text(given.text))})

    @routes.post("/systems/toml", responses=BUSY)
    async def to_toml(document: dict[str, Any]) -> dict[str, str]:
        """Write a document as a system file."""
        return await solved(lambda: {"toml": documents.system_of(document).to_toml()})

    @routes.post("/systems/allocate", responses=BUSY)
    async def solve(given: Allocating) -> dict[str, Any]:
        """Solve the allocation, and say what changes with machines that are switched off."""
        return await solved(lambda: _allocation(given))

    return routes


def _allocation(given: Allocating) -> dict[str, Any]:
    system = documents.system_of(given.system)
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
    """Return name, kind, description and parameters of a policy."""
    parameters = [_parameter(key, value) for key, value in policy.parameters.items()]
    about = {"name": policy.name, "kind": policy.kind.name, "about": policy.doc}
    return {**about, "parameters": parameters}


def _parameter(key: str, value: Any) -> dict[str, Any]:
    choices = sorted(CHOICES.get(key, ()))
    if isinstance(value, IntEnum) and key not in CHOICES:
        choices = list(type(value).__members__)
    kinds = {bool: "boolean", int: "integer", float: "number"}
    kind = "choice" if choices else kinds.get(type(value), "text")
    return {"name": key, "kind": kind, "default": word(value), "choices": choices}
