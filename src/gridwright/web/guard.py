"""Check every request before the application sees it.

Every web site that a user visits can send requests to this computer. So the guard checks the host
name (a site could point its own name at this server) and refuses requests from pages of other
sites. Clients on other computers need the token. Running one's own code or using a cluster, which
may answer with code, needs the token on this computer too: other people may have accounts here.
"""

import socket
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..grid.messages import is_loopback

LARGEST = 2_000_000
"""Bytes that the body of a request may have."""
TRUSTED = "gridwright.trusted"
SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",  # with none, forms of our own come without an origin
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""The page compiles its own templates, so its scripts may be inline; nothing comes from outside."""


class Refusal(NamedTuple):
    """A status, and the reason."""

    status: int
    words: str


class Guard:
    """An ASGI application around another one, which listens on ``host``.

    With ``is_open``, as on loopback, only running code and using clusters need the token.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str = "127.0.0.1",
        token: str = "",
        largest: int = LARGEST,
        *,
        is_open: bool = False,
    ) -> None:
        self.app, self.largest = app, largest
        self._demanded = bool(token) and not is_open
        self.names = {"localhost", host.lower()}
        if not is_loopback(host):
            self.names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._token = token
        self.session = token_urlsafe(32)
        """The value of the login cookie, so that no cookie holds the token itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with a refusal."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        known, client = self._is_known(scope, headers), scope.get("client")
        scope[TRUSTED] = known and client is not None and is_loopback(client[0])
        refusal, answer = self._check(scope, headers, known), _with_headers(send)
        if refusal is not None:
            await refuse(refusal, scope, receive, answer)
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        else:
            body = _Body(receive, answer, self.largest)
            try:
                await self.app(scope, body.receive, body.send)
            except _TooLargeError:
                if not body.answered:
                    await refuse(self._too_large(), scope, receive, answer)
            except RuntimeError:  # Starlette tells that a browser left before the whole answer
                if not body.left:
                    raise

    def _check(self, scope: Scope, headers: dict[str, str], known: bool) -> Refusal | None:
        hosts = [value for key, value in scope["headers"] if key == b"host"]
        if len(hosts) != 1 or not self._is_ours(headers["host"]):
            return Refusal(400, "this server does not have that name")
        if _is_foreign(scope, headers):
            return Refusal(403, "pages of other sites may not send this request")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.largest:
            return self._too_large()
        if self._demanded and not known and scope["path"] != "/login":
            return Refusal(401, "the token is needed: it was printed when the server started")
        return None

    def _too_large(self) -> Refusal:
        return Refusal(413, f"a request has at most {self.largest:,} bytes")

    def _is_ours(self, host: str) -> bool:
        """Tell whether a host is this server: one of its names, or an address."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
            return name in self.names or ip_address(name).is_loopback or self._demanded
        except ValueError:
            return False

    def _is_known(self, scope: Scope, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.accepts(given.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and compare_digest(cookie.value.encode(), self.session.encode())

    def accepts(self, token: str) -> bool:
        """Tell whether this is the token."""
        return bool(self._token) and compare_digest(token.encode(), self._token.encode())


def cookie_name(scope: Scope) -> str:
    """Return the name of this server's cookie.

    A browser sends cookies to every port of a computer, so the name has the port in it.

    >>> cookie_name({"server": ("127.0.0.1", 8080)})
    'gridwright-8080'
    """
    server = scope.get("server")
    return f"gridwright-{server[1]}" if server and server[1] else "gridwright"


def may_run_code(request: Request) -> bool:
    """Tell whether a request comes from this computer, with the token."""
    return bool(request.scope.get(TRUSTED))


def _is_foreign(scope: Scope, headers: dict[str, str]) -> bool:
    """Tell whether a page of another site sends this request; only browsers say where from."""
    origin = headers.get("origin")
    if origin is not None:
        try:
            return urlsplit(origin).netloc.lower() != headers["host"].lower()
        except ValueError:
            return True
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return False
    followed = headers.get("sec-fetch-mode") == "navigate"  # a link to us, on some page
    to_page = scope["type"] == "http" and not scope["path"].startswith("/api/")
    return not (to_page and scope["method"] in SAFE and followed)


class _TooLargeError(Exception):
    """Raised when a body is larger than allowed."""


class _Body:
    """Count the bytes of a body as they come: a chunked request does not say how many it has."""

    def __init__(self, receive: Receive, send: Send, largest: int) -> None:
        self._receive, self._send, self._left = receive, send, largest
        self.answered = self.left = False

    async def receive(self) -> Message:
        message = await self._receive()
        self.left = self.left or message["type"] == "http.disconnect"
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _TooLargeError
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.answered = True
            if self._left < 0:  # whatever the application says of a body that it could not read
                message["status"] = 413
        await self._send(message)


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {key.lower() for key, _ in message.get("headers", ())}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return answer


async def refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or close a websocket that wants to open."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.words})
        return
    accept = dict(scope["headers"]).get(b"accept", b"")
    headers = {"cache-control": "no-store"}
    answer: Response
    if refusal.status == 401 and scope["method"] == "GET" and b"text/html" in accept:
        answer = RedirectResponse("/login", 303, headers)
    else:
        headers |= {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
        answer = JSONResponse({"detail": refusal.words}, refusal.status, headers)
    await answer(scope, receive, send)


FORM = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gridwright: log in</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
main {{ max-width: 26rem; margin: 15vh auto; padding: 0 1rem; }}
input, button {{ font: inherit; padding: .5rem; width: 100%; box-sizing: border-box; }}
button {{ margin-top: .75rem; }}
</style>
</head>
<body><main>
<h1>Gridwright</h1>
<form method="post" action="/login">
<p><label for="token">The token that was printed when the server started</label></p>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>
<p role="alert">{words}</p>
</main></body>
</html>
"""


def login_routes(guard: Guard) -> list[Route]:
    """Return the routes of the login form, which exchanges the token for a cookie."""

    async def show(request: Request) -> Response:
        return HTMLResponse(FORM.format(words=""), headers={"cache-control": "no-store"})

    async def enter(request: Request) -> Response:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        if not guard.accepts(fields.get("token", [""])[0].strip()):
            return HTMLResponse(FORM.format(words="This is not the token."), status_code=401)
        answer = RedirectResponse("/", status_code=303)
        name = cookie_name(request.scope)
        answer.set_cookie(name, guard.session, httponly=True, samesite="strict")
        return answer

    return [Route("/login", show), Route("/login", enter, methods=["POST"])]
