"""Simulate, Run, Statistics and Published, in a browser."""

import re
from typing import Any

from playwright.sync_api import expect


def pick(page: Any, label: str, text: str) -> None:
    """Choose from a list by typing into it."""
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    box.fill(text)
    page.get_by_role("option").filter(has_text=text).first.click()


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def test_two_policies_are_simulated(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/simulate")
    expect(page.get_by_text("No simulation yet")).to_be_visible()
    page.get_by_label("Time units (empty: as published)").fill("500")
    page.get_by_label("Replications").fill("4")
    button(page, "Start").click()
    expect(page.get_by_text("Best: lpas")).to_be_visible(timeout=40_000)
    row = page.get_by_role("row").filter(has_text="lpas")
    expect(row).to_contain_text(re.compile(r"\(\d.*, .*\)"))
    expect(row).to_contain_text("stable")
    page.reload()
    expect(page.get_by_text("Best: lpas")).to_be_visible()
    page.get_by_label("Replications").fill("0")
    button(page, "Start").click()
    expect(page.get_by_text("replications is 0; expected 1 to 1,000")).to_be_visible()
    button(page, "Stop").click()
    expect(page.get_by_text("no simulation is going on")).to_be_visible()


def test_a_run_is_watched_stepped_into_stopped_and_read_off(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/statistics")
    expect(page.get_by_text("No runs yet")).to_be_visible()
    page.get_by_role("link", name="Run", exact=True).click()
    pick(page, "Experiment or system", "MGST-4")
    page.get_by_label("Seconds of a time unit").fill("0.5")
    page.get_by_label("Time units", exact=True).fill("0")
    button(page, "Start").click()
    expect(page.get_by_text("duration is 0.0; expected a number > 0")).to_be_visible()
    page.get_by_label("Time units", exact=True).fill("60")
    button(page, "Start").click()
    page.wait_for_url("**/run/1")
    expect(page.get_by_text(re.compile("running"))).to_be_visible(timeout=30_000)
    expect(page.get_by_text(re.compile(r"[1-9]\d* of \d+ jobs finished"))).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="finished").first).to_be_visible()
    expect(page.get_by_text("Failures, planned")).to_be_visible()
    button(page, "Pause").click()
    expect(page.get_by_text("machine 1: pause, done")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="paused")).to_be_visible()
    button(page, "Fail now").click()
    expect(page.get_by_text("machine 1: fail, done")).to_be_visible()
    page.reload()
    button(page, "Stop").click()
    expect(page.get_by_text(re.compile(r"Run 1: .*stopped"))).to_be_visible()
    expect(page.get_by_text("goes on", exact=False).first).to_be_visible()
    page.get_by_role("link", name="Statistics of this run").click()
    expect(page.get_by_text("Execution rates: desired / actual")).to_be_visible()
    button(page, "Set beside its twin").click()
    expect(page.get_by_text("What the gap is made of")).to_be_visible(timeout=40_000)
    with page.expect_download() as found:
        page.get_by_role("link", name="Export as CSV (zip)").click()
    assert found.value.suggested_filename == "run-1.zip"


def test_published(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/published")
    expect(page.get_by_text(re.compile("34 of 34 cells"))).to_be_visible()
    page.get_by_label("Search").fill("Linux")
    expect(page.get_by_text("No cell is like that.")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.get_by_label("Verdict", exact=True).click()
    page.get_by_role("option", name="differs").click()
    expect(page.get_by_text("✗ differs").first).to_be_visible()
    expect(page.get_by_text("✓ agrees")).to_have_count(0)


def test_a_table_is_run_again(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/published")
    page.get_by_label("Table or figure").click()
    page.get_by_label("Table or figure").fill("LP –")
    page.get_by_role("option", name=re.compile("^LP –")).click()
    button(page, "Run again, quickly").click()
    expect(page.get_by_text("LP run again: done, 100 %")).to_be_visible(timeout=20_000)
    expect(page.get_by_text("✓ agrees").first).to_be_visible()


def test_two_browsers_and_the_way_back(browser: Any, page: Any, server: Any) -> None:
    page.goto(server.url)
    box = page.get_by_label("Rate of class 1 on machine 1", exact=True)
    box.fill("9")
    expect(page.get_by_text("λ* = 1.3696")).to_be_visible()
    other = browser.new_context()
    second = other.new_page()
    second.goto(server.url)
    expect(second.get_by_text("λ* = 1.3333")).to_be_visible()
    page.get_by_role("link", name="Simulate").click()
    expect(page.get_by_role("heading", name="Simulate")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("λ* = 1.3696")).to_be_visible()
    expect(box).to_have_value("9")
    other.close()


def test_runs_are_compared(page: Any, server: Any) -> None:
    """Two runs that have not begun are enough."""
    for _ in range(2):
        body = {"experiment": "MGST-4", "time_unit": 0.2, "duration": 5}
        answer = page.request.post(f"{server.url}/api/runs", data=body)
        assert answer.ok, answer.text()
    page.goto(f"{server.url}/statistics")
    page.get_by_label("Compare runs").click()
    page.get_by_role("option").nth(0).click()
    page.get_by_role("option").nth(1).click()
    expect(page.get_by_text("Mean response (jobs finished)")).to_be_visible()


def test_what_is_not_there(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/run/999")
    expect(page.get_by_text("There is no run 999.")).to_be_visible()
    page.goto(f"{server.url}/statistics/999")
    expect(page.get_by_text("There is no run 999")).to_be_visible()
