"""The table of Define: it is typed, pasted, cut and undone as a spreadsheet, in a browser."""

import re
from typing import Any

from playwright.sync_api import expect

from gridwright import System, allocate

from .test_define_page import button, cell

COUNT = "document.querySelectorAll('.gw-cells input').length"
PASTE = """(input, text) => {
  const data = new DataTransfer();
  data.setData("text", text);
  input.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, cancelable: true}));
}"""


COPIED = """() => {
  document.addEventListener("copy", (event) => {
    window.copied = event.clipboardData.getData("text/plain");
  });
}"""
HEADED = """class\tm1\tm2\tm3\tm4
small\t8,5\t3\t2\t1
middle\t4\t10\t2\t1
large\t1\t2\t6\t3"""


def rates(page: Any) -> list[list[str]]:
    """The rates that the table shows."""
    names = page.locator(".gw-cells input[aria-label^='Rate of']")
    found = names.evaluate_all("all => all.map((each) => [each.ariaLabel, each.value])")
    rows: dict[str, list[str]] = {}
    for label, value in found:
        rows.setdefault(label.split()[3], []).append(value)
    return [*rows.values()]


def test_a_system_is_edited_as_in_a_spreadsheet(page: Any, server: Any) -> None:
    """Three classes on four machines: pasted with names, coloured, cut, undone, redone, kept."""
    page.goto(f"{server.url}/define")
    page.evaluate(COPIED)
    status = page.get_by_role("status").filter(has_text="my system")
    expect(status).to_have_text("my system: no changes")
    expect(button(page, "Undo")).to_be_disabled()
    first = cell(page, "Rate of class 1 on machine 1")
    first.evaluate(PASTE, HEADED)
    expect(cell(page, "Name of machine 4")).to_have_value("m4")
    expect(cell(page, "Name of class 3")).to_have_value("large")
    expect(page.get_by_text("rates of 3 classes on 4 machines, classes small,")).to_be_visible()
    whole = [["8.5", "3", "2", "1"], ["4", "10", "2", "1"], ["1", "2", "6", "3"]]
    assert rates(page) == whole
    expect(status).to_have_text("● my system: not saved")
    for number in (1, 2, 3):
        cell(page, f"Arrivals of class {number}").fill("0.5")

    for layer, said in (("efficiency", r"efficiency \d+ %"), ("allocation", r"allocation \d+ %")):
        page.get_by_role("combobox", name="Colours").click()
        page.get_by_role("option", name=re.compile(f"^{layer}")).click()
        expect(first).to_have_attribute("title", re.compile(said))
        expect(first).to_have_attribute("style", re.compile("color-mix"))
    over = page.locator(".gw-cells th .gw-over")
    expect(page.locator(".gw-cells th .gw-fine").first).to_be_visible()
    cell(page, "Arrivals of class 3").fill("99")
    expect(over.first).to_contain_text(re.compile(r"▲ \d+ %"))
    expect(page.get_by_text(re.compile("load .* %: overload"))).to_be_visible()
    expect(cell(page, "Arrivals of class 3")).to_have_class(re.compile("gw-over"))
    page.keyboard.press("Control+z")
    expect(over).to_have_count(0)

    cell(page, "Rate of class 2 on machine 3").focus()
    button(page, "Remove machine m3").click()
    expect(button(page, "Remove machine m4")).to_be_enabled()
    button(page, "Remove class middle").click()
    expect(cell(page, "Rate of class 3 on machine 1")).to_have_count(0)
    cut = [["8.5", "3", "1"], ["1", "2", "3"]]
    assert rates(page) == cut
    first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Control+c")
    assert page.evaluate("window.copied") == "8.5\t3\n1\t2"
    page.reload()
    expect(cell(page, "Name of machine 3")).to_have_value("m4")
    for _ in range(2):
        button(page, "Undo").click()
    expect(cell(page, "Rate of class 3 on machine 4")).to_be_visible()
    assert rates(page) == whole
    page.reload()
    button(page, "Redo").click()
    expect(cell(page, "Name of machine 4")).to_have_count(0)
    button(page, "Redo").click()
    expect(button(page, "Redo")).to_be_disabled()
    assert rates(page) == cut
    for _ in range(2):
        button(page, "Undo").click()
    expect(cell(page, "Rate of class 3 on machine 4")).to_be_visible()

    first.evaluate(PASTE, "1,234\t2\n3\t4")
    page.get_by_role("combobox", name="1,234 is").click()
    page.get_by_role("option", name=re.compile("^1234")).click()
    expect(page.get_by_text("the first row: 1234, 2")).to_be_visible()
    button(page, "Take them").click()
    expect(first).to_have_value("1234")
    button(page, "Undo").click()
    expect(first).to_have_value("8.5")
    assert rates(page) == whole

    button(page, "New").click()
    expect(cell(page, "Rate of class 3 on machine 4")).to_have_count(0)
    box = page.get_by_role("combobox", name="Open a draft")
    box.click()
    line = re.compile("^● my system – 3 classes × 4 machines, not saved")
    page.get_by_role("option", name=line).first.click()
    expect(cell(page, "Rate of class 3 on machine 4")).to_be_visible()
    assert rates(page) == whole

    simulate_it(page, "my system (as it was defined)")


