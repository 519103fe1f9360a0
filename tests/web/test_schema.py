"""The API answers as its own description says, whatever is sent to it (schemathesis)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from gridwright.web.api import make_api
from gridwright.web.services import Services

pytestmark = pytest.mark.slow

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW")

services = Services()
app = make_api(services)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    yield
    services.queue.close()  # else it would go on beside the other tests


def test_answers_are_as_described() -> None:
    tests = Path(__file__).with_name("described_operations.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "schemathesis", "-p", "no:cacheprovider", tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=tests.parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    operations = sum(map(len, app.openapi()["paths"].values()))
    assert passed
    assert int(passed[1]) == operations > 40


Request = tuple[str, str, bytes]


def answers(requests: list[Request]) -> Iterator[tuple[Request, httpx.Response]]:
    """Send requests: a method, a path, a body of JSON."""

    async def go() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        sent = {"content-type": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [
                await client.request(method, path, content=body, headers=sent)
                for method, path, body in requests
            ]

    return zip(requests, anyio.run(go), strict=True)


def test_methods_that_a_path_does_not_have() -> None:
    paths = {path.replace("{number}", "1"): has for path, has in app.openapi()["paths"].items()}
    assert len(paths) > 30
    has = {path: sorted(map(str.upper, described)) for path, described in paths.items()}
    wrong = [(method, path, b"") for path in paths for method in METHODS if method not in has[path]]
    for (_, path, _), answer in answers(wrong):
        assert (answer.status_code, answer.headers["allow"]) == (405, ", ".join(has[path])), path
    for _, answer in answers([(method, "/api/nothing/there", b"") for method in METHODS]):
        assert answer.status_code == 404


def test_bodies_that_are_no_json() -> None:
    paths = {path.replace("{number}", "1"): has for path, has in app.openapi()["paths"].items()}
    taking = [path for path in paths if "requestBody" in paths[path].get("post", {})]
    assert len(taking) > 10
    bodies = (b"\x00y\xfe", b"[" * 100_000, b"{")
    for (_, path, _), answer in answers([("POST", p, body) for p in taking for body in bodies]):
        assert answer.status_code in (400, 422)
        assert str(answer.status_code) in paths[path]["post"]["responses"], path
