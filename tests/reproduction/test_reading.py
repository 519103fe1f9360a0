"""The page of the reproduction is read as it was written."""

from pathlib import Path

import pytest

from gridwright import InputError
from gridwright.compiler.computer import computer
from gridwright.reproduction import (
    Laboratory,
    label,
    read_page,
    reproduce,
    section_of,
    summary,
    write_page,
)


def test_a_page_is_read_as_it_was_written(tmp_path: Path) -> None:
    laboratory = Laboratory()
    found = reproduce("LP", laboratory=laboratory)
    write_page(found, laboratory, tmp_path / "page.md")
    made, (section,) = read_page(tmp_path / "page.md")
    assert "Scale: 30 replications" in made
    assert f"on {computer()}." in made
    assert f"**In all:** {len(section.rows)} agree, 0 differ" in (tmp_path / "page.md").read_text()
    assert section.name == "LP"
    assert section.summary() == summary(found)
    assert section.rows == section_of(found[0]).rows
    for row, outcome in zip(section.rows, found[0].outcomes, strict=True):
        assert (row.system, row.policy, row.what) == label(outcome.cell)
        assert (row.published, row.ours) == (outcome.published, outcome.found)
        assert (row.verdict, row.reason) == outcome.judgement


def test_the_page_that_is_shipped() -> None:
    made, sections = read_page()
    assert "Made:" in made
    assert len(sections) > 30
    first = sections[0]
    assert first.name == "A:2.1"
    assert len(first.rows) == 34
    assert {"agrees", "differs", "errata"} <= {row.verdict for s in sections for row in s.rows}


def test_a_page_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_page(tmp_path / "none.md")
