"""Who gets in: names, other sites, the token, and how much may be sent."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from gridwright.web.guard import HEADERS, Guard
from gridwright.web.server import guarded

TOKEN = "a-token-for-the-tests"
COOKIE = "gridwright-8080"
LARGEST = 5_000


def ask(
    method: str = "GET",
    path: str = "/api/openapi.json",
    *,
    base: str = "http://127.0.0.1:8080",
    token: str = "",
    host: str = "127.0.0.1",
    **more: Any,
) -> httpx.Response:
    async def go() -> httpx.Response:
        app = guarded(host, token, pages=False, largest=LARGEST)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, **more)

    return anyio.run(go)


@pytest.mark.parametrize(
    "name", ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:8080", "127.9.9.9"]
)
def test_names_of_this_computer(name: str) -> None:
    assert ask(headers={"host": name}).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.7",
        "",
        "[",
        "x@y",
    ],
)
def test_other_names_are_refused_everywhere(name: str) -> None:
    """A site that points its own name at us gets nothing (DNS rebinding)."""
    for path in ("/", "/api/openapi.json", "/login", "/_nicegui_ws/socket.io/"):
        answer = ask(path=path, headers={"host": name})
        assert answer.status_code == 400
        assert "does not have that name" in answer.json()["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_other_sites_are_refused(headers: dict[str, str]) -> None:
    answer = ask("POST", "/api/systems/validate", headers=headers, json={})
    assert answer.status_code == 403
    assert ask(headers=headers).status_code == 403
    followed = "navigate" in headers.values()  # a link to a page of ours
    assert ask(path="/login", headers=headers).status_code == (200 if followed else 403)


def test_our_own_page_is_not_another_site() -> None:
    ours = {"origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"}
    assert ask("POST", "/api/nothing", headers=ours, json={}).status_code == 404


def test_every_answer_has_the_headers() -> None:
    for answer in (ask(), ask(headers={"host": "evil.example"}), ask("POST", "/api/nothing")):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


def test_without_the_token_nobody_gets_in() -> None:
    for path in ("/api/openapi.json", "/api/runs", "/", "/_nicegui_ws/socket.io/", "/nothing"):
        assert ask(path=path, token=TOKEN, host="0.0.0.0").status_code == 401
    wrong = [
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer"},
        {"cookie": f"{COOKIE}={TOKEN}"},
        {"cookie": f"{COOKIE}="},
        {"cookie": "=;;;\x7f"},
    ]
    for headers in wrong:
        assert ask(token=TOKEN, headers=headers).status_code == 401
    assert ask(path=f"/api/openapi.json?token={TOKEN}", token=TOKEN).status_code == 401
    assert ask("POST", "/login", token=TOKEN, data={"token": "wrong"}).status_code == 401


def test_the_token_is_exchanged_for_a_cookie() -> None:
    async def go() -> None:
        transport = httpx.ASGITransport(guarded("0.0.0.0", TOKEN, pages=False))
        async with httpx.AsyncClient(transport=transport, base_url="http://10.1.2.3:81") as client:
            sent = await client.get("/", headers={"accept": "text/html"})
            assert (sent.status_code, sent.headers["location"]) == (303, "/login")
            form = await client.get("/login")
            assert form.status_code == 200
            assert 'type="password"' in form.text
            entered = await client.post("/login", data={"token": f" {TOKEN} "})
            assert (entered.status_code, entered.headers["location"]) == (303, "/")
            kept = entered.headers["set-cookie"]
            assert TOKEN not in kept
            assert "HttpOnly" in kept
            assert "SameSite=strict" in kept
            assert kept.startswith("gridwright-81=")  # browsers mix up the ports of a computer
            assert (await client.get("/api/openapi.json")).status_code == 200
        async with httpx.AsyncClient(transport=transport, base_url="http://10.1.2.3:81") as client:
            shown = {"authorization": f"Bearer {TOKEN}"}
            assert (await client.get("/api/openapi.json", headers=shown)).status_code == 200

    anyio.run(go)


def test_a_cookie_opens_one_server_only() -> None:
    async def go() -> None:
        first, second = (guarded("0.0.0.0", TOKEN, pages=False) for _ in range(2))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(first), base_url="http://127.0.0.1:8080"
        ) as client:
            await client.post("/login", data={"token": TOKEN})
            assert (await client.get("/api/systems/2.B")).status_code == 200
            given = dict(client.cookies)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(second), base_url="http://127.0.0.1:8081", cookies=given
        ) as client:
            assert (await client.get("/api/systems/2.B")).status_code == 401
            await client.post("/login", data={"token": TOKEN})
            assert sorted(client.cookies) == ["gridwright-8080", "gridwright-8081"]
            assert client.cookies["gridwright-8080"] == given["gridwright-8080"]

    anyio.run(go)


def test_the_login_form_repeats_nothing() -> None:
    script = "<script>alert(1)</script>"
    assert script not in ask("POST", "/login", token=TOKEN, data={"token": script}).text


def test_too_much_is_refused_announced_or_not() -> None:
    assert ask("POST", "/login", content=b"x" * (LARGEST + 1)).status_code == 413

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 1000

    for path in ("/login", "/api/systems/validate"):
        answer = ask("POST", path, content=pieces(), headers={"content-type": "application/json"})
        assert answer.status_code in (404, 413)
    assert ask("POST", "/login", content=pieces()).status_code == 413
    assert ask("POST", "/login", headers={"content-length": "-1"}).status_code == 413


def test_websockets_of_other_sites_are_closed() -> None:
    said = []

    async def go(origin: bytes) -> None:
        scope = {
            "type": "websocket",
            "path": "/_nicegui_ws/socket.io/",
            "headers": [(b"host", b"127.0.0.1:8080"), (b"origin", origin)],
        }

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            said.append(message["type"])

        async def inside(*_: Any) -> None:
            said.append("let in")

        guard = guarded(pages=False)
        guard.app = inside
        await guard(scope, receive, send)

    anyio.run(go, b"http://evil.example")
    anyio.run(go, b"http://127.0.0.1:8080")
    assert said == ["websocket.close", "let in"]


def test_a_folder_that_is_not_there_and_a_port_that_is_taken(tmp_path: Any) -> None:
    import socket

    from gridwright import InputError
    from gridwright.cli.ui import ui
    from gridwright.web.server import serve

    with pytest.raises(InputError, match="no such folder"):
        ui(run=tmp_path / "nowhere")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot listen on 127"):
            serve("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(InputError, match="cannot listen"):
        serve("no.such.host.invalid", 0)


@pytest.mark.parametrize("left", [True, False])
def test_a_browser_that_leaves_is_no_error(left: bool) -> None:
    """Starlette raises an error in both cases; only the second one is a fault."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise RuntimeError("No response returned.")

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect" if left else "http.request"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": None}
    if left:
        anyio.run(Guard(app), scope, receive, send)
    else:
        with pytest.raises(RuntimeError, match="No response"):
            anyio.run(Guard(app), scope, receive, send)
