"""The documentation is complete: what users can name has a place in it."""

import re
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import gridwright
from gridwright.cli.main import app
from gridwright.grid import Corrections
from gridwright.grid.prediction import Prediction
from gridwright.model import System
from gridwright.model.chain import PLURAL
from gridwright.testbed import Experiment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
IDEAS = sorted((DOCS / "learn").glob("*.md"))

sys.path.insert(0, str(ROOT / "tools"))
from module_tables import MARK, on_page_markdown  # noqa: E402


def words(page: str) -> set[str]:
    """Return the words that stand as code on a page."""
    spans = re.findall(r"`([^`\n]+)`", (DOCS / page).read_text("utf-8"))
    return {word for span in spans for word in re.split(r"[^\w.-]+", span)}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_in_the_navigation(page: str) -> None:
    assert f": {page}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_every_command() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) <= words("reference/command-line.md")


@pytest.mark.parametrize("record", [Experiment, Prediction, Corrections])
def test_every_key_of_the_experiment_file(record: type) -> None:
    assert set(record.model_fields) <= words("reference/experiment-file.md")  # type: ignore[attr-defined]


def test_every_key_of_the_system_file() -> None:
    one = {many: word for word, many in PLURAL.items()}  # a file has [[template]] for each
    assert {one.get(name, name) for name in System.model_fields} <= words(
        "reference/system-file.md"
    )


def test_every_package() -> None:
    source = Path(gridwright.__file__).parent
    packages = {file.parent.name for file in source.glob("*/__init__.py")}
    assert packages <= words("code/layers.md")


def test_modules_say_what_they_are() -> None:
    page = on_page_markdown(f"# Modules\n\n{MARK}\n")
    source = Path(gridwright.__file__).parent
    modules = {file.name for file in source.rglob("*.py") if not file.name.startswith("__")}
    assert modules == set(re.findall(r"^\| `(\w+\.py)` \| \S", page, re.MULTILINE))


@pytest.mark.parametrize("page", IDEAS, ids=lambda page: page.stem)
def test_every_idea_has_a_picture_that_can_be_made_again(page: Path) -> None:
    text = page.read_text("utf-8")
    (picture,) = re.findall(r"!\[[^]]+\]\(\.\./figures/learn-([\w-]+)\.svg\)", text)
    assert f'"{picture}": ' in (ROOT / "tools" / "draw_docs.py").read_text("utf-8")
    assert (DOCS / "figures" / f"learn-{picture}.svg").stat().st_size < 50_000
    assert "```python\n>>> " in text
