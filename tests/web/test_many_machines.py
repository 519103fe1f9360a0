"""A run with 200 machines, watched and operated in a browser."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from .many_machines import MACHINES

LARGEST = 100_000
"""Characters of one message to the browser."""


@pytest.fixture
def run(server: Any) -> Iterator[str]:
    """A run that goes on until the test ends."""
    environment = {**os.environ, "GRIDWRIGHT_HOME": str(server.home)}
    command = [sys.executable, str(Path(__file__).with_name("many_machines.py")), "600"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


def test_two_hundred_machines_are_watched_and_operated(page: Any, server: Any, run: str) -> None:
    sent: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda each: sent.append(str(each))),
    )
    page.goto(f"{server.url}/run/{run}")
    tiles = page.get_by_role("option")
    expect(tiles).to_have_count(MACHINES)
    counted = page.locator(".gw-tiles-legend")
    expect(counted).to_contain_text(re.compile(r"[1-9]\d* busy"))
    expect(page.get_by_text(re.compile(r"[1-9]\d of \d+ jobs finished"))).to_be_visible()
    assert 0 < max(map(len, sent)) < LARGEST
    tiles_sent = re.compile('^42\\["update".*"nicegui-machine_tiles"')
    assert sum(map(bool, map(tiles_sent.match, sent))) == 1, (
        "then only the tiles that changed are sent"
    )
    assert page.locator(".gw-tile").count() == MACHINES
    page.get_by_role("button", name="Select all", exact=True).click()
    expect(page.get_by_text("Selected: 1, 2, 3, 4, 5, 6 and 194 more")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Selected: 1, 2, 3, 4, 5, 6 and 194 more")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text(re.compile("^Paused: machines 1, 2"))).to_be_visible()
    expect(counted).to_contain_text(re.compile(r"1?\d\d paused"))
    expect(counted).not_to_contain_text("idle")
    tiles.first.press("Escape")
    expect(page.get_by_text("Select machines by a click")).to_be_visible()
