"""An API without its pages, in an empty home; a whole server."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from gridwright.web.server import guarded

TOKEN = "let-me-in"
collect_ignore = ["described_operations.py"]  # a test of test_schema.py runs it


class Api:
    """A script that talks to the server."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.app = guarded(token=TOKEN, is_open=True, pages=False)

    def __call__(
        self, method: str, path: str, status: int = 200, host: str = "127.0.0.1", **more: Any
    ) -> Any:
        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(host, 50_000))
            base = "http://127.0.0.1:8080"
            shown = {"authorization": f"Bearer {self.token}"} if self.token else {}
            async with httpx.AsyncClient(
                transport=transport, base_url=base, headers=shown
            ) as client:
                return await client.request(method, f"/api{path}", **more)

        answer = anyio.run(go)
        assert answer.status_code == status, answer.text
        kind = answer.headers.get("content-type", "")
        return answer.json() if "json" in kind else answer.content

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        return self("GET", path, status, **more)

    def post(self, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        return self("POST", path, status, json={} if body is None else body, **more)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    return Api()


class Server:
    """``gridwright ui`` as a user starts it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.home = folder
        environment = {**os.environ, "GRIDWRIGHT_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gridwright", "ui", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + self.process.communicate()[1]
        self.url = found[0].rstrip("/")
        self.token = self.process.stdout.readline().removeprefix("token: ").strip()

    def stop(self) -> str:
        """End the server as Ctrl-C does; return what it complained of."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests: what others have done is there, as it is for a user."""
    made = Server(tmp_path_factory.mktemp("home"))
    yield made
    complaints = made.stop()
    assert "Traceback" not in complaints, complaints
    assert made.process.returncode == 0


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    """A page that may ask nobody but our own server, and has nothing to complain of."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    ours = (server.url, server.url.replace("http", "ws", 1), "data:", "blob:", "about:")
    assert asked
    assert [url for url in asked if not url.startswith(ours)] == []
    assert complaints == []
