"""Beyond loopback: the token, in a browser and without one."""

from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import expect

from .conftest import Server

EMPTY = {"Simulate": "No simulation yet", "Run": "No runs yet", "Statistics": "No runs yet"}
"""What a server says that has nothing to show."""


def test_the_token_opens_the_page(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path, "--host", "0.0.0.0")
    try:
        token = server.token
        assert len(token) >= 32
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        shake = {"EIO": "4", "transport": "polling"}
        for path in ("/", "/api/runs", "/_nicegui_ws/socket.io/", "/_nicegui/x/static/nicegui.js"):
            assert httpx.get(url + path, params=shake).status_code == 401
        context = browser.new_context()
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.wait_for_url("**/login")
        page.get_by_label("The token that was printed").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_text("This is not the token.")).to_be_visible()
        page.get_by_label("The token that was printed").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Study policies")).to_be_visible()
        assert not any(token in each for each in asked), "the token never stands in an address"
        for name, words in EMPTY.items():
            page.get_by_role("link", name=name, exact=True).click()
            expect(page.get_by_text(words)).to_be_visible()
        context.close()
        script = httpx.get(f"{url}/api/runs", headers={"authorization": f"Bearer {token}"})
        assert script.json() == []
    finally:
        said = server.stop()
    assert token not in said
    assert "Traceback" not in said
