"""Define, in a browser."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from gridwright.testbed import Experiment, Fault


def cell(page: Any, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def test_a_system_is_typed_and_its_capacity_changes(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
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
    page.goto(f"{server.url}/define")
    page.get_by_role("combobox", name="Switched off").click()
    page.get_by_role("option", name="2", exact=True).click()
    expect(page.get_by_text(re.compile(r"λ\* goes from 1\.3333 to 0\.\d+"))).to_be_visible()
    expect(page.get_by_text(re.compile("No policy can keep up"))).to_be_visible()


def test_systems_come_from_the_catalogue_files_and_spreadsheets(
    page: Any, server: Any, tmp_path: Path
) -> None:
    page.goto(f"{server.url}/define")
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
    page.goto(f"{server.url}/define")
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
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    for path in ("/simulate", "/run", "/statistics", "/published", "/define"):
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
    page.goto(f"{server.url}/define")
    expect(page.locator("body.body--dark")).to_be_visible()
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("body.body--light")).to_be_visible()
    page.get_by_role("link", name="Published").click()
    expect(page.get_by_role("heading", name="Published")).to_be_visible()
    expect(page.locator("body.body--light")).to_be_visible()


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def part(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def test_an_experiment_is_defined_beside_the_system(page: Any, server: Any, tmp_path: Path) -> None:
    page.goto(f"{server.url}/define")
    cell(page, "Name of the system").fill("whole")
    page.get_by_role("tab", name="System").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    cell(page, "Time unit").fill("-1")
    expect(page.get_by_text("Time unit is -1.0; expected a number > 0")).to_be_visible()
    button(page, "Undo").click()
    expect(cell(page, "Time unit")).to_have_value("1")
    cell(page, "Reading interval").fill("0.5")
    cell(page, "Mean up-time").fill("10")
    expect(page.get_by_text("Mean repair time is missing")).to_be_visible()
    cell(page, "Mean repair time").fill("2")
    page.get_by_role("switch", name="Use a time-out").click()
    expect(cell(page, "Time-out")).to_have_value("4")

    part(page, "Machines")
    file = tmp_path / "machines.srs"
    file.write_text("lab-1; s3cret; 0.5; 500\n<b>lab-2; s3cret; 1; 500\nlab-3; s3cret; 1; 500\n")
    with page.expect_file_chooser() as chooser:
        button(page, "Import a machine list").click()
    chooser.value.set_files(file)
    expect(page.get_by_role("cell", name="<b>lab-2")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="lab-3")
    row.get_by_role("checkbox").click()
    button(page, "Remove those selected").click()
    expect(row).to_have_count(0)
    cell(page, "Assumed rate of class 2").fill("5")
    button(page, "Calibrate").click()
    expect(page.get_by_text(re.compile(r"Calibration: running, \d+ % \(machine"))).to_be_visible()
    button(page, "Stop calibrating").click()
    expect(page.get_by_text("Calibration: stopped")).to_be_visible()

    part(page, "Failure periods")
    button(page, "Fill traces for all").click()
    expect(page.get_by_text("the run uses them")).to_be_visible()
    expect(page.get_by_text(re.compile(r"mean up-time \d.*, mean down-time \d"))).to_be_visible()
    cell(page, "End of period 1").fill("0")
    wrong = page.get_by_text(re.compile(r"Failures, row \d+, column 3 is 0.0; expected"))
    expect(wrong).to_be_visible()
    button(page, "Undo").click()
    page.get_by_label("Mean up-time of this machine").fill("0.2")
    button(page, "Apply").click()
    expect(page.get_by_text("Mean repair time of this machine is empty")).to_be_visible()
    page.get_by_label("Mean repair time of this machine").fill("0.1")
    button(page, "Apply").click()
    expect(page.get_by_text(re.compile(r"Machine lab-1: \d\d+ periods"))).to_be_visible()
    button(page, "Clear all").click()
    expect(page.get_by_text("No periods yet")).to_be_visible()
    button(page, "Add a period").click()
    expect(cell(page, "End of period 1")).to_have_value("2")
    cell(page, "End of period 1").fill("2.5")

    part(page, "Availability")
    page.get_by_role("row").filter(has_text="lab-1").get_by_role("checkbox").click()
    page.get_by_role("textbox", name="Availability").fill("0.5")
    page.get_by_role("combobox", name="Prediction mode").click()
    page.get_by_role("option", name="recursive").click()
    button(page, "Set for those selected").click()
    expect(page.get_by_role("cell", name="recursive (c 0.5)")).to_be_visible()

    with page.expect_download() as found:
        button(page, "Download TOML").click()
    made = Experiment.from_file(found.value.path())
    assert made.system.machines == ("lab-1", "<b>lab-2")
    assert made.system.mean_availability.tolist() == [0.5, 1]
    assert made.system.believed.nominal[1, 0] == 5
    assert made.faults() == (Fault(0, 1, 2.5),)
    assert (made.timeout, made.resolution, made.known_speeds()[0].seconds) == (4, 0.5, 30)
    assert "s3cret" not in made.to_toml()
    button(page, "Save").click()
    expect(page.get_by_text("whole is saved; Simulate and Run offer it")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")


def test_what_was_defined_is_run_and_stepped_into(page: Any, server: Any) -> None:
    (server.home / "systems").mkdir(exist_ok=True)
    words = ["policy = 'lpas'", "resolution = 0.5", "machines = ['lab-1', 'lab-2']", "[system]"]
    words += ["name = 'stepped'", "groups = ['lab-1', 'lab-2']"]
    words += ["arrivals = [5, 8]", "rates = [[8, 3], [4, 10]]"]
    (server.home / "systems" / "stepped.toml").write_text("\n".join(words))
    page.goto(f"{server.url}/define")
    box = page.get_by_role("combobox", name="Load an experiment")
    box.click()
    box.fill("stepped")
    page.get_by_role("option", name="stepped (saved)").click()
    expect(page.get_by_role("rowheader", name="2", exact=True)).to_be_visible()
    button(page, "Run it").click()
    page.wait_for_url(re.compile(r"/run/\d+$"))
    number = page.url.rpartition("/")[2]
    expect(page.get_by_text(re.compile("stepped under .*, running"))).to_be_visible(timeout=30_000)
    page.go_back()
    part(page, "Availability")
    page.get_by_role("row").filter(has_text="lab-1").get_by_role("checkbox").click()
    expect(page.get_by_text(f"run {number}: stepped")).to_be_visible()
    page.get_by_role("textbox", name="Availability").fill("0.25")
    page.get_by_role("combobox", name="Prediction mode").click()
    page.get_by_role("option", name="weighted mean").click()
    button(page, "Send to the run").click()
    expect(page.get_by_text(f"run {number}: sent to lab-1")).to_be_visible()
    events = page.request.get(f"{server.url}/api/runs/{number}/events?limit=1000").json()
    said = {each["kind"]: (each["machine"], each["detail"]) for each in events}
    assert said["availability imposed"] == ("lab-1", "0.25")
    assert said["prediction"] == ("lab-1", "weekly")
    assert page.request.post(f"{server.url}/api/runs/{number}/stop", data={}).ok
    page.goto(f"{server.url}/run")
    box = page.get_by_role("combobox", name="Experiment or system")
    box.click()
    box.fill("stepped")
    expect(page.get_by_role("option", name="stepped (saved experiment)")).to_be_visible()


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

    button(page, "Simulate it").click()
    page.wait_for_url(re.compile("/simulate/[0-9a-f]+$"))
    done = page.get_by_text(re.compile("my system, .* time units, done"))
    expect(done).to_be_visible(timeout=120_000)
    expect(page.get_by_role("row").filter(has_text="lpas_dg").first).to_be_visible()
    chosen = page.get_by_role("combobox", name="System", exact=True)
    expect(chosen).to_have_value("my system (as it was defined)")
    expect(page.get_by_text("3 classes × 4 machines, long-run load")).to_be_visible()


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
    expect(page.get_by_text("rates, row 2, column 1 is 'x'; expected a number")).to_be_visible()
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
