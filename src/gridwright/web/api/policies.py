"""The policies, with what a form needs to ask for their parameters."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from fastapi import APIRouter

from ...policies import Policy, policies
from ...policies.policy import CHOICES, word

__all__ = ["describe_policy", "policy_routes"]


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
