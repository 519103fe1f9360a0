"""A run is nobody's child: it goes on when its server ends, and the next server finds it."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from .conftest import Server

pytestmark = pytest.mark.slow


def test_a_run_outlives_its_server(tmp_path: Path) -> None:
    first = Server(tmp_path)
    body = {"experiment": "MGST-4", "time_unit": 0.5, "duration": 200, "failures": "none"}
    assert httpx.post(f"{first.url}/api/runs", json=body).json()["run"] == 1
    until(lambda: get(first, "/api/runs/1")["finished"] > 3)
    first.stop()
    second = Server(tmp_path)
    try:
        before = get(second, "/api/runs/1")
        assert before["state"] == "running"
        until(lambda: get(second, "/api/runs/1")["finished"] > before["finished"])
        stopped = httpx.post(f"{second.url}/api/runs/1/stop", timeout=20).json()
        assert stopped["state"] == "stopped"
    finally:
        complaints = second.stop()
    assert "Traceback" not in complaints


def get(server: Any, path: str) -> Any:
    return httpx.get(f"{server.url}{path}", timeout=20).json()


def until(what: Any) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)
