"""``gridwright policies``: what there is to choose from."""

from __future__ import annotations

from rich.markup import escape

from .options import Json
from .output import console, print_json, show, table

KINDS = {
    "push": "a task is sent to a machine when it arrives",
    "pull": "a machine that is idle takes a task",
    "peer": "there is no mapper: a task asks machines, and what it knows of them may be old",
    "batch": "tasks with deadlines are mapped together",
    "chain": "a job is a chain of applications",
}
"""When a policy decides, and about what."""


def policies(json: Json = False) -> None:
    """List the policies, their parameters and what they do."""
    from ..policies import policies as registered
    from ..policies.parameter import word

    known = sorted(registered().values(), key=lambda policy: list(KINDS).index(policy.kind))
    if json:
        print_json(
            [
                {
                    "name": policy.name,
                    "kind": policy.kind,
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
        rows.add_row(policy.name, policy.kind, escape(parameters), escape(policy.doc))
    show(out, rows)
    out.print("")
    for kind, words in KINDS.items():
        out.print(f"{kind}: {words}.")