def simulate_it(page: Any, name: str) -> None:
    """Simulate what Define shows: the form is filled in, and starts on a click."""
    button(page, "Simulate it").click()
    page.wait_for_url(re.compile("/simulate$"))
    chosen = page.get_by_role("combobox", name="System", exact=True)
    expect(chosen).to_have_value(name)
    expect(page.get_by_text("3 classes × 4 machines, long-run load")).to_be_visible()
    expect(page.get_by_text("No simulation yet")).to_be_visible()
    expect(page.get_by_text("Empty: 20,000", exact=True)).to_be_visible()
    for policy in ("mct", "lpas", "lpas_dg"):
        expect(page.locator(".q-chip").get_by_text(re.compile(f"^{policy} – "))).to_be_visible()
    cell(page, "Time units").fill("500")
    button(page, "Start").click()
    page.wait_for_url(re.compile("/simulate/[0-9a-f]+$"))
    done = page.get_by_text(re.compile("time units, .*done"))
    expect(done).to_be_visible(timeout=120_000)
    expect(page.get_by_role("row").filter(has_text="lpas_dg").first).to_be_visible()


TYPED = {
    "Name of class": ["small", "middle", "large"],
    "Arrivals of class": ["3", "2,5", "1"],
    "machine 1": ["8.5", "4", "1"],
    "machine 2": ["3", "10", "2"],
    "machine 3": ["2", "2", "6"],
    "machine 4": ["1", "0,5", "3"],
}
"""A system of three classes on four machines, by columns."""


def test_a_system_is_typed_cell_by_cell_and_compared(page: Any, server: Any) -> None:
    """With the keyboard alone, up and down the columns; then a block is emptied, and undone."""
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    for name in ("Add machine", "Add machine", "Add class"):
        button(page, name).press("Enter")
    expect(cell(page, "Rate of class 3 on machine 4")).to_be_visible()
    cell(page, "Name of the system").fill("typed by hand")
    cell(page, "Name of class 1").focus()
    for k, values in enumerate(TYPED.values()):
        for i, value in enumerate(values if k % 2 == 0 else reversed(values)):
            if i:
                page.keyboard.press("ArrowUp" if k % 2 else "Enter")
            page.keyboard.type(value)
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    whole = [["8.5", "3", "2", "1"], ["4", "10", "2", "0.5"], ["1", "2", "6", "3"]]
    expect(cell(page, "Rate of class 2 on machine 4")).to_have_value("0.5")
    assert rates(page) == whole
    for k, (name, arrivals) in enumerate(zip(*[*TYPED.values()][:2], strict=True), start=1):
        expect(cell(page, f"Name of class {k}")).to_have_value(name)
        expect(cell(page, f"Arrivals of class {k}")).to_have_value(arrivals.replace(",", "."))
    system = System(arrivals=[3, 2.5, 1], rates=[[float(rate) for rate in row] for row in whole])
    expect(page.get_by_text(f"λ* = {allocate(system).capacity:.4f}")).to_be_visible()

    cell(page, "Rate of class 2 on machine 2").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Delete")
    expect(cell(page, "Rate of class 3 on machine 3")).to_have_value("")
    assert rates(page) == [whole[0], ["4", "", "", "0.5"], ["1", "", "", "3"]]
    empty = "the rate of class middle on machine 2 is ''; expected a number"
    expect(page.get_by_text(empty)).to_be_visible()
    button(page, "Undo").click()
    expect(cell(page, "Rate of class 3 on machine 3")).to_have_value("6")
    assert rates(page) == whole
    zeros = [cell(page, f"Rate of class 1 on machine {number}") for number in range(1, 5)]
    for each in zeros:
        each.fill("0")
    for each in zeros:
        expect(each).to_have_attribute("aria-invalid", "true")
    for each, rate in zip(zeros, whole[0], strict=True):
        each.fill(rate)
    simulate_it(page, "typed by hand (as it was defined)")
    words = page.get_by_text(re.compile("^(Lowest|Highest) mean "))
    expect(words).to_contain_text(re.compile("This is certain|Not certain: against"))


