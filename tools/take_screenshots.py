"""Take the pictures of the web page that the docs show: from a real server and a real run.

Run it as ``python tools/take_screenshots.py``, or with ``define`` for that page alone, or with
``others`` for all others; it needs Chromium. The main pages are taken at three widths: of a desk,
of a small laptop, of a phone.
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
WIDTHS = {"": 1440, "-1024": 1024, "-400": 400}
"""The ends of the files' names, and the widths of the window."""


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
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                if sys.argv[1:] != ["others"]:
                    define(page, found[0])
                if sys.argv[1:] != ["define"]:
                    visit(page, found[0])
                browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


def define(page: Page, url: str) -> None:
    """Go through the parts of Define."""
    page.goto(f"{url}/define")
    choose(page, "Load an experiment", "MGST-4")
    page.get_by_text("Limited by class").wait_for()
    keep(page, "define", widths=True)
    page.get_by_role("tab", name="Experiment").click()
    keep(page, "define-experiment", full=True)
    choose(page, "Jobs", "use the CPU")
    page.get_by_label("Iterations", exact=True).fill("9000")
    page.get_by_role("tab", name="Machines").click()
    page.get_by_role("button", name="Calibrate", exact=True).click()
    page.get_by_text("Calibration: done").wait_for(timeout=120_000)
    page.get_by_role("heading", name="Define").hover()
    keep(page, "define-machines", full=True)
    page.get_by_role("tab", name="Failure periods").click()
    page.get_by_role("button", name="Fill traces for all").click()
    choose(page, "Periods of machine", "6")
    page.get_by_label("End of period 1", exact=True).hover()
    keep(page, "define-failures")
    page.get_by_role("tab", name="Availability").click()
    for row in (1, 4):
        page.get_by_role("table").get_by_role("checkbox").nth(row).click()
    page.get_by_role("textbox", name="Availability").fill("0.25")
    choose(page, "Prediction mode", "recursive")
    page.get_by_role("button", name="Set for those selected").click()
    keep(page, "define-availability")


def visit(page: Page, url: str) -> None:
    """Go through the other pages."""
    page.goto(url)
    page.get_by_role("heading", name="Teach and learn").wait_for()
    keep(page, "start", widths=True)
    page.goto(f"{url}/simulate")
    choose(page, "System", "2.Sharifnia")
    page.get_by_label("Time units", exact=True).fill("1000")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("Best:").wait_for(timeout=120_000)
    keep(page, "simulate", full=True, widths=True)
    page.goto(f"{url}/run")
    choose(page, "Experiment or system", "MGST-4")
    page.get_by_label("Time unit", exact=True).fill("0.5")
    page.get_by_label("Duration", exact=True).fill("80")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Reading interval", exact=True).fill("0.5")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(r"/run/\d+$"))
    page.get_by_text(re.compile(r"[1-9]\d* of \d+ jobs finished")).wait_for(timeout=60_000)
    keep(page, "run", full=True, widths=True)
    page.get_by_text(re.compile(r"Run 1: .* done")).first.wait_for(timeout=240_000)
    page.goto(f"{url}/statistics/1")
    page.get_by_role("button", name="Set beside its twin").click()
    page.get_by_text("Causes of the gap").wait_for(timeout=120_000)
    keep(page, "statistics", full=True, widths=True)
    page.goto(f"{url}/published")
    page.get_by_text("34 of 34 cells").wait_for()
    page.get_by_label("Search").fill("LPAS")
    page.get_by_role("button", name="✗ differs: say why").first.click()
    page.get_by_text("No reading of LPAS").wait_for()
    keep(page, "published", widths=True)
    page.goto(f"{url}/learn/1")
    page.get_by_text("the same for each policy").wait_for(timeout=60_000)
    page.get_by_role("slider", name=re.compile("^Time")).press("End")
    keep(page, "learn", full=True, widths=True)


def choose(page: Page, label: str, text: str) -> None:
    """Choose from a list by typing into it."""
    box: Any = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    if box.is_editable():
        box.fill(text)
    page.get_by_role("option").filter(has_text=text).first.click()


def keep(page: Page, name: str, *, full: bool = False, widths: bool = False) -> None:
    """Keep a picture of what is seen, or of the whole page, perhaps at three widths."""
    for end, width in WIDTHS.items() if widths else [("", WIDTHS[""])]:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("window.scrollTo(0, 0)")  # else the head is in the middle of a whole page
        page.wait_for_timeout(700)  # for a list to close, and for charts to follow
        page.screenshot(path=FIGURES / f"page-{name}{end}.png", full_page=full)
    page.set_viewport_size({"width": WIDTHS[""], "height": 900})


if __name__ == "__main__":
    main()
