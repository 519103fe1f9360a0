"""The documentation is complete: what users can name has a place in it."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import gridwright
from gridwright import Grid, testbed
from gridwright.cli.main import app
from gridwright.grid import Corrections
from gridwright.grid.prediction import Prediction
from gridwright.model import System
from gridwright.model.chain import PLURAL
from gridwright.policies import find, policies
from gridwright.testbed import Experiment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
IDEAS = sorted((DOCS / "learn").glob("*.md"))
CODE = sorted((DOCS / "code").glob("*.md"))

sys.path.insert(0, str(ROOT / "tools"))
from module_tables import MARK, on_page_markdown  # noqa: E402


def words(page: str) -> set[str]:
    """Return the words that stand as code on a page."""
    spans = re.findall(r"`([^`\n]+)`", (DOCS / page).read_text("utf-8"))
    return {word for span in spans for word in re.split(r"[^\w.-]+", span)}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_in_the_navigation(page: str) -> None:
    assert f": {page}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")


@cache
def commands() -> dict[str, Any]:
    """Return every command by its full name, those of groups too."""
    found: dict[str, Any] = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inside = getattr(command, "commands", None)
        found |= (
            {name: command} if inside is None else {f"{name} {k}": c for k, c in inside.items()}
        )
    return found


@pytest.mark.parametrize("name", commands())
def test_every_command_is_in_the_reference_and_explains_itself(name: str) -> None:
    page = (DOCS / "reference/command-line.md").read_text("utf-8")
    assert re.search(rf"`(gridwright )?{name}\b", page)
    command = commands()[name]
    options = [option for option in command.params if not option.hidden]
    for sentence in (command.help, *(option.help for option in options)):
        assert sentence
        assert sentence[0].isupper() or sentence.startswith("trace:N")
        assert sentence.rstrip().endswith("."), sentence
    for option in options:
        long = [word for word in option.opts if word.startswith("--")]
        assert not long or any(f"`{word}" in page for word in long), long


def test_every_command_of_the_reference_exists() -> None:
    page = (DOCS / "reference/command-line.md").read_text("utf-8")
    groups = {name.split()[0] for name in commands() if " " in name}
    for line in re.findall(r"`gridwright ([a-z][^`]*)`", page):
        first, *more = re.findall(r"^[a-z]+|(?<= )[a-z]+\b", line)
        if first in groups and more:
            assert f"{first} {more[0]}" in commands(), line
        else:
            assert first in {*commands(), *groups, "replay"}, line


@pytest.mark.parametrize("record", [Experiment, Prediction, Corrections])
def test_every_key_of_the_experiment_file(record: type) -> None:
    assert set(record.model_fields) <= words("reference/experiment-file.md")  # type: ignore[attr-defined]


def test_every_policy() -> None:
    shipped = {name for name, policy in policies().items() if policy.is_shipped}
    assert shipped <= words("reference/policies.md")


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


@pytest.mark.parametrize("page", CODE, ids=lambda page: page.stem)
def test_every_path_on_the_pages_about_the_code_exists(page: Path) -> None:
    """Paths start at the repository or at the package, so that a reader can open them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    spans = re.findall(r"`([\w./-]+)`", text)
    paths = [span for span in spans if re.search(r"\.(py|toml|md)$|\w/", span)]
    assert paths
    missing = [
        path
        for path in paths
        if not any((base / path).exists() for base in (ROOT, ROOT / "src" / "gridwright"))
    ]
    assert missing == []


@pytest.mark.parametrize("page", IDEAS, ids=lambda page: page.stem)
def test_every_idea_has_a_picture_that_can_be_made_again(page: Path) -> None:
    text = page.read_text("utf-8")
    (picture,) = re.findall(r"!\[[^]]+\]\(\.\./figures/learn-([\w-]+)\.svg\)", text)
    assert f'"{picture}": ' in (ROOT / "tools" / "draw_docs.py").read_text("utf-8")
    assert (DOCS / "figures" / f"learn-{picture}.svg").stat().st_size < 50_000
    assert "```python\n>>> " in text


