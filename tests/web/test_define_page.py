"""Define, in a browser."""

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
