"""``gridwright policies``: list the policies."""

from __future__ import annotations

from typing import Any

from .options import Json
from .output import console, finish, show
from .packages import policies as library


def policies(json: Json = False) -> None:
    """List the policies, their parameters and what they do."""
    order = list(library.KINDS)
    known = sorted(library.policies().values(), key=lambda each: order.index(each.kind.name))
    rows = [
        {
            "name": policy.name,
            "kind": policy.kind.name,
            "parameters": {k: library.policy.word(v) for k, v in policy.parameters.items()},
            "about": policy.doc,
        }
        for policy in known
    ]
    finish(lambda: rows, lambda: _show(rows), json=json)


def _show(policies: list[dict[str, Any]]) -> None:
    rows = []
    for each in policies:
        parameters = " ".join(f"{key}={value}" for key, value in each["parameters"].items())
        rows.append((each["name"], each["kind"], parameters, each["about"]))
    show(("policy", "kind", "parameters", "what it does"), rows)
    print()
    for kind in library.KINDS.values():
        console().print(f"{kind}: {kind.sentence}.")
