"""Learn: films of a simulation, the polygon of the LP, and the stops in a browser."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from gridwright import allocate
from gridwright.model import System
from gridwright.policies import find
from gridwright.reproduction import shipped
from gridwright.simulation import replicate
from gridwright.web.film import GONE, film
from gridwright.web.pages.learn import LAB
from gridwright.web.polygon import frontier
from gridwright.web.stops import Stop, stops

STOPS = stops()


def test_a_film_is_the_simulation() -> None:
    stop = STOPS[0]
    films = [film(stop.system, policy, 10.0, 3) for policy in ("mct", "gcmu")]
    first, second = ([task[:2] for task in each["tasks"]] for each in films)
    assert first == second, "the same arrivals"
    for each in films:
        run = replicate(
            stop.system,
            find(each["policy"]),
            horizon=10.0,
            seed=np.random.SeedSequence(3),
            interpreted=True,
        )
        assert len(each["tasks"]) == run.tasks
        assert each["number"][-1] == [10.0, run.number[-1]]
        for machine in range(2):
            spans = sorted(_services(each["tasks"], 2 * machine + 1))
            assert len(spans) > 10
            assert all(end <= start for (_, end), (start, _) in pairwise(spans)), "one at a time"


def _services(tasks: list[list[float]], place: int) -> list[tuple[float, float]]:
    found = []
    for task in tasks:
        for k in range(2, len(task) - 1, 2):
            if task[k] == place:
                found.append((task[k - 1], task[k + 1]))
    return found


def test_a_failed_machine_gives_its_tasks_back() -> None:
    failing = STOPS[0].system.replace(failures={"mean_uptime": 3, "mean_repair": 2})
    made = film(failing, "mct", 20.0, 1)
    assert made["down"]
    for machine, start, end in made["down"]:
        spans = _services(made["tasks"], 2 * int(machine) + 1)
        assert [span for span in spans if span[0] < end and span[1] > start] == []
    assert all(task[-1] == GONE or GONE not in task[2::2] for task in made["tasks"])


@pytest.mark.parametrize("mix", [(1.0, 0.0), (3.0, 1.0), (1.0, 1.0), (1.0, 9.0)])
def test_the_polygon_ends_where_the_capacity_does(mix: tuple[float, float]) -> None:
    rates = np.array([[8.0, 3.0, 2.0], [4.0, 10.0, 0.0]])
    system = STOPS[0].system.replace(arrivals=[each + 1e-9 for each in mix], rates=rates.tolist())
    far = allocate(system).capacity * np.array(system.arrival_rates)
    corners = np.array(frontier(rates))
    (x, y), steps = corners[:-1].T, np.diff(corners, axis=0)
    aside = steps[:, 0] * (far[1] - y) - steps[:, 1] * (far[0] - x)  # 0 on an edge, else inside
    assert aside.min() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: str(stop.title))
def test_a_stop_is_whole(stop: Stop) -> None:
    assert 0 <= stop.right < len(stop.choices) == len(set(stop.choices))
    assert all(find(policy).kind.is_central for policy in stop.policies)
    assert len(stop.policies) == 2
    assert allocate(stop.system).load > 0
    assert all(each.strip() for each in (stop.text, stop.question, stop.answer))
    assert [bool(hint) for hint in stop.hints] == [
        k != stop.right for k in range(len(stop.choices))
    ]
    number = STOPS.index(stop) + 1
    page = (shipped("learn") / f"{stop.read}.md").read_text("utf-8")
    assert f"/learn/{number})" in page, "the docs lead back to the stop"


@pytest.mark.slow
@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: str(stop.title))
def test_what_a_stop_says_of_its_experiment_is_so(stop: Stop) -> None:
    assert stop.predict.strip()
    assert stop.do.strip()
    first, second = stop.policies
    words = " ".join(stop.see.split())
    told = re.search(
        rf"(\d+) tasks are in the system under `{first}` and (\d+) under `{second}`", words
    )
    if told is None:  # it is about the plan alone
        assert f"load to {100 * allocate(stop.tried()).load:.0f} %" in words
        return
    when = stop.try_.get("time", stop.end)
    assert list(told.groups()) == [str(each) for each in _numbers(stop, stop.tried(), when)]
    before = re.search(r"there are (\d+) and (\d+)", words)
    if before:
        assert list(before.groups()) == [str(n) for n in _numbers(stop, stop.system, stop.end)]


def _numbers(stop: Stop, system: System, when: float) -> list[int]:
    """Count the tasks in the system at a time, under each policy of a stop."""
    films = [film(system, policy, stop.end, 1)["tasks"] for policy in stop.policies]
    return [
        sum(task[1] <= when and not (task[-1] == GONE and task[-2] <= when) for task in tasks)
        for tasks in films
    ]


def test_the_stops_are_clicked_through(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/")
    page.get_by_role("link", name="Learn", exact=True).click()
    for number, stop in enumerate(STOPS, 1):
        expect(page.get_by_role("heading", name=f"{number}. {stop.title}")).to_be_visible()
        expect(page.get_by_text("the same for each policy")).to_be_visible()
        for policy in stop.policies:
            expect(page.get_by_text(re.compile(rf"^{policy} \((push|pull)\)"))).to_be_visible()
        if number == 1:
            _play(page)
            _choose(page)
            _slide(page)
        wrong = stop.choices[stop.right - 1]
        page.get_by_role("radio", name=wrong, exact=True).click()
        expect(page.get_by_text("Not this one.")).to_be_visible()
        hint = max(re.split("[`*]", stop.hints[stop.right - 1]), key=len)
        expect(page.get_by_text(hint.strip())).to_be_visible()
        right = page.get_by_role("radio", name=stop.choices[stop.right], exact=True)
        if number == 1:  # by keyboard alone
            page.keyboard.press("ArrowDown")
            expect(right).to_be_focused()
            expect(page.get_by_text("Not this one.")).to_be_visible()
        right.press("Space")
        expect(page.get_by_text("Right.", exact=True)).to_be_visible()
        if number == 6:
            page.get_by_role("button", name="Do it for me").click()
            expect(page.get_by_text("31.00 of 48.1 time units")).to_be_visible()
            expect(page.get_by_text(re.compile("^59 tasks in the system"))).to_be_visible()
        if number < len(STOPS):
            page.get_by_role("link", name="Next stop").click()


def test_a_stop_leads_to_the_docs_and_back(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/learn/3")
    page.get_by_role("link", name="Read more about this idea").click()
    expect(page.get_by_role("heading", name=re.compile("^What the zeros in"))).to_be_visible()
    picture = page.get_by_role("img", name="What the machines do with their time")
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("(image) => image.naturalWidth") > 0
    expect(page.get_by_role("link", name="Chains", exact=True)).to_be_visible()
    page.get_by_role("link", name="See it move: stop 7").click()
    expect(page.get_by_role("heading", name=f"7. {STOPS[6].title}")).to_be_visible()
    page.goto(f"{server.url}/learn/read/none")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    page.goto(f"{server.url}/learn/99")
    expect(page.get_by_role("heading", name=f"1. {STOPS[0].title}")).to_be_visible()


def test_the_lab_is_offered(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/learn/4")
    for name in ("The lab", "Answers and notes for the teacher"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        file = download.value
        notebook = json.loads(Path(file.path()).read_text("utf-8"))
        assert file.suggested_filename in LAB
        assert len(notebook["cells"]) > 20


def test_the_content_can_be_reached_without_the_navigation(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/learn/read/chains")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    stop = page.get_by_role("link", name=f"1. {STOPS[0].title}")
    expect(stop).to_be_focused()
    assert stop.evaluate("(link) => getComputedStyle(link).outlineStyle") == "solid"


def test_there_are_eight_stops() -> None:
    titles = [stop.title for stop in STOPS]
    assert len(set(titles)) == len(titles) == 8
    assert (titles[0], titles[-1]) == (
        "Why the fastest machine is the wrong one",
        "What the prices say",
    )


def _play(page: Any) -> None:
    """Play, pause and scrub, with the keyboard alone."""
    words = page.locator("[data-words]").first
    expect(words).to_have_text(re.compile(r"[1-9]\d* finished"))
    time = page.get_by_role("slider", name=re.compile("^Time"))
    time.press("End")  # while it plays
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    clock = re.fullmatch(r"([\d.]+) of ([\d.]+) time units", time.get_attribute("aria-valuetext"))
    assert clock
    assert abs(float(clock[1]) - float(clock[2])) <= 0.05, "the end is rounded to one digit"
    all_tasks = re.search(r"(\d+) tasks, the same", page.locator("body").inner_text())
    assert all_tasks
    found = re.search(r"(\d+) tasks in the system, (\d+) finished", words.inner_text())
    assert found
    assert sum(map(int, found.groups())) == int(all_tasks[1])
    time.press("Home")
    expect(words).to_have_text(re.compile("^0 tasks in the system, 0 finished"))
    page.get_by_role("button", name="Play", exact=True).press("Enter")
    expect(words).to_have_text(re.compile(r"[1-9]\d* finished"))
    page.get_by_role("button", name="Pause", exact=True).press("Enter")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    time.press("Home")
    speed = page.get_by_role("slider", name=re.compile("^Speed"))
    before = speed.get_attribute("aria-valuetext")
    speed.press("End")
    expect(speed).not_to_have_attribute("aria-valuetext", before)
    page.get_by_role("button", name="Play", exact=True).press("Enter")
    expect(words).to_have_text(re.compile(r"[1-9]\d* finished"))


def _choose(page: Any) -> None:
    """Watch another policy; the page fits a phone."""
    page.get_by_role("combobox", name="Right policy").fill("pas")
    option = page.get_by_role("option", name=re.compile("^pas – "))
    expect(option).to_contain_text("later tasks")  # what the policy does
    option.click()
    expect(page.get_by_text("pas (push)", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1280, "height": 900})


def _slide(page: Any) -> None:
    """Change the load and a rate with the keyboard; the polygon follows."""
    picture = page.get_by_role("img", name=re.compile("^The machines can serve"))
    expect(picture).to_be_visible()
    before = picture.get_attribute("aria-label")
    page.get_by_role("slider", name="Load", exact=True).press("ArrowRight")
    expect(page.get_by_text("Load 87 %")).to_be_visible()
    expect(picture).not_to_have_attribute("aria-label", before)
    page.get_by_text("Rates: tasks that a machine").click()
    page.get_by_role("slider", name="Rate of class 1 on machine 1").press("ArrowRight")
    expect(page.get_by_text("8.4", exact=True)).to_be_visible()
    page.get_by_role("button", name="As in the text").click()
    expect(page.get_by_text("Load 85.7 %", exact=True)).to_be_visible()
    expect(page.get_by_text("8", exact=True)).to_be_visible()
    expect(page.get_by_text("lpas (push)", exact=True)).to_be_visible()


WATCH = """() => {
  window.seen = new Set();
  const film = document.querySelector(".gw-flow");
  new MutationObserver(() => window.seen.add(film.getAttribute("aria-busy")))
    .observe(film, { attributes: true });
}"""


def test_a_load_that_was_set_is_kept(page: Any, server: Any) -> None:
    page.goto(f"{server.url}/learn/1")
    expect(page.get_by_text("the same for each policy")).to_be_visible()
    page.evaluate(WATCH)
    load = page.get_by_role("slider", name="Load", exact=True)
    load.focus()
    for _ in range(8):
        load.press("ArrowRight")
    expect(page.get_by_text("Load 94 %")).to_be_visible()  # at once, before it is simulated
    page.wait_for_url(re.compile(r"/learn/1\?arrivals=2\.19333,12\.0633$"))
    expect(page.get_by_text("the same for each policy")).to_be_visible()
    expect(load).to_have_value("0.94")
    assert page.evaluate("[...window.seen]") == ["true", "false"], "the old film was dimmed"
    page.get_by_role("link", name="Read more about this idea").click()
    expect(page.get_by_role("heading", name=re.compile("^Why the allocation"))).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Load 94 %")).to_be_visible()
    expect(page.locator(".gw-flow")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()  # it plays
    expect(page.locator("[data-words]").first).to_have_text(re.compile(r"[1-9]\d* finished"))
    page.goto(f"{server.url}/learn/1?arrivals=0,0&rates=1,x&policies=met&seed=0")
    expect(page.get_by_text("Load 85.7 %", exact=True)).to_be_visible()
    expect(page.get_by_text("the same for each policy")).to_be_visible()


def test_nothing_is_invented_before_the_first_film(page: Any, server: Any) -> None:
    page.route_web_socket(re.compile("."), lambda socket: None)  # no film ever arrives
    page.goto(f"{server.url}/learn/1")
    for name in ("Speed", "Time"):
        slider = page.get_by_role("slider", name=re.compile(f"^{name}"))
        expect(slider).to_be_disabled()
        expect(slider).to_have_attribute("aria-valuetext", "–")
