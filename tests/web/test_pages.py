"""Simulate, Run, Statistics and Published, in a browser."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect


def pick(page: Any, label: str, text: str) -> None:
    """Choose from a list by typing into it."""
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    box.fill(text)
    page.get_by_role("option").filter(has_text=text).first.click()


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


INTERVAL = re.compile(r"\d ± \d")
CODE = """from gridwright import push


@push
def first(task_class, view):
    return WHAT
"""


SELECTED = """([field, text]) =>
field.value.slice(field.selectionStart, field.selectionEnd) === text"""


def wait_until_selected(page: Any, text: str) -> None:
    """Wait until the page has selected the line of an error, which it does after showing it."""
    field = page.get_by_label("Code of a policy").element_handle()
    page.wait_for_function(SELECTED, arg=[field, text])


WRONG = [
    ("Replications", "0", "Replications is 0; expected a number ≥ 1"),
    ("Replications", "", "Replications is empty; expected a whole number"),
    ("Seed", "1.5", "Seed is 1.5; expected a whole number"),
    ("Seed", "-1", "Seed is -1; expected a number ≥ 0"),
    ("Time units", "0", "Time units is 0.0; expected a number > 0"),
]


def test_a_shipped_policy_and_pasted_code_are_simulated(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/simulate")
    page.get_by_text("A policy of your own, as code").click()
    link = page.get_by_role("link", name="log in").get_attribute("href")
    page.goto(f"{server.url}{link}")  # a click is lost while the part above it opens
    page.get_by_label("The token that was printed").fill(server.token)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/")
    page.goto(f"{server.url}/simulate")
    page.locator(".q-chip", has_text="lpas").locator(".q-chip__icon--remove").click()
    page.get_by_text("A policy of your own, as code").click()
    code = page.get_by_label("Code of a policy")
    code.fill(CODE.replace("WHAT", "nothing").replace("view):", "view:"))
    page.get_by_label("Time units", exact=True).fill("500")
    page.get_by_label("Replications").fill("4")
    button(page, "Start").click()
    expect(page.get_by_text(re.compile(r"line 5: .*\(def first"))).to_be_visible()
    wait_until_selected(page, "def first(task_class, view:")
    code.fill(CODE.replace("WHAT", "nothing"))
    button(page, "Start").click()
    expect(page.get_by_text(re.compile(r"line 6: NameError: .*\(return nothing\)"))).to_be_visible()
    wait_until_selected(page, "    return nothing")
    code.fill(CODE.replace("WHAT", "task_class"))
    button(page, "Start").click()
    expect(page.get_by_text("Best: first")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="first")
    expect(row).to_contain_text(INTERVAL)
    expect(row).to_contain_text("stable")
    expect(page.get_by_text(re.compile("first: mean response .* lower than mct"))).to_be_visible()
    page.reload()
    expect(page.get_by_text("Best: first")).to_be_visible()
    for label, typed, said in WRONG:
        box = page.get_by_label(label, exact=True)
        right = box.input_value()
        box.fill(typed)
        button(page, "Start").click(delay=200)  # as a person's: the box is left before it ends
        expect(page.get_by_text(said)).to_be_visible()
        expect(box).to_have_value(typed)
        box.fill(right)
    button(page, "Stop").click()
    expect(page.get_by_text("no simulation is running")).to_be_visible()
    page.get_by_label("Replications").fill("1000")
    page.get_by_label("Time units", exact=True).fill("100000")
    button(page, "Start").click()
    expect(page.get_by_text(re.compile("100,000 time units, .*running"))).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="mct")).to_contain_text(INTERVAL)
    button(page, "Stop").click()
    expect(page.get_by_text(re.compile("100,000 time units, .*stopped"))).to_be_visible()
    found = page.request.get(f"{server.url}/api/simulations").json()[0]
    assert (found["state"], found["share"] < 1) == ("stopped", True)
    result = page.request.get(f"{server.url}/api/simulations/{found['id']}/result").json()
    assert [each["policy"] for each in result["results"]] == ["mct"]


def downloaded(page: Any, name: str) -> Path:
    with page.expect_download() as found:
        button(page, name).click()
    return Path(found.value.path())


CLASSES = (
    "By class (times in time units, arrivals in jobs per time unit, lengths of jobs as shares "
    "of the mean)"
)
RATES = "Execution rates in jobs per time unit: desired / actual"


def tile(page: Any, machine: str) -> Any:
    return page.get_by_role("option", name=re.compile(rf"^machine {machine}: "))


CLEAR_AND_CLICK = """() => {
  const named = (tag, start) => [...document.querySelectorAll(tag)].find(
    (each) => (each.ariaLabel || each.innerText).startsWith(start));
  named("button", "Clear the selection").click();
  named("[role=option]", "machine 1: ").click();
}"""
"""Two clicks of which the second comes before the server can have heard of the first."""


def test_a_run_is_watched_stepped_into_stopped_and_read_off(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/statistics")
    page.get_by_role("link", name="Run", exact=True).click()
    pick(page, "Experiment or system", "MGST-3")
    expect(page.get_by_label("Duration", exact=True)).to_have_value("60")
    button(page, "List machines").click()
    expect(page.get_by_text("a process for each machine")).to_be_visible()
    page.get_by_label("Time unit", exact=True).fill("3")
    page.get_by_label("Duration", exact=True).fill("0")
    button(page, "Start").click()
    expect(page.get_by_text("Duration is 0.0; expected a number > 0")).to_be_visible()
    page.get_by_label("Duration", exact=True).fill("")
    button(page, "Start").click(delay=200)
    expect(page.get_by_text("Duration is empty; expected a number")).to_be_visible()
    page.get_by_label("Duration", exact=True).fill(
        "600"
    )  # longer than all that follows, however busy the computer
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Reading interval", exact=True).fill("0.3")
    button(page, "Start").click()
    page.wait_for_url(re.compile(r"/run/\d+$"))
    number = page.url.rpartition("/")[2]
    expect(page.get_by_text(re.compile(rf"Run {number}: .*running"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"[1-9][\d,]* of [\d,]+ jobs finished"))).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="finished").first).to_be_visible()
    for name in ("Pause", "Kill", "Impose"):
        expect(button(page, name)).to_be_disabled()  # no machine is selected
    heads = ["id", "attempt", "class", "machine", "submitted", "sent", "started", "done", "status"]
    for head in [*heads, "timed out"]:
        expect(page.get_by_role("columnheader", name=head, exact=True).first).to_be_visible()
    newest = page.get_by_role("row").nth(1).get_by_role("cell").first
    expect(newest).to_have_text(re.compile(r"^[1-9]\d*$"))  # the newest jobs come first
    expect(tile(page, "4")).to_contain_text(re.compile(r"CPU \d+ % free for jobs, predicted \d+ %"))
    expect(
        page.get_by_text(re.compile(r"^Bars: the share of the last \d+\.\d time"))
    ).to_be_visible()
    tile(page, "1").click()
    tile(page, "3").click(modifiers=["Shift"])
    expect(page.get_by_text("Selected: 1, 2, 3")).to_be_visible()
    button(page, "Pause").click()
    expect(page.get_by_text(re.compile("^Paused: machines .*1, 2, 3$"))).to_be_visible()
    for machine in "123":
        expect(tile(page, machine)).to_contain_text("paused")
    expect(button(page, "Pause")).to_be_disabled()
    expect(button(page, "Resume")).to_be_enabled()
    tile(page, "3").press("ArrowRight")
    button(page, "Clear the selection").click()
    expect(page.get_by_text("Select machines by a click")).to_be_visible()
    tile(page, "4").press(" ")
    button(page, "Kill").click()
    expect(page.get_by_text("Kill machine 4? Running jobs are lost")).to_be_visible()
    button(page, "Cancel").click()
    expect(tile(page, "4")).not_to_contain_text("killed")
    button(page, "Kill").click()
    button(page, "Kill it").click()
    expect(tile(page, "4")).to_contain_text("killed")
    expect(page.get_by_text("An operator kills machine 4.")).to_be_visible()
    events = page.get_by_role("log", name="Events")
    button(page, "operators").click()
    expect(events.get_by_role("listitem")).to_have_count(4)  # whatever else has happened
    expect(events.get_by_role("listitem").first).to_contain_text("An operator kills machine 4.")
    button(page, "machines").click()
    expect(events).to_contain_text("Machine 6 is up.")
    expect(events).not_to_contain_text("Plan ")
    button(page, "all").click()
    button(page, "Start").click()
    expect(tile(page, "4")).not_to_contain_text("killed")
    page.get_by_text("Failures of the whole run").click()
    strip = page.get_by_role("img", name=re.compile("^machine 1: .*by an operator"))
    expect(strip).to_be_visible()
    page.evaluate(CLEAR_AND_CLICK)
    expect(page.get_by_text("Selected: 1", exact=True)).to_be_visible()
    page.get_by_label("for time units").fill("5")
    button(page, "Fail now").click(delay=200)
    expect(page.get_by_text("Taken away: machine 1")).to_be_visible()
    expect(tile(page, "1")).to_contain_text("down, paused")
    button(page, "Resume").click()
    expect(page.get_by_text("Resumed: machine 1")).to_be_visible()
    expect(tile(page, "1")).not_to_contain_text("paused")  # it stays down until it is repaired
    expect(page.get_by_text("An operator takes machine 1 away for 5 time units.")).to_be_visible()
    page.get_by_label("availability").fill("")
    button(page, "Impose").click()
    expect(page.get_by_text(re.compile("^Impose: fill in the availability"))).to_be_visible()
    page.get_by_label("availability").fill("1.5")
    button(page, "Impose").click(delay=200)
    expect(page.get_by_text("availability 1.5 for 5 time units; expected more")).to_be_visible()
    button(page, "Pause the run").click()
    expect(page.get_by_text(re.compile(rf"Run {number}: .*paused"))).to_be_visible()
    button(page, "Resume the run").click()
    expect(page.get_by_text(re.compile(rf"Run {number}: .*running"))).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile(r"[1-9][\d,]* of [\d,]+ jobs finished"))).to_be_visible()
    button(page, "Stop").click()
    button(page, "Stop it").click()
    expect(page.get_by_text(re.compile(rf"Run {number}: .*stopped"))).to_be_visible()
    expect(page.get_by_text("continues it", exact=False).first).to_be_visible()
    machines = page.request.get(f"{server.url}/api/runs/{number}/machines").json()
    assert {(each["state"], each["running"]) for each in machines} == {("off", None)}
    expect(tile(page, "1")).to_contain_text("off")
    expect(page.get_by_text("Selected: 1")).to_be_visible()  # also after the page was reloaded
    for name in ("Stop", "Pause the run", "Kill", "Fail now", "Ping"):
        expect(button(page, name)).to_be_disabled()
    expect(button(page, "Resume the run")).to_be_enabled()
    kinds = {
        each["kind"]
        for each in page.request.get(f"{server.url}/api/runs/{number}/events?limit=1000").json()
    }
    assert {"paused", "killed", "started again"} <= kinds
    strip = page.get_by_role("img", name=re.compile("^Gantt chart of the last minutes: 6 machines"))
    expect(strip).to_be_visible()
    for title in ("Queues: number of jobs by class", "What each machine did last"):
        picture = downloaded(page, f"{title}: download PNG").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5_000, "something is drawn"
    page.get_by_role("link", name="Statistics of this run").click()
    expect(page.get_by_role("heading", name="Response by class", exact=True)).to_be_visible()


def test_the_statistics_of_a_run_that_was_operated(page: Any, server: Any) -> None:
    body = {"experiment": "MGST-3", "time_unit": 2, "duration": 600}
    answer = page.request.post(f"{server.url}/api/runs", data=body)
    number = answer.json()["run"]
    of_run = f"{server.url}/api/runs/{number}"
    page.goto(f"{server.url}/run/{number}")
    expect(page.get_by_text(re.compile(r"[1-9][\d,]* of [\d,]+ jobs finished"))).to_be_visible()
    for machine, verb in (
        ("1", "pause"),
        ("2", "pause"),
        ("3", "pause"),
        ("4", "kill"),
        ("4", "start"),
    ):
        answer = page.request.post(f"{of_run}/machines/{machine}/{verb}", data={})
        assert answer.ok, answer.text()
    assert page.request.post(f"{of_run}/stop", data={}).ok
    page.goto(f"{server.url}/statistics/{number}")
    for title in ("Response by class", "Utilisation", "The whole run"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    whole = page.get_by_role("img", name=re.compile("^Gantt chart of the whole run: 6 machines"))
    expect(whole).to_be_visible()
    utilised = downloaded(page, "Utilisation: download CSV").read_text().splitlines()
    assert utilised[0] == "machine,finished,lost,failed,taken away,paused,idle"
    assert len(utilised) == 7
    for row in utilised[1:]:
        assert sum(map(float, row.split(",")[1:])) == pytest.approx(1, abs=1e-3)
    assert downloaded(page, "The whole run: download PNG").read_bytes()[1:4] == b"PNG"
    assert downloaded(page, "Response by class: download PNG").read_bytes()[1:4] == b"PNG"
    (*_, overall) = json.loads(downloaded(page, "Response by class: download JSON").read_text())
    assert overall["class"] == "all"
    assert overall["mean"] > 0
    (*_, total) = json.loads(downloaded(page, f"{CLASSES}: download JSON").read_text())
    assert total["jobs"] == total["finished"] + total["unfinished"] > 0
    rates = downloaded(page, f"{RATES}: download CSV").read_text()
    assert rates.splitlines()[0] == "class,machine,desired,actual"
    assert len(rates.splitlines()) == 1 + 4 * 6
    expect(page.get_by_text(RATES)).to_be_visible()
    expect(page.get_by_role("columnheader", name="length desired")).to_be_visible()
    button(page, "Set beside its twin").click()
    expect(page.get_by_text(re.compile(r"The twin is being simulated: \d"))).to_be_visible()
    expect(page.get_by_text("Causes of the gap")).to_be_visible(timeout=90_000)
    named = re.compile(r"^operators \(3 pauses, 1 kill, 1 start\)$")
    expect(page.get_by_role("rowheader", name=named)).to_be_visible()
    page.get_by_text("What operators did:").click()
    expect(page.get_by_text("An operator kills machine 4.")).to_be_visible()
    steps = json.loads(
        downloaded(page, "From the twin to the run, by cause: download JSON").read_text()
    )
    assert [steps[0]["cause"], steps[-1]["cause"]] == ["twin", "run"]
    assert sum(each["change"] or 0 for each in steps) == pytest.approx(
        steps[-1]["mean response after it"] - steps[0]["mean response after it"]
    )
    expect(page.get_by_role("heading", name="Run, twin and published", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="published, testbed")).to_be_visible()
    whole = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="overall"))
    assert len(whole.get_by_role("cell").last.inner_text()) > 2, "its published figures are shown"
    with page.expect_download() as found:
        page.get_by_role("link", name="Export as CSV (zip)").click()
    assert found.value.suggested_filename == f"run-{number}.zip"
    with zipfile.ZipFile(found.value.path()) as tables:
        names = [Path(each).name for each in tables.namelist()]
        assert {"jobs.csv", "system.csv"} <= set(names)
        assert all(each.endswith(".csv") for each in names), "every table is there once"
        began = re.search("began at,(.*)", tables.read(f"run-{number}/system.csv").decode())
    assert began
    expect(page.get_by_text(f"Began {began[1].strip()};")).to_be_visible()
    said = r"jobs finished, with a mean response of .* That is .* of the simulated twin; the"
    expect(page.get_by_text(re.compile(said))).to_be_visible()
    for _ in range(4):  # whichever comes first, the table in the browser or its rows
        page.goto(f"{server.url}/run/{number}")
        expect(page.get_by_text("The run is stopped.")).to_be_visible()
        expect(page.get_by_text("“Resume the run” continues it.")).to_be_visible()
        expect(page.get_by_role("cell", name=re.compile("^(un)?finished")).first).to_be_visible()
        expect(page.get_by_text(re.compile(rf"^1-\d+ of {total['jobs']}$"))).to_be_visible()
    going = page.get_by_role("cell", name=re.compile("^(waiting|queued|sent)$"))
    expect(going).to_have_count(0)  # nothing happens any more


def test_an_experiment_of_ones_own(page: Any, server: Any) -> None:
    """What was saved with a policy is offered as an experiment, with all that it says."""
    folder = server.home / "systems"
    folder.mkdir(exist_ok=True)
    words = ["policy = 'gcmu:idle=fastest'", "time_unit = 0.1", "duration = 7", "[system]"]
    words += ["arrivals = [1]", "rates = [[2, 3]]"]
    (folder / "my test.toml").write_text("\n".join(words))
    page.goto(f"{server.url}/run")
    pick(page, "Experiment or system", "my test")
    expect(page.get_by_label("Duration", exact=True)).to_have_value("7")
    page.get_by_label("Run on", exact=True).fill("10.0.0.1")
    button(page, "Start").click()
    expect(page.get_by_text("'10.0.0.1' is not the address of a cluster")).to_be_visible()
    page.get_by_label("Run on", exact=True).fill("")
    button(page, "Start").click()
    expect(page.get_by_text(re.compile(r"my test under gcmu:idle=fastest"))).to_be_visible()


@pytest.mark.parametrize("width", [1280, 700, 400])
def test_words_are_not_under_the_head_of_the_page(page: Any, server: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{server.url}/published")
    page.get_by_role("link", name="Words", exact=True).click()
    page.wait_for_url(f"{server.url}/help#words")
    words = page.get_by_role("heading", name="Words", exact=True)
    expect(words).to_be_in_viewport()
    page.wait_for_function("document.querySelector('#words').getBoundingClientRect().top < 200")
    head = page.locator(".q-header").bounding_box()
    assert words.bounding_box()["y"] >= head["height"] - 1


def test_published(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/published")
    expect(page.get_by_text(re.compile("34 of 34 cells"))).to_be_visible()
    page.get_by_label("Reading", exact=True).click()
    page.get_by_role("option", name="every reading").click()
    expect(page.get_by_text(re.compile("34 of 34 cells"))).to_have_count(0)
    page.get_by_label("Reading", exact=True).click()
    page.get_by_role("option", name="as the source says").click()
    expect(page.get_by_text(re.compile("34 of 34 cells"))).to_be_visible()
    expect(page.get_by_text(re.compile("x86_64.*x86_64"))).to_be_visible()  # not in italics
    page.get_by_label("Search").fill("2.B LPAS")
    expect(page.get_by_text("1 of 34 cells: 1 differs")).to_be_visible()  # its row has moved
    button(page, "✗ differs: say why").click()
    expect(page.get_by_text("No reading of LPAS that we tried")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("Search").fill("50.83")
    expect(button(page, "✗ differs: say why")).to_have_count(0)
    button(page, "! errata: say why").click()
    expect(page.get_by_role("dialog").get_by_text("51.38 is a guess")).to_be_visible()
    button(page, "Close").click()
    page.get_by_label("Search").fill("Linux")
    expect(page.get_by_text("No cells match.")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.get_by_label("Verdict", exact=True).click()
    page.get_by_role("option", name="differs").click()
    expect(button(page, "✗ differs: say why").first).to_be_visible()
    expect(button(page, "✓ agrees: say why")).to_have_count(0)


def test_a_table_is_run_again(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/published")
    page.get_by_label("Table or figure").click()
    page.get_by_label("Table or figure").fill("LP –")
    page.get_by_role("option", name=re.compile("^LP –")).click()
    page.get_by_label("Scale", exact=True).click()
    page.get_by_role("option", name="runs of full length").click()
    button(page, "Run again").click()
    expect(page.get_by_text("LP run again: done, 100 %")).to_be_visible()
    expect(page.get_by_text("busy systems come out low")).to_have_count(0)
    expect(page.get_by_text("290 of 290 cells: 290 agree")).to_be_visible()
    expect(button(page, "✓ agrees: say why").first).to_be_visible()


def test_two_browsers_and_the_way_back(browser: Any, page: Any, server: Any) -> None:
    page.goto(f"{server.url}/define")
    box = page.get_by_label("Rate of class 1 on machine 1", exact=True)
    box.fill("9")
    expect(page.get_by_text("λ* = 1.3696")).to_be_visible()
    other = browser.new_context()
    second = other.new_page()
    second.goto(f"{server.url}/define")
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
    expect(page.get_by_role("option").nth(1)).to_be_visible()
    page.get_by_role("option").nth(0).click()
    page.get_by_role("option").nth(1).click()
    expect(page.get_by_text("Mean response in time units (jobs finished)")).to_be_visible()


def test_what_is_not_there(page: Any, server: Any) -> None:
    for path in ("run", "statistics"):
        for number in ("999", "abc", "-1"):
            page.goto(f"{server.url}/{path}/{number}")
            expect(page.get_by_text(f"There is no run {number}.")).to_be_visible()
            page.get_by_role("link", name="All runs").click()
            page.wait_for_url(f"{server.url}/{path}")
