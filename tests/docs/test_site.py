import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gridwright

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "python.html").read_text("utf-8")
    modules = {"etc"}  # what is in it is there
    for name in set(gridwright.__all__) - modules - {"__version__"}:
        assert re.search(rf'id="gridwright\.[\w.]+\.{name}"', page), name
    assert "cvb_transposed" in page
    assert "The book: " in (tmp_path / "code" / "modules.html").read_text("utf-8")
    (tmp_path / "404.html").unlink()  # it is for a server, whose files have no such place
    shown: dict[tuple[bool, ...], Path] = {}
    for path in sorted(tmp_path.rglob("*.html")):
        text = path.read_text("utf-8")
        check_parts(path, text)
        shown.setdefault(tuple(f'class="{part}' in text for part in PARTS), path)
    open_all(request.getfixturevalue("browser"), list(shown.values()))


PARTS = ("arithmatex", "mermaid", "highlight", "tabbed-set", "admonition", "doc ")
"""What a page may have that needs scripts or styles. One page with each set of them is opened."""


def check_parts(page: Path, text: str) -> None:
    """Check that a page's pictures, scripts and styles are files of the site."""
    tags = re.findall(r"<(?:img|script|link|source|iframe)\b[^>]*>", text)
    assert tags
    for tag in tags:
        named = re.search(r'\b(?:src|href)="([^"]*)"', tag)
        if named is None or 'rel="canonical"' in tag or named[1].startswith("data:"):
            continue
        assert (page.parent / named[1].partition("?")[0].partition("#")[0]).is_file(), (page, tag)


def open_all(browser: Any, pages: list[Path]) -> None:
    """Open pages as files, and see that they complain of nothing and ask nobody."""
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    missing = "Array.from(document.images).filter(i => !i.naturalWidth).map(i => i.src)"
    for path in pages:
        page.goto(path.as_uri(), wait_until="load")
        complaints += page.evaluate(missing)
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
