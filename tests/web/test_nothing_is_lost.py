"""What people type, paste and save is never lost, replaced or ignored in silence."""

import re
import tomllib
from typing import Any

from playwright.sync_api import expect


def cell(page: Any, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def test_rates_are_pasted_and_saved_beside_everything_else(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
    cell(page, "Name of the system").fill("kept")
    cell(page, "Name of machine 2").fill("fast")
    cell(page, "Name of class 1").fill("small")
    cell(page, "Availability of machine 1").fill("0,5")
    page.get_by_role("tab", name="Experiment").click()
    cell(page, "Mean up-time").fill("10")
    cell(page, "Mean repair time").fill("2")
    page.get_by_role("tab", name="System").click()
    button(page, "Paste rates").click()
    box = page.get_by_label("Rates", exact=True)
    box.fill("8,5\t3,1\n4\t10,25")
    said = "rates of 2 classes on 2 machines; the first row: 8.5, 3.1"
    expect(page.get_by_text(said)).to_be_visible()
    button(page, "Take them").click()
    expect(cell(page, "Rate of class 2 on machine 2")).to_have_value("10.25")
    expect(cell(page, "Rate of class 1 on machine 3")).to_have_count(0)
    button(page, "Save").click()
    expect(page.get_by_text("kept is saved; Simulate and Run offer it")).to_be_visible()
    path = server.home / "systems" / "kept.toml"
    saved = path.read_text("utf-8")
    system = tomllib.loads(saved)["system"]
    assert system["rates"] == [[8.5, 3.1], [4, 10.25]]
    assert (system["classes"], system["groups"]) == (["small", "2"], ["1", "fast"])
    assert system["availability"] == [0.5, 1]
    assert system["failures"] == {"mean_uptime": 10, "mean_repair": 2}

    cell(page, "Rate of class 2 on machine 2").fill("11")
    expect(page.get_by_text(re.compile(r"λ\* = "))).to_be_visible()
    for answer in ("Cancel", "Replace it"):
        button(page, "Save").click()
        expect(page.get_by_text("kept is saved already. Replace it?")).to_be_visible()
        button(page, answer).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        if answer == "Cancel":
            assert path.read_text("utf-8") == saved
    expect(page.get_by_text("kept is saved; Simulate and Run offer it").last).to_be_visible()
    assert tomllib.loads(path.read_text("utf-8"))["system"]["rates"][1][1] == 11


def test_what_is_typed_into_the_list_of_systems_counts(page: Any, server: Any) -> None:
    (server.home / "systems").mkdir(exist_ok=True)
    words = "name = 'too much'\narrivals = [9, 9]\nrates = [[8, 3], [4, 10]]"
    (server.home / "systems" / "too much.toml").write_text(words)
    page.goto(f"{server.url}/simulate")
    before = len(page.request.get(f"{server.url}/api/simulations").json())
    box = page.get_by_role("combobox", name="System", exact=True)
    page.get_by_label("Time units", exact=True).fill("300")
    page.get_by_label("Replications", exact=True).fill("3")
    for typed, said in (("no such", "matches nothing here"), ("MGST", "entries; choose one")):
        box.fill(typed)
        box.press("Tab")
        button(page, "Start").click()
        expect(page.get_by_text(re.compile(f"'{typed}' .*{said}")).first).to_be_visible()
    assert len(page.request.get(f"{server.url}/api/simulations").json()) == before
    box.fill("too mu")
    box.press("Enter")
    button(page, "Start").click()
    expect(
        page.get_by_text(re.compile("too much, 3 replications of 300 time units, .*done"))
    ).to_be_visible()
    row = page.get_by_role("row").filter(has_text="lpas")
    verdict = re.compile("unstable: the long-run load is 1")
    cells = ["lpas", "3", *["grows"] * 4, verdict]
    expect(row.get_by_role("cell")).to_have_text(cells)
    expect(page.get_by_text("No policy is stable here.")).to_be_visible()
    expect(page.get_by_text("better")).to_have_count(0)
    page.reload()
    expect(box).to_have_value("too much (saved) – 2 classes × 2 machines, load 106 %")
    expect(page.get_by_label("Replications", exact=True)).to_have_value("3")
    expect(page.get_by_label("Time units", exact=True)).to_have_value("300")
