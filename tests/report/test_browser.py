"""Reports in a real browser: nothing complains, and nobody is asked."""

from pathlib import Path
from typing import Any

from gridwright.report import write_reproduction
from gridwright.reproduction import Laboratory, reproduce


def test_a_report_opens_and_asks_nobody(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_reproduction(reproduce("LP"), Laboratory(), path, 1.0)
    page = browser.new_page(viewport={"width": 400, "height": 800})
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    assert page.get_by_role("region", name="Sources").get_by_role("columnheader").count() == 2
    page.get_by_role("link", name="LP").click()
    page.get_by_text("290 cells", exact=True).click()
    assert page.get_by_role("cell", name="agrees").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    assert complaints == []
