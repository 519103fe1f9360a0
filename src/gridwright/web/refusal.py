"""How the guard says no: to a script in JSON, to a person who opens a page with the login form."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

__all__ = ["Refusal", "refuse"]

Message = MutableMapping[str, Any]


class Refusal(NamedTuple):
    """A status, and why."""

    status: int
    words: str


async def refuse(
    refusal: Refusal,
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer a request, or a websocket that wants to open, with a refusal."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.words})
        return
    accept = dict(scope["headers"]).get(b"accept", b"")
    if refusal.status == 401 and scope["method"] == "GET" and b"text/html" in accept:
        await _answer(send, 303, b"", (b"location", b"/login"))
        return
    body = json.dumps({"detail": refusal.words}).encode()
    more = [(b"www-authenticate", b"Bearer")] if refusal.status == 401 else []
    await _answer(send, refusal.status, body, (b"content-type", b"application/json"), *more)


async def _answer(
    send: Callable[[Message], Awaitable[None]],
    status: int,
    body: bytes,
    *headers: tuple[bytes, bytes],
) -> None:
    length = (b"content-length", str(len(body)).encode())
    headers = (*headers, length, (b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
