"""The web page beside a run of 100,000 jobs: first paints, clicks, and what the server needs.

A real server, real processes, a real browser: the run goes on while pages are opened, the jobs
table is turned over and sorted, machines are selected and charts switched. Times are taken in the
browser: of a click, from it to the next frame that shows its effect; of a page, from its request to
the first text that is painted (first contentful paint), by a browser that has the scripts in its
cache. Targets: 95 of 100 clicks within 200 ms, first paints within 1 s. In between the browser is
closed, and the server started again: the run goes on, and is found.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from statistics import median, quantiles
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
OPENED = 5
"""How often each page is opened."""
CLICK = """
([what, name]) => new Promise((resolve) => {
  const table = [...document.querySelectorAll('.q-table__container')].pop();
  const button = (words) => [...document.querySelectorAll('button')]
    .find((each) => each.innerText.trim().toLowerCase() === words);
  const [place, shown] = {
    button: () => [table.querySelector(`[aria-label="${name}"]`), table.querySelector('tbody')],
    head: () => [[...table.querySelectorAll('th')].find((each) => each.innerText.startsWith(name)),
      table.querySelector('tbody')],
    tile: () => [document.querySelector(`.gw-tile:nth-child(${name})`),
      [...document.querySelectorAll('[role=status]')]
        .find((each) => each.innerText.startsWith('Select'))],
    measure: () => [button(name), document.querySelector('.gw-chart')],
  }[what]();
  const seen = () => shown.innerHTML + shown.className + shown.disabled;
  const before = seen();
  const watch = new MutationObserver(() => {
    if (seen() === before) return;
    watch.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - start));
  });
  const all = {subtree: true, childList: true, characterData: true, attributes: true};
  watch.observe(shown, all);
  const start = performance.now();
  place.click();
  setTimeout(() => resolve(10000), 10000);
})
"""
CLICKS = [
    *[("button", "Next page")] * 3,
    ("tile", "1"),
    ("button", "Last page"),
    ("button", "First page"),
    ("tile", "1"),
    *[("head", "class")] * 2,
    ("measure", "not sent yet"),
    ("head", "machine"),
    ("button", "Last page"),
    ("measure", "in the system"),
    ("head", "id"),
]
PATHS = ("/", "/define", "/simulate", "/run", "/run/1", "/statistics", "/published", "/learn")
PAINT = """
() => new Promise((resolve) => new PerformanceObserver((found) => {
  const paint = found.getEntriesByName('first-contentful-paint')[0];
  if (paint) resolve(paint.startTime);
}).observe({type: 'paint', buffered: true}))
"""


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

    def end_runs(self) -> None:
        """Stop the runs that go on; they would outlive the server."""
        with suppress(httpx.HTTPError):  # nothing may have started yet
            for each in httpx.get(f"{self.url}/api/runs", timeout=60).json():
                if each["state"] == "running":
                    httpx.post(f"{self.url}/api/runs/{each['run']}/stop", json={}, timeout=60)

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
            times = watch(page, server, until=0.5)
            paint(page, server)
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
            times += watch(page, server, until=1.0)
            browser.close()
            late = quantiles(times, n=100)[94]
            print(f"{len(times)} clicks: 95 of 100 within {late:.0f} ms")
        finally:
            server.end_runs()
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


def watch(page: Page, server: Server, until: float) -> list[float]:
    """Click again and again while the run goes on; return the milliseconds of the clicks."""
    while server.run()["finished"] < 1000:  # until there are pages to turn
        time.sleep(0.5)
    page.goto(f"{server.url}/run/1")
    page.get_by_role("row").nth(3).wait_for(timeout=60_000)
    page.get_by_label("Next page").last.wait_for(timeout=60_000)
    found: list[float] = []
    while True:
        run = server.run()
        times = [page.evaluate(CLICK, list(each)) for each in CLICKS]
        found += times
        print(
            f"{run['arrived']:9,} jobs, {run['state']:8}{server.memory():7.0f} MiB"
            f"{median(times):7.0f} ms the median click{max(times):7.0f} ms the slowest: "
            + " ".join(CLICKS[times.index(max(times))]),
            flush=True,
        )
        if run["state"] != "running" or run["arrived"] >= until * JOBS:
            return found
        time.sleep(ROUND)


def paint(page: Page, server: Server) -> None:
    """Open each page several times."""
    for path in PATHS:
        times = []
        for _ in range(OPENED):
            page.goto(f"{server.url}{path}")
            times.append(page.evaluate(PAINT))
        print(f"first paint of {path:12}{median(times):7.0f} ms{max(times):7.0f} ms the slowest")
