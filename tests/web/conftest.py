"""An API without its pages, in an empty home."""

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from gridwright.web.server import guarded


class Api:
    """A script that talks to the server."""

    def __init__(self) -> None:
        self.app = guarded(pages=False)

    def __call__(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            base = "http://127.0.0.1:8080"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, f"/api{path}", **more)

        answer = anyio.run(go)
        assert answer.status_code == status, answer.text
        kind = answer.headers.get("content-type", "")
        return answer.json() if "json" in kind else answer.content

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        return self("GET", path, status, **more)

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self("POST", path, status, json={} if body is None else body)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    return Api()
