"""Define, in a browser."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from gridwright.testbed import Experiment, Fault

SLOW_WORDS = "the rate of class 2 on machine 2 is 'fast'; expected a number"


def cell(page: Any, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def test_a_system_is_typed_and_its_capacity_changes(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
    cell(page, "Rate of class 2 on machine 2").fill("20")
    expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
    cell(page, "Rate of class 2 on machine 2").fill("fast")
    expect(page.get_by_text(SLOW_WORDS)).to_be_visible()
    expect(page.get_by_text("λ* unknown")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
    page.get_by_role("button", name="Add machine").click()
    expect(cell(page, "Rate of class 1 on machine 3")).to_be_visible()
    page.reload()
    expect(cell(page, "Rate of class 1 on machine 3")).to_be_visible()


def test_what_changes_with_a_machine_switched_off(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
    expect(page.get_by_text("λ* = 1.3333")).to_be_visible()
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
    expect(cell(page, "Rate of class 1 on machine 1")).to_be_visible()  # its script has come
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
