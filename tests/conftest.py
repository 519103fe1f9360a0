"""A browser, Ctrl-C, the mark of slow tests and their order."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # colours cost time
gc.set_threshold(20_000, 10, 10)  # to look for garbage as often as usual takes a tenth of the time
settings.register_profile("gridwright", deadline=None)  # a busy computer is no failure
settings.load_profile("gridwright")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as `nohup make test &` has it
    signal.signal(signal.SIGINT, signal.default_int_handler)

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first of them that is there opens the pages. The one without windows takes least time."""
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)

SLOW = {"browser", "server", "cluster", "dask"}
"""Fixtures that take seconds to start."""


LONGEST = (
    "docs/how-to/add-a-policy.md",
    "compiler/test_target.py::test_simulations",
    "compiler/test_cuda.py::test_it_compiles_to_ptx",
    "test_commands.py::test_demo",
    "docs/decentralised.md",
    "docs/test_site.py",
    "web/test_schema.py",
    "grid/test_soak.py",
    "test_notebooks.py::test_a_notebook_runs",
    "test_reproduction_commands.py::test_figures_and_the_page",
    "docs/test_blocks.py",
    "experiments/test_cluster.py",
)
"""Tests that take longest. They come first, so that none of them runs alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow whatever needs a browser, a server or a Dask cluster; put the longest first."""
    for item in items:
        if SLOW.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_place)


def pytest_collection_finish() -> None:
    """Keep all that was imported and collected out of the searches for garbage."""
    gc.freeze()


def _place(item: pytest.Item) -> int:
    return next((k for k, each in enumerate(LONGEST) if each in item.nodeid), len(LONGEST))


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
