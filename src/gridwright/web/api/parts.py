"""What the routes share: parts of requests, and answers that are not results."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import HTTPException, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from ...model.record import Mistake
from ..guard import may_run_code
from ..runs import CLUSTERS

Responses = dict[int | str, dict[str, Any]]
Number = Annotated[int, Path(ge=1, le=10**9)]
SystemGiven = Annotated[
    str | dict[str, Any],
    Field(description="A name of the catalogue, or the content of a system file, as an object."),
]
WRONG: Responses = {422: {"description": "The input is wrong; the detail is one line."}}
GUARDED: Responses = {
    400: {"description": "The body cannot be read, or the host name is not this server's."},
    401: {"description": "Requests from other computers need the token."},
    403: {"description": "A page of another site may not send this request."},
    413: {"description": "The body is too large."},
}
"""What the guard or the parser may answer to any request."""
BUSY: Responses = {
    **WRONG,
    503: {"description": "Too many requests of this kind are waiting; try again in a moment."},
}
FORBIDDEN: Responses = {
    **WRONG,
    403: {"description": "Only requests from this computer, with the token, may do this."},
}
MISSING: Responses = {**WRONG, 404: {"description": "There is nothing of that name or number."}}
CONTROLLED: Responses = {
    **MISSING,
    409: {"description": "The run is not running, or cannot do this now."},
    504: {"description": "The run did not answer in time."},
}


class Body(BaseModel):
    """The body of a request; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def missing(what: str) -> HTTPException:
    """Return the answer for something that does not exist."""
    return HTTPException(404, f"there is no {what}")


def check_cluster(request: Request) -> None:
    """Refuse a cluster, whose answers may be code, without the token."""
    if not may_run_code(request):
        raise HTTPException(403, CLUSTERS)


def check_code(request: Request, code: str) -> None:
    """Refuse code without the token."""
    if code.strip() and not may_run_code(request):
        raise HTTPException(403, "code runs only on this computer, with the token: use /login")


def listed(mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """Return the mistakes in a document as JSON."""
    found = [{"place": list(each.place), "words": each.words} for each in mistakes]
    return {"valid": not found, "mistakes": found}
