"""Define with 50 classes on 200 machines: how long an edit of a cell takes, and what it costs.

A real server and a real browser. A number is typed into a cell and sent. Times are taken in the
browser: from the key to the next frame, which shows it, and from sending to the next frame after
the server has checked the whole system and marked the cell. Floor: 100 ms for both, in 95 of 100
edits. The CPU time is that of the server, with the allocation, which is solved in the background.
"""

import os
import shutil
import sys
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import psutil
from playwright.sync_api import Page, sync_playwright

from .page import Server

CLASSES, MACHINES = 50, 200
EDITS = 40
PASTE = """(input, text) => {
  const data = new DataTransfer();
  data.setData("text", text);
  input.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, cancelable: true}));
}"""
EDIT = """([label, text]) => new Promise((resolve) => {
  const input = document.querySelector(`[aria-label="${label}"]`);
  const isWrong = () => input.getAttribute("aria-invalid") === "true";
  const before = isWrong();
  const start = performance.now();
  let shown = 0, sent = 0;
  const watch = new MutationObserver(() => {
    if (isWrong() === before) return;
    watch.disconnect();
    requestAnimationFrame(() => resolve([shown - start, performance.now() - sent]));
  });
  watch.observe(input, {attributes: true});
  input.value = text;
  input.dispatchEvent(new Event("input", {bubbles: true}));
  requestAnimationFrame(() => {
    shown = performance.now();
    sent = performance.now();
    input.dispatchEvent(new Event("change", {bubbles: true}));
  });
  setTimeout(() => resolve([10000, 10000]), 10000);
})"""


def main() -> None:
    """Paste the system, and edit its cells without and with colours."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        server = Server(home)
        try:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(60_000)
            page.goto(f"{server.url}/define")
            cell = page.get_by_label("Rate of class 1 on machine 1", exact=True)
            cell.evaluate(PASTE, block())
            page.get_by_label("Name of class 1", exact=True).wait_for()
            page.get_by_label("Rate of class 12 on machine 9", exact=True).wait_for()
            _solved(page)
            process = psutil.Process(server.process.pid)
            for layer in ("none", "efficiency", "allocation"):
                page.get_by_role("combobox", name="Colours").click()
                page.get_by_role("option", name=layer).click()
                measure(page, process, f"colours {layer}")
            browser.close()
        finally:
            server.stop()


def block() -> str:
    """Return the rates."""
    rows = ([1 + (7 * i + 3 * j) % 10 + j / 100 for j in range(MACHINES)] for i in range(CLASSES))
    return "\n".join("\t".join(f"{rate:.2f}" for rate in row) for row in rows)


def measure(page: Page, process: psutil.Process, what: str) -> None:
    """Make mistakes in cells and mend them; print how long it took."""
    typed, checked = [], []
    before = sum(process.cpu_times()[:2])
    for k in range(EDITS):
        label = f"Rate of class {1 + k // 2 % 10} on machine {1 + k // 2 % 8}"
        one, two = page.evaluate(EDIT, [label, "x" if k % 2 == 0 else f"{2 + k / 10:.1f}"])
        typed.append(one)
        checked.append(two)
        if k % 2:
            _solved(page)
    spent = (sum(process.cpu_times()[:2]) - before) / EDITS
    rows = f"{CLASSES} × {MACHINES}, {what}: shown {_line(typed)}, checked {_line(checked)}"
    load, count = os.getloadavg()[0], os.cpu_count()
    print(f"{rows}, {1000 * spent:.0f} ms CPU an edit, load {load:.1f} on {count} CPUs", flush=True)


def _solved(page: Page) -> None:
    page.get_by_text("λ* = ").wait_for()


def _line(times: list[float]) -> str:
    return f"median {median(times):.0f} ms, 95 % within {quantiles(times, n=20)[-1]:.0f} ms"
