"""The data of the reproduction are read as they were written, and the page is drawn from them."""

from collections import Counter
from pathlib import Path

import pytest

import gridwright
from gridwright import InputError
from gridwright.compiler.computer import computer
from gridwright.reproduction import (
    Laboratory,
    data_of,
    draw_page,
    explanations,
    label,
    read_data,
    reproduce,
    summary,
    targets,
    write_page,
)
from gridwright.reproduction.data import TABLES, _explained

DOCS = Path(gridwright.__file__).parents[2] / "docs"


def test_data_are_read_as_they_were_written(tmp_path: Path) -> None:
    laboratory = Laboratory()
    found = reproduce("LP", laboratory=laboratory)
    data = data_of(found, laboratory)
    write_page(data, tmp_path / "page.md")
    assert read_data(tmp_path / "page.json") == data
    assert "Scale: 30 replications" in data.settings
    assert f"on {computer()}." in data.settings
    (section,) = data.sections
    assert f"**In all:** {len(section.rows)} agree, 0 differ" in (tmp_path / "page.md").read_text()
    assert section.name == "LP"
    assert data.summary() == section.summary() == summary(found)
    for row, outcome in zip(section.rows, found[0].outcomes, strict=True):
        assert (row.system, row.policy, row.what) == label(outcome.cell)
        assert (row.published, row.ours) == (outcome.published, outcome.found)
        assert (row.verdict, row.reason) == outcome.judgement


def test_the_data_that_are_shipped() -> None:
    data = read_data()
    assert "Made:" in data.settings
    assert len(data.sections) > 30
    first = data.sections[0]
    assert first.name == "A:2.1"
    assert len([row for row in first.rows if not row.reading]) == 34
    verdicts = {row.verdict for section in data.sections for row in section.rows}
    assert {"agrees", "differs", "errata", "not run"} <= verdicts


def test_the_data_that_are_shipped_have_every_cell_once() -> None:
    known = targets()
    for section in read_data().sections:
        cells = known[section.name].cells
        expected = Counter((*label(cell), cell.get("reading", "")) for cell in cells)
        found = Counter((*row[:3], row.reading) for row in section.rows)
        assert found == expected


def test_the_page_in_the_docs_is_drawn_from_the_data() -> None:
    page = (DOCS / "reproduction.md").read_text("utf-8")
    assert draw_page(read_data(DOCS / "reproduction.json"), explained=True) == page


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"sections": [{"rows": [[1]]}]}'])
def test_a_file_that_is_no_data(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "data.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        read_data(path)


def test_every_section_is_about_some_table() -> None:
    titles = {title.partition(":")[0] for title, _ in _explained()}
    assert titles == {*TABLES, "How to check"}


def test_every_cell_that_differs_has_an_explanation() -> None:
    found = 0
    for section in read_data().sections:
        for row in section.rows:
            if row.verdict in ("differs", "errata"):
                known = explanations(section.name, row)
                assert known, (section.name, row)
                assert all("](" not in each.text for each in known), "links would lead nowhere"
                found += 1
    assert found > 100


def test_what_is_said_of_a_system_comes_by_itself() -> None:
    page = {section.name: section for section in read_data().sections}
    row = next(row for row in page["A:2.6"].rows if row.verdict == "differs")
    (only,) = explanations("A:2.6", row)
    assert "2.C2" in only.text
    assert "2.I1" not in only.text
