"""What the routes have in common: parts of requests, and answers for what is not there."""

from typing import Annotated, Any

from fastapi import HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[int, Path(ge=1, le=10**9)]
SystemGiven = Annotated[
    str | dict[str, Any],
    Field(description="A name of the catalogue, or what a system file would say, as an object."),
]
WRONG: dict[int | str, dict[str, Any]] = {422: {"description": "Wrong input, in one line."}}
GUARDED: dict[int | str, dict[str, Any]] = {
    400: {"description": "A body that cannot be read, or a name that is not this server's."},
    401: {"description": "Beyond this computer the token is needed."},
    403: {"description": "A page of another site may not ask this."},
    413: {"description": "The body is too large."},
}
"""What the guard or the parser may answer to any request."""
BUSY: dict[int | str, dict[str, Any]] = {
    **WRONG,
    503: {"description": "Too many requests of this kind are waiting; try again in a moment."},
}
FORBIDDEN: dict[int | str, dict[str, Any]] = {
    **WRONG,
    403: {"description": "Only on this computer, for who shows the token."},
}
MISSING: dict[int | str, dict[str, Any]] = {**WRONG, 404: {"description": "There is none."}}
CONTROLLED: dict[int | str, dict[str, Any]] = {
    **MISSING,
    409: {"description": "The run is not running, or cannot do this now."},
    504: {"description": "The run did not answer in time."},
}


class Body(BaseModel):
    """The body of a request; a key that nobody knows is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def missing(what: str) -> HTTPException:
    """Say that something is not there."""
    return HTTPException(404, f"there is no {what}")
