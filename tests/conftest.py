"""A browser, for what is looked at in one; and Ctrl-C, for what is stopped by it."""

import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("gridwright", deadline=None)  # a busy computer is no failure
settings.load_profile("gridwright")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as `nohup make test &` has it
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

SLOW = {"browser", "server", "cluster", "dask"}
"""Fixtures that take seconds to start."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow whatever needs a browser, a server or a Dask cluster."""
    for item in items:
        if SLOW.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")  # Playwright's loop is in the way of other tests' loops
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        missing = pytest.fail if os.environ.get("GRIDWRIGHT_NEED_BROWSER") else pytest.skip
        missing("no Chromium here: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # the computer may be busy
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()