PARTS = {
    "push": ["A:2.1", "A:2.6"],
    "pull": [f"A:3.{number}" for number in (2, 3, 4, 5, 6, 11, 12, 14)],
    "decentralised": ["A:4.1", "D:I", "D:text"],
    "other numbers": ["A:text"],
    "chains": ["W:II", "W:III", "W:IV", "W:V", "W:text"],
    "capacities": ["LP"],
}
"""The sections of the tables that a row of the report in short sums up."""


def verdicts(line: str) -> list[int]:
    """Return how many cells have a verdict, agree, differ, and contradict their source."""
    counts = dict.fromkeys(("agree", "differ", "errat"), 0)
    for number, word in re.findall(r"([\d,]+) (agree|differ|errat)", line):
        counts[word] += int(number.replace(",", ""))
    return [sum(counts.values()), *counts.values()]


def requirements() -> list[str]:
    """Return the rows of the page of requirements, without the heads of its tables."""
    lines = (DOCS / "requirements.md").read_text("utf-8").splitlines()
    heads = {number - 1 for number, line in enumerate(lines) if line.startswith("|---")}
    return [
        line for number, line in enumerate(lines) if line.startswith("| ") and number not in heads
    ]


def test_every_requirement_is_shown_by_a_test_that_exists() -> None:
    rows = requirements()
    assert [row.split(" | ")[0] for row in rows[:16]] == [f"| {n}" for n in range(1, 17)]
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row.split(" | ")[-1])
        assert tests, row
        for path, name in tests:
            assert f"def {name}" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"


def test_what_meets_a_requirement_exists() -> None:
    page = (DOCS / "requirements.md").read_text("utf-8")
    for words in re.findall(r"`gridwright ([^`]+)`", page):
        (name,) = (known for known in commands() if f"{words} ".startswith(f"{known} "))
        options = {word for option in commands()[name].params for word in option.opts}
        assert set(re.findall(r"--[\w-]+", words)) <= options, words
    for owner, name in re.findall(r"`(Grid|Experiment|testbed)\.(\w+)`", page):
        assert hasattr({"Grid": Grid, "Experiment": Experiment, "testbed": testbed}[owner], name)
    for name in re.findall(r"`python -m bench (\w+)`", page):
        assert (ROOT / "bench" / f"{name}.py").exists()


def test_every_policy_of_the_sources_is_among_the_requirements() -> None:
    rows = [row.split(" | ") for row in requirements()]
    named = [cell for row in rows if len(row) == 4 for cell in re.findall(r"`([^`]+)`", row[2])]
    found = {span for span in named if span.partition(":")[0] in policies()}
    for span in found:
        assert find(span).name
    ours = {"pas", "pas_dg", "cmu", "max_min", "min_min", "sufferage"}  # of other sources
    ours |= {"fpi", "jfiq", "jfsq", "jsq", "jsq_d", "maxweight", "min_drift", "pas_late", "qir"}
    ours |= {"fluid", "shadow", "thresholds"}
    shipped = {name for name, policy in policies().items() if policy.is_shipped}
    assert {span.partition(":")[0] for span in found} == shipped - ours


def sums(rows: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def test_the_report_in_short_has_the_counts_of_the_tables() -> None:
    tables = (DOCS / "reproduction.md").read_text("utf-8")
    sections = {
        name: verdicts(line)
        for name, line in re.findall(r"^## (.+)\n\n(.+)$", tables, re.MULTILINE)
    }
    page = (DOCS / "differences.md").read_text("utf-8").split("\n## ")[0]
    rows = {
        title.strip(" *"): [
            int(cell.strip(" *").replace(",", "") or 0) for cell in cells.split("|")
        ]
        for title, cells in re.findall(r"^\|([^|\n]+)\|( [*]*\d.*)\|$", page, re.MULTILINE)
    }
    for title, names in PARTS.items():
        row = next(row for start, row in rows.items() if start.startswith(title))
        assert row == sums([sections[name] for name in names]), title
    once, everything = list(rows).index("simulated or solved"), [*rows.values()]
    assert everything[once] == sums(everything[:once])
    assert everything[-1] == sums(everything[once : once + 2]) == sums([*sections.values()])
    total = re.search(r"In all:.*", tables)
    assert total is not None
    assert everything[-1] == verdicts(total[0])
