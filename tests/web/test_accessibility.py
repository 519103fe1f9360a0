"""Every page, light and dark, by the rules of axe; legible texts; the width of a phone."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from gridwright.reproduction import shipped
from gridwright.web.stops import stops

FAINT = """() => {
  const parts = (colour) => {
    const found = colour.match(/[\\d.]+/g).map(Number);
    return found.length < 4 ? [...found, 1] : found;
  };
  const light = (colour) => colour.slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, part, k) => sum + [0.2126, 0.7152, 0.0722][k] * part, 0);
  const over = (top, under) => under.map((part, k) => top[k] * top[3] + part * (1 - top[3]));
  const behind = (element) => {
    const all = [];
    for (let each = element; each; each = each.parentElement) {
      all.unshift(parts(getComputedStyle(each).backgroundColor));
    }
    return all.reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const found = [];
  for (const each of document.querySelectorAll("button, a, .q-tab, [role=alert], .gw-chart text")) {
    if (!each.checkVisibility() || each.disabled || !each.textContent.trim()) continue;
    const style = getComputedStyle(each), ground = behind(each);
    const front = over(parts(each.tagName === "text" ? style.fill : style.color), ground);
    const [dark, bright] = [light(front), light(ground)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) found.push(`${each.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""
"""Texts of buttons, links, tabs and charts whose contrast is below 4.5."""


RULES: dict[str, Any] = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}
COLOURS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""The other rules do not depend on colours, so one mode is enough for them."""
STILL = "*, *::before, *::after { transition: none !important; }"
"""Else a colour may be read while it changes."""


@pytest.fixture
def results(page: Any, server: Any) -> str:
    """The address of results of a simulation."""
    body = {"system": "2.B", "policies": ["mct", "lpas"], "horizon": 200, "replications": 3}
    answer = page.request.post(f"{server.url}/api/simulations", data=body)
    assert answer.ok, answer.text()
    return f"/simulate/{answer.json()['address']}"


@pytest.fixture
def run(page: Any, server: Any) -> Iterator[str]:
    """The number of a run that goes on until the test ends."""
    body = {"experiment": "MGST-3", "time_unit": 3, "duration": 600}
    answer = page.request.post(f"{server.url}/api/runs", data=body)
    assert answer.ok, answer.text()
    number = str(answer.json()["run"])
    yield number
    answer = page.request.post(f"{server.url}/api/runs/{number}/stop", data={}, timeout=120_000)
    assert answer.ok, answer.text()


@pytest.mark.timeout(600)  # 27 pages, each in light and dark
def test_every_page_in_both_modes_and_on_a_phone(
    page: Any, server: Any, results: str, run: str
) -> None:
    """Each page is loaded once, for all that is looked at."""
    ready = {
        "/": "Study policies",
        "/define": "Limited by class",
        "/simulate": "long-run load",
        results: "Tail of the response time",
        "/run": f"run {run}",
        f"/run/{run}": "jobs finished",
        "/statistics": f"run {run}",
        f"/statistics/{run}": "Execution rates in jobs per time unit",
        "/published": "34 of 34 cells",
        "/help": "long-run load",
        **{f"/learn/{k}": "the same for each policy" for k in range(1, len(stops()) + 1)},
        **{f"/learn/read/{path.stem}": "Learn" for path in shipped("learn").glob("*.md")},
    }
    script = Axe().axe_script
    found = []
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    for path, words in ready.items():
        answer = page.goto(f"{server.url}{path}")
        assert '<header class="gw-shell">' in answer.text()  # shown while the page loads
        page.add_style_tag(content=STILL)
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
        expect(page.get_by_text(words).first).to_be_visible()
        expect(page.locator(".gw-shell")).to_have_count(0)
        assert page.locator("html").get_attribute("lang") == "en-US"
        expect(page.get_by_role("link", name="Help", exact=True).first).to_be_visible()
        page.evaluate(script)
        for scheme, rules in (("light", RULES), ("dark", COLOURS)):
            page.emulate_media(color_scheme=scheme)
            expect(page.locator(f"body.body--{scheme}")).to_be_visible()
            found += [f"{scheme} {path}: {text}" for text in page.evaluate(FAINT)]
            options = {**rules, "resultTypes": ["violations"]}
            answer = page.evaluate("(options) => axe.run(document, options)", options)
            for each in answer["violations"]:
                if each["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:160] for node in each["nodes"][:3]]
                    found.append(f"{scheme} {path}: {each['id']}: {nodes}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 400, "height": 800})
        page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
        page.set_viewport_size({"width": 1280, "height": 900})
    assert found == []


def test_the_colours_of_define(page: Any, server: Any) -> None:
    """Overload and efficiency, in both modes."""
    page.goto(f"{server.url}/define")
    page.get_by_label("Arrivals of class 1", exact=True).fill("50")
    expect(page.get_by_text("%: overload")).to_be_visible()
    page.get_by_role("combobox", name="Colours").click()
    page.get_by_role("option", name="efficiency").click()
    rate = page.get_by_label("Rate of class 1 on machine 1", exact=True)
    expect(rate).to_have_attribute(
        "style", "background: color-mix(in srgb, var(--gw-shade) 60%, transparent);"
    )
    found = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.reload()
        expect(page.locator(f"body.body--{scheme}")).to_be_visible()
        expect(rate).to_have_attribute("title", "efficiency 100 %")
        found += [f"{scheme}: {text}" for text in page.evaluate(FAINT)]
        options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}
        for each in Axe().run(page, options=options).response["violations"]:
            if each["impact"] in ("serious", "critical"):
                found.append(
                    f"{scheme}: {each['id']}: {[n['html'][:160] for n in each['nodes'][:3]]}"
                )
    assert found == []


def test_the_ways_in_and_the_words(page: Any, server: Any) -> None:
    page.goto(server.url)
    for who in ("Study policies", "Teach and learn", "Run work on machines"):
        expect(page.get_by_role("heading", name=who)).to_be_visible()
    page.get_by_role("link", name="Words", exact=True).click()
    expect(page.get_by_text("long-run load", exact=True)).to_be_visible()
