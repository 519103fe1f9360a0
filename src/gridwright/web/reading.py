"""The pages of docs/learn, as the page Learn shows them."""

import re
from functools import cache
from pathlib import Path

FIGURES = "/learn-figures"
"""Where the server offers the pictures of the pages."""


@cache
def docs_folder() -> Path:
    """Return the folder of the docs: in the installed package, else in the repository."""
    package = Path(__file__).parents[1]
    return next(
        each
        for each in (package / "docs", package.parents[1] / "docs")
        if (each / "learn").is_dir()
    )


def reading(name: str) -> str | None:
    """Return a page of docs/learn as Markdown for the browser; None if there is no such page.

    >>> reading("why-the-allocation")[:23]
    '# Why the allocation LP'
    >>> reading("../why") is None
    True
    """
    known = {path.stem: path for path in (docs_folder() / "learn").glob("*.md")}
    return for_browser(known[name].read_text("utf-8")) if name in known else None


def for_browser(text: str) -> str:
    """Point pictures and links to what the server has; other links become plain text.

    >>> for_browser("![x](../figures/a.svg), [zeros](what-the-zeros-do.md), [why](../why.md#one)")
    '![x](/learn-figures/a.svg), [zeros](/learn/read/what-the-zeros-do), why'
    """
    text = text.replace("](../figures/", f"]({FIGURES}/")
    text = re.sub(r"\]\(([\w-]+)\.md\)", r"](/learn/read/\1)", text)
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
