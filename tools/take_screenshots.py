"""Take the pictures of the web page that the docs show: from a real server and a real run.

Run it as ``python tools/take_screenshots.py``; it needs Chromium.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page, sync_playwright

FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def main() -> None:
    """Start a server in an empty home, go through its pages, and end it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    with TemporaryDirectory() as home:
        server = subprocess.Popen(
            [sys.executable, "-m", "gridwright", "ui", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GRIDWRIGHT_HOME": home},
        )
        assert server.stdout is not None
        found = re.search(r"http://\S+?(?=/ )", server.stdout.readline())
        assert found
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=chromium, args=["--no-sandbox"]
                )
                page = browser.new_page(viewport={"width": 1100, "height": 760})
                visit(page, found[0])
                browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


def visit(page: Page, url: str) -> None:
    """Go through the pages."""
    page.goto(url)
    choose(page, "Load a system", "MGST.HiHi:4")
    page.get_by_text("Limited by class").wait_for()
    keep(page, "define")
    page.goto(f"{url}/simulate")
    page.get_by_label("Time units (empty: as published)").fill("1000")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Best:").wait_for(timeout=60_000)
    keep(page, "simulate", whole=True)
    page.goto(f"{url}/run")
    choose(page, "Experiment or system", "MGST-4")
    page.get_by_label("Seconds of a time unit").fill("0.5")
    page.get_by_label("Time units", exact=True).fill("20")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Readings every").fill("0.5")
    page.get_by_role("button", name="Start").click()
    page.get_by_text(re.compile(r"1\d\.\d of 20 time units")).wait_for(timeout=60_000)
    keep(page, "run", whole=True)
    page.get_by_text(re.compile(r"Run 1: .* done,")).wait_for(timeout=60_000)
    page.goto(f"{url}/statistics/1")
    page.get_by_role("button", name="Set beside its twin").click()
    page.get_by_text("What the gap is made of").wait_for(timeout=60_000)
    keep(page, "statistics", whole=True)
    page.goto(f"{url}/published")
    page.get_by_text("34 of 34 cells").wait_for()
    page.get_by_label("Search").fill("LPAS")
    page.get_by_role("button", name="✗ differs: say why").first.click()
    page.get_by_text("No reading of LPAS").wait_for()
    keep(page, "published")


def choose(page: Page, label: str, text: str) -> None:
    """Choose from a list by typing into it."""
    box: Any = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    box.fill(text)
    page.get_by_role("option").filter(has_text=text).first.click()


def keep(page: Page, name: str, *, whole: bool = False) -> None:
    """Keep a picture of what is seen, or of the whole page."""
    page.wait_for_timeout(700)  # for a list to close
    page.screenshot(path=FIGURES / f"page-{name}.png", full_page=whole)


if __name__ == "__main__":
    main()
