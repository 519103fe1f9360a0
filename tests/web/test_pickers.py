"""Lists to choose from: what they say of systems and policies, and what Enter takes."""

import re
from typing import Any

from playwright.sync_api import expect

from gridwright.catalogue import find
from gridwright.web.summary import label_of, misfits, summary_of


def test_systems_in_a_few_words() -> None:
    assert label_of(find("2.B")) == "2.B – section 2.2.2, 2 classes × 2 machines, load 75 %"
    assert label_of(find("2.MET-example")).endswith("1 class × 2 machines, teaching example")
    assert "30 machines, machines fail" in label_of(find("3.A:alpha1:2"))
    words = summary_of(find("3.A:alpha1:2").system)
    assert words.startswith(
        "4 classes × 30 machines, long-run load 63.5 % (failures counted; 61.1 %"
    )
    assert ", machines fail: on average up for 50, away for 2 time units" in words
    assert summary_of(find("2.B").system).endswith("75.0 %, machines never fail")


def test_policies_that_do_not_fit_have_a_reason() -> None:
    central, batch = misfits(find("2.B").system), misfits(find("Smith").system)
    assert "mct" not in central
    assert "has no arrivals at machines" in central["kpb_dec"]
    assert "for batch policies only; mct is a push policy" in batch["mct"]


def test_enter_takes_a_sole_match_and_misfits_are_grey(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/simulate")
    expect(page.get_by_text("2 classes × 2 machines, long-run load 75.0 %")).to_be_visible()
    box = page.get_by_role("combobox", name="Policies", exact=True)
    chips = page.locator(".q-chip")
    for typed, left in (("guided", "guided"), ("winston", ""), ("guided_lpas", "")):
        box.fill(typed)
        box.press("Enter")
        expect(box).to_have_value(left)  # what was chosen is cleared
    expect(chips).to_have_count(4)
    box.fill("kpb_dec")
    box.press("Enter")
    expect(chips).to_have_count(4)
    expect(chips.filter(has_text="jsq – Send")).to_be_visible()
    box.fill("kpb_dec")
    misfit = page.get_by_role("option").filter(has_text="kpb_dec")
    expect(misfit).to_have_attribute("aria-disabled", "true")
    expect(misfit).to_contain_text("2.B has no arrivals at machines")
    box.fill("the scheduler sends each task")
    expect(page.get_by_role("option").filter(has_text="Push policies")).to_be_visible()
    page.keyboard.press("Escape")
    system = page.get_by_role("combobox", name="System", exact=True)
    system.fill("sharif")
    system.press("Enter")
    expect(page.get_by_text("4 classes × 2 machines, long-run load 97.5 %")).to_be_visible()


def test_the_policies_of_run_that_do_not_fit_are_grey(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/run")
    expect(page.get_by_text("4 classes × 6 machines, long-run load")).to_be_visible()
    box = page.get_by_role("combobox", name="Policy", exact=True)
    box.fill("kpb_dec")
    misfit = page.get_by_role("option").filter(has_text="kpb_dec")
    expect(misfit).to_be_visible()
    box.press("Enter")  # once with an open and once with a closed list
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(box).to_have_attribute("aria-expanded", "false")
    box.fill("kpb_dec")
    box.press("Enter")
    expect(misfit).to_have_attribute("aria-disabled", "true")
    expect(misfit).to_contain_text("has no arrivals at machines")
    box.fill("winston")
    box.press("Enter")
    expect(box).to_have_value(re.compile("^jsq – Send"))
    expect(page.get_by_role("option")).to_have_count(0)
    what = page.get_by_role("combobox", name="Experiment or system")
    what.fill("MGST-4 –")
    expect(page.get_by_role("option")).to_have_text(
        "MGST-4 – 4 classes × 6 machines, load 67 % with all machines up, machines fail "
        "(experiment)"
    )
    what.press("Enter")
    expect(page.get_by_text("long-run load 7")).to_be_visible()
    expect(page.get_by_text("machines fail: on average")).to_be_visible()
