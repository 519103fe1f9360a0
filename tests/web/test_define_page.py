"""Define, in a browser."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect


def cell(page: Any, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def test_a_system_is_typed_and_its_capacity_changes(page: Any, server: Any) -> None:
    page.goto(server.url)
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    cell(page, "Rate of class 2 on machine 2").fill("20")
    expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
    cell(page, "Rate of class 2 on machine 2").fill("fast")
    expect(page.get_by_text("rates, row 2, column 2 is 'fast'; expected a number")).to_be_visible()
    expect(page.get_by_text("λ* unknown")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
    page.get_by_role("button", name="Add machine").click()
    expect(cell(page, "Rate of class 1 on machine 3")).to_be_visible()
    page.reload()
    expect(cell(page, "Rate of class 1 on machine 3")).to_be_visible()


def test_what_changes_with_a_machine_switched_off(page: Any, server: Any) -> None:
    page.goto(server.url)
    page.get_by_role("combobox", name="Switched off").click()
    page.get_by_role("option", name="2", exact=True).click()
    expect(page.get_by_text(re.compile(r"λ\* goes from 1\.3333 to 0\.\d+"))).to_be_visible()
    expect(page.get_by_text(re.compile("No policy can keep up"))).to_be_visible()


def test_systems_come_from_the_catalogue_files_and_spreadsheets(
    page: Any, server: Any, tmp_path: Path
) -> None:
    page.goto(server.url)
    box = page.get_by_role("combobox", name="Load a system")
    box.click()
    box.fill("MGST.HiHi:1")
    page.get_by_role("option").first.click()
    expect(cell(page, "Rate of class 4 on machine 6")).to_have_value("6.3")
    file = tmp_path / "rates.mue"
    file.write_text("2.2, 7, 10.25\n1.95, 7.05, 9.78\n")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import a file").click()
    chooser.value.set_files(file)
    expect(cell(page, "Rate of class 1 on machine 3")).to_have_value("10.25")
    expect(cell(page, "Rate of class 4 on machine 6")).to_have_count(0)
    file.write_text("2.2, 7\n1.95\n")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import a file").click()
    chooser.value.set_files(file)
    expect(page.get_by_text("rates.mue, line 2: 1 rates; expected 2, as line 1")).to_be_visible()
    page.get_by_role("button", name="Paste rates").click()
    page.get_by_label("Rates", exact=True).fill("3\t4\n5\t6")
    page.get_by_role("button", name="Take them").click()
    expect(cell(page, "Rate of class 2 on machine 2")).to_have_value("6")


def test_a_system_is_saved_and_offered_elsewhere(page: Any, server: Any) -> None:
    page.goto(server.url)
    page.get_by_label("Name of the system").fill("../evil")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("name '../evil'; expected letters")).to_be_visible()
    page.get_by_label("Name of the system").fill("mine")
    cell(page, "Name of class 1").fill("<img src=x onerror=alert(1)>")
    expect(page.get_by_role("rowheader", name="<img src=x onerror=alert(1)>")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("mine is saved")).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download TOML").click()
    assert "arrivals = [5, 8]" in Path(found.value.path()).read_text("utf-8")
    page.get_by_role("link", name="Simulate").click()
    box = page.get_by_role("combobox", name="System", exact=True)
    box.click()
    box.fill("mine")
    expect(page.get_by_role("option", name="mine (saved)")).to_be_visible()


def test_everything_is_reached_from_the_keyboard_on_a_phone(page: Any, server: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(server.url)
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    for path in ("/simulate", "/run", "/statistics", "/published", "/"):
        page.goto(f"{server.url}{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("link", name="Define").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/simulate")
    expect(page.get_by_role("heading", name="Simulate")).to_be_visible()


def test_light_and_dark(page: Any, server: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(server.url)
    expect(page.locator("body.body--dark")).to_be_visible()
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("body.body--light")).to_be_visible()
    page.get_by_role("link", name="Published").click()
    expect(page.get_by_role("heading", name="Published")).to_be_visible()
    expect(page.locator("body.body--light")).to_be_visible()
