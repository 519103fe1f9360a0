"""The web page beside a run of 100,000 jobs: how long a click takes, and what the server needs.

A real server, real processes, a real browser: the run goes on while the jobs table is turned over,
sorted and filtered. Times are taken in the browser, from the click to the next frame that shows its
effect. Floor: 200 ms for the median click. In between the browser is closed, and the server started
again: the run goes on, and is found.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
from playwright.sync_api import Page, sync_playwright

JOBS = 100_000
RATE = 500
"""Jobs a second."""
ROUND = 6
"""Seconds between rounds of clicks."""
CLICK = """
([what, name]) => new Promise((resolve) => {
  const table = [...document.querySelectorAll('.q-table__container')].pop();
  const body = table.querySelector('tbody');
  const places = {
    button: () => table.querySelector(`[aria-label="${name}"]`),
    head: () => [...table.querySelectorAll('th')].find((each) => each.innerText.startsWith(name)),
  };
  const before = body.innerText;
  const watch = new MutationObserver(() => {
    if (body.innerText === before) return;
    watch.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - start));
  });
  watch.observe(body, {subtree: true, childList: true, characterData: true});
  const place = places[what]();
  const start = performance.now();
  place.click();
  setTimeout(() => resolve(10000), 10000);
})
"""
CLICKS = [
    *[("button", "Next page")] * 3,
    ("button", "Last page"),
    ("button", "First page"),
    *[("head", "done")] * 2,
    ("head", "machine"),
    ("button", "Last page"),
    ("head", "id"),
]


class Server:
    """``gridwright ui``, which can be started again on the same runs."""

    def __init__(self, home: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gridwright", "ui", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GRIDWRIGHT_HOME": home},
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+?(?=/ )", self.process.stdout.readline())
        assert found
        self.url = found[0]

    def memory(self) -> float:
        """Return the MiB that the server takes."""
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def run(self) -> Any:
        """Look at the run."""
        found = httpx.get(f"{self.url}/api/runs", timeout=60).json()
        return found[0]

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        server = Server(home)
        try:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            start(server)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            watch(page, server, until=0.6)
            browser.close()
            before = server.run()["finished"]
            server.stop()
            time.sleep(3)
            server = Server(home)
            again = server.run()
            assert again["state"] == "running"
            print(f"closed and started again: {before:,} jobs finished, then {again['finished']:,}")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            watch(page, server, until=1.0)
            browser.close()
        finally:
            server.stop()


def start(server: Server) -> None:
    """Start a run of so many jobs of a millisecond."""
    body = {
        "system": {"name": "many", "arrivals": [RATE / 2] * 2, "rates": [[1500, 1000]] * 2},
        "policy": "fcfs",
        "duration": JOBS / RATE,
        "corrections": False,
    }
    httpx.post(f"{server.url}/api/runs", json=body, timeout=60).raise_for_status()


def watch(page: Page, server: Server, until: float) -> None:
    """Click through the jobs again and again, while the run goes on and once it is done."""
    while server.run()["finished"] < 1000:  # until there are pages to turn
        time.sleep(0.5)
    page.goto(f"{server.url}/run/1")
    page.get_by_role("row").filter(has_text="finished").nth(3).wait_for(timeout=60_000)
    page.get_by_label("Next page").last.wait_for(timeout=60_000)
    while True:
        run = server.run()
        times = [page.evaluate(CLICK, list(each)) for each in CLICKS]
        print(
            f"{run['arrived']:9,} jobs, {run['state']:8}{server.memory():7.0f} MiB"
            f"{median(times):7.0f} ms the median click{max(times):7.0f} ms the slowest",
            flush=True,
        )
        if run["state"] != "running" or run["arrived"] >= until * JOBS:
            return
        time.sleep(ROUND)
