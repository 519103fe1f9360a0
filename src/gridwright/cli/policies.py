"""``gridwright policies``: list the policies."""

from __future__ import annotations

from rich.markup import escape

from .options import Json
from .output import console, print_json, show, table


def policies(json: Json = False) -> None:
    """List the policies, their parameters and what they do."""
    from ..policies import KINDS
    from ..policies import policies as registered
    from ..policies.policy import word

    order = list(KINDS)
    known = sorted(registered().values(), key=lambda policy: order.index(policy.kind.name))
    if json:
        print_json(
            [
                {
                    "name": policy.name,
                    "kind": policy.kind.name,
                    "parameters": {k: word(v) for k, v in policy.parameters.items()},
                    "about": policy.doc,
                }
                for policy in known
            ]
        )
        return
    out = console()
    rows = table("policy", "kind", "parameters", "what it does")
    for policy in known:
        parameters = " ".join(f"{k}={word(v)}" for k, v in policy.parameters.items())
        rows.add_row(policy.name, policy.kind.name, escape(parameters), escape(policy.doc))
    show(out, rows)
    out.print("")
    for kind in KINDS.values():
        out.print(f"{kind}: {kind.sentence}.")
