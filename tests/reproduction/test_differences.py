"""Every cell that differs is explained, as far as anybody knows."""

from gridwright.reproduction import explanations, read_data
from gridwright.reproduction.data import TABLES, _explained


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
