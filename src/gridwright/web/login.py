"""The login form: the token in exchange for a cookie, so that it never stands in an address."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from .guard import cookie_name

if TYPE_CHECKING:
    from .guard import Guard

__all__ = ["login_routes"]

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


def login_routes(guard: Guard) -> APIRouter:
    """Make the routes of the form."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    async def form() -> Response:
        return HTMLResponse(FORM.format(words=""), headers={"cache-control": "no-store"})

    @routes.post("/login")
    async def enter(request: Request) -> Response:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        if not guard.accepts(fields.get("token", [""])[0].strip()):
            return HTMLResponse(FORM.format(words="This is not the token."), status_code=401)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            cookie_name(request.scope), guard.session, httponly=True, samesite="strict"
        )
        return answer

    return routes
