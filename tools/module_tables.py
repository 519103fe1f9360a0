"""Fill the page "Module by module" from the modules' own docstrings when the site is built.

MkDocs calls `on_page_markdown` for every page (``hooks`` in ``mkdocs.yml``). A line
``<!-- modules -->`` becomes a section for every package, with a row for every module.
"""

import ast
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1] / "src" / "gridwright"
MARK = "<!-- modules -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the sections in place of the mark."""
    return markdown.replace(MARK, "\n".join(sections())) if MARK in markdown else markdown


def sections(root: Path = ROOT) -> list[str]:
    """Return the lines of a section for the modules on top, and of one for each package."""
    lines = ["## gridwright", *_table(root)]
    for package in sorted(file.parent for file in root.rglob("__init__.py")):
        if package != root:
            name = ".".join(package.relative_to(root).parts)
            lines += ["", f"## {name}", "", _sentence(package / "__init__.py"), *_table(package)]
    return lines


def _table(folder: Path) -> list[str]:
    modules = sorted(file for file in folder.glob("*.py") if not file.name.startswith("__"))
    rows = [f"| `{file.name}` | {_sentence(file)} |" for file in modules]
    return ["", "| module | what it is |", "|---|---|", *rows]


def _sentence(file: Path) -> str:
    """Return the first paragraph of a module's docstring, in one line."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