def test_empty_names_stay_empty_and_a_draft_is_deleted(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    cell(page, "Name of the system").fill("not for long")
    cell(page, "Name of class 1").fill("wide")
    button(page, "Add class").click()
    expect(cell(page, "Name of class 3")).to_be_visible()
    button(page, "Undo").click()
    expect(cell(page, "Name of class 3")).to_have_count(0)
    expect(cell(page, "Name of class 1")).to_have_value("wide")
    expect(cell(page, "Name of class 2")).to_have_value("")
    page.reload()
    expect(cell(page, "Name of class 2")).to_have_value("")
    drafts, line = page.get_by_role("combobox", name="Open a draft"), re.compile("not for long – ")
    drafts.click()
    expect(page.get_by_role("option", name=line)).to_be_visible()
    page.keyboard.press("Escape")
    button(page, "Delete draft").click()
    button(page, "Cancel").click()
    expect(cell(page, "Name of class 1")).to_have_value("wide")
    button(page, "Delete draft").click()
    button(page, "Delete it").click()
    expect(cell(page, "Name of the system")).to_have_value("my system")
    expect(cell(page, "Name of class 1")).to_have_value("")
    page.reload()
    drafts.click()
    expect(page.get_by_role("option", name=line)).to_have_count(0)


def test_units_of_a_pasted_block_are_understood(page: Any, server: Any) -> None:
    """Times with units become rates per time unit, as long as the user says that one is."""
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    cell(page, "Rate of class 1 on machine 1").evaluate(PASTE, "2 s\t500 ms\n4 s\t1 s")
    page.get_by_role("combobox", name="One time unit of the system is").click()
    page.get_by_role("option", name="1 min", exact=True).click()
    expect(page.get_by_text("the first row: 30, 120")).to_be_visible()
    button(page, "Take them").click()
    expect(cell(page, "Rate of class 1 on machine 1")).to_have_value("30")
    assert rates(page) == [["30", "120"], ["15", "60"]]
    cell(page, "Rate of class 1 on machine 1").evaluate(PASTE, "30 /min\t2 /s\n15 /min\t1 /s")
    page.get_by_role("combobox", name="One time unit of the system is").click()
    page.get_by_role("option", name="1 s", exact=True).click()
    button(page, "Take them").click()
    expect(cell(page, "Rate of class 1 on machine 1")).to_have_value("0.5")
    assert rates(page) == [["0.5", "2"], ["0.25", "1"]]


def test_fifty_classes_on_two_hundred_machines(page: Any, server: Any) -> None:
    """They are pasted into the first cell, edited by keyboard and kept; the page stays alive."""
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    opened: list[Any] = []
    page.on("framenavigated", lambda frame: opened.append(frame))
    block = "\n".join(
        "\t".join(f"{1 + (7 * i + 3 * j) % 10},5" for j in range(200)) for i in range(50)
    )
    first = cell(page, "Rate of class 1 on machine 1")
    first.evaluate(PASTE, block)
    expect(first).to_have_value("1.5")
    expect(page.get_by_text(re.compile(r"λ\* = \d+\.\d"))).to_be_visible()
    assert page.evaluate(COUNT) < 600, "only cells near the visible part exist"
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the rate of class 2 on machine 1 is 'x'; expected")).to_be_visible()
    wrong = cell(page, "Rate of class 2 on machine 1")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(cell(page, "Rate of class 3 on machine 1")).to_be_focused()
    button(page, "Undo").click()
    expect(wrong).not_to_have_attribute("aria-invalid", "true")
    page.locator(".gw-cells").evaluate("box => box.scrollTo(1e6, 1e6)")
    last = cell(page, "Rate of class 50 on machine 200")
    expect(last).to_have_value(f"{1 + (7 * 49 + 3 * 199) % 10}.5")
    last.fill("2.25")
    last.press("Enter")
    expect(page.get_by_text(re.compile(r"λ\* = \d+\.\d"))).to_be_visible()
    page.reload()
    expect(first).to_have_value("1.5", timeout=120_000)
    page.locator(".gw-cells").evaluate("box => box.scrollTo(1e6, 1e6)")
    expect(last).to_have_value("2.25")
    assert len(opened) == 1, "it was opened again once, by the test"


FOCUSED = "document.activeElement.ariaLabel || document.activeElement.innerText"


def tab_to(page: Any, name: str, key: str = "Tab") -> None:
    """Press a key until something of that name has the focus."""
    passed = []
    for _ in range(60):
        page.keyboard.press(key)
        passed.append(page.evaluate(FOCUSED).strip().lower())
        if passed[-1] == name.lower():
            return
    raise AssertionError(f"{name} is not reached: {passed}")


def test_a_system_is_loaded_edited_and_undone_with_the_keyboard_alone(
    page: Any, server: Any
) -> None:
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    tab_to(page, "Load a system")
    page.keyboard.type("2.B –")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="2.B: no changes")).to_be_visible()
    tab_to(page, "Rate of class 1 on machine 1")
    before = cell(page, "Rate of class 1 on machine 1").input_value()
    page.keyboard.type("77")
    page.keyboard.press("Enter")
    expect(cell(page, "Rate of class 2 on machine 1")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="● 2.B: not saved")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(cell(page, "Rate of class 1 on machine 1")).to_have_value(before)
    page.keyboard.press("Control+y")
    expect(cell(page, "Rate of class 1 on machine 1")).to_have_value("77")
    tab_to(page, "Undo", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(cell(page, "Rate of class 1 on machine 1")).to_have_value(before)
