"""Every page, light and dark, by the rules of axe; legible texts; the width of a phone."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

PATHS = ("/", "/define", "/learn", "/run", "/statistics", "/published", "/help")
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


@pytest.fixture
def paths(page: Any, server: Any) -> list[str]:
    """The pages, among them one with results of a simulation."""
    body = {"system": "2.B", "policies": ["mct", "lpas"], "horizon": 200, "replications": 3}
    answer = page.request.post(f"{server.url}/api/simulations", data=body)
    assert answer.ok, answer.text()
    return [*PATHS, f"/simulate/{answer.json()['address']}"]


def test_every_page_in_both_modes(page: Any, server: Any, paths: list[str]) -> None:
    axe = Axe()
    options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}
    found = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for path in paths:
            page.goto(f"{server.url}{path}")
            expect(page.locator(f"body.body--{scheme}")).to_be_visible()
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.locator("html").get_attribute("lang") == "en-US"
            if path.startswith("/simulate"):
                expect(page.get_by_text("Tail of the response time")).to_be_visible()
                expect(page.locator(".gw-chart text").first).to_be_attached()
            found += [f"{scheme} {path}: {text}" for text in page.evaluate(FAINT)]
            for each in axe.run(page, options=options).response["violations"]:
                if each["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:160] for node in each["nodes"][:3]]
                    found.append(f"{scheme} {path}: {each['id']}: {nodes}")
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


def test_every_page_fits_a_phone_and_leads_to_help(
    page: Any, server: Any, paths: list[str]
) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    for path in paths:
        page.goto(f"{server.url}{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
        expect(page.get_by_role("link", name="Help", exact=True).first).to_be_visible()
    page.goto(server.url)
    for who in ("Study policies", "Teach and learn", "Run work on machines"):
        expect(page.get_by_role("heading", name=who)).to_be_visible()
    page.get_by_role("link", name="Words", exact=True).click()
    expect(page.get_by_text("long-run load", exact=True)).to_be_visible()
