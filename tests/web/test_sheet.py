"""Cells that are typed in, and systems that are kept."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError, System
from gridwright.catalogue import entries
from gridwright.web.documents import (
    document_of,
    find_mistakes,
    read_text,
    system_of,
)
from gridwright.web.saved import load_saved, save, saved_names
from gridwright.web.sheet import Sheet

KNOWN = [entry for entry in entries() if entry.parts]


@pytest.mark.parametrize("entry", KNOWN[::7], ids=lambda entry: entry.name)
def test_a_system_is_the_same_through_the_cells(entry: Any) -> None:
    system = entry.system
    assert system_of(Sheet.of(document_of(system)).document()) == system


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(0.1, 1000), min_size=width, max_size=width), min_size=1, max_size=4
        )
    )
)
def test_rates_are_the_same_through_a_text(rates: list[list[float]]) -> None:
    text = "\n".join("\t".join(map(repr, row)) for row in rates)
    document = read_text(text)
    assert document["rates"] == rates
    assert Sheet.of(document).document() == document


def test_rows_and_columns_come_and_go() -> None:
    sheet = Sheet.of({"arrivals": [5, 8], "rates": [[8, 3], [4, 10]], "counts": [1, 2]})
    sheet.add_class()
    sheet.add_machine()
    found = sheet.document()
    assert found["rates"] == [[8, 3, 3], [4, 10, 10], [4, 10, 10]]
    assert (found["arrivals"], found["counts"]) == ([5, 8, 8], [1, 2, 1])
    for _ in range(5):
        sheet.remove_class()
        sheet.remove_machine()
    assert sheet.document() == {"rates": [[8.0]], "arrivals": [5.0], "counts": [1]}


def test_what_has_no_cell_is_kept() -> None:
    chain = {"states": [1, 0.5], "transition": [[0.5, 0.5], [0.5, 0.5]], "step": 1}
    document = {
        "arrivals": [1.0],
        "rates": [[2.0, 3.0]],
        "availability": [chain, 1.0],
        "execution": "deterministic",
        "failures": {"mean_uptime": [5, 6], "mean_repair": 1},
    }
    assert Sheet.of(document).document() == document


@pytest.mark.parametrize("key", ["classes", "groups"])
def test_names_that_are_too_many_are_kept_and_told(key: str) -> None:
    document = {"arrivals": [5.0], "rates": [[8.0]], key: ["a", "b"]}
    sheet = Sheet.of(document)
    assert sheet.document() == document
    (mistake,) = find_mistakes(sheet.document())
    assert mistake.words.startswith(f"{key} has 2 entries; expected 1")
    few = Sheet.of({"arrivals": [5, 5], "rates": [[8, 8], [8, 8]], key: ["a"]})
    assert few.document()[key] == ["a", "2"]


def test_nonsense_is_told_where_it_stands() -> None:
    sheet = Sheet.of({"arrivals": [5], "rates": [[8, 3]]})
    sheet.rates[0][1], sheet.counts[0], sheet.means["mean_uptime"] = "3,5x", "two", "-1"
    places = {mistake.place for mistake in find_mistakes(sheet.document())}
    assert {("rates", 0, 1), ("counts", 0), ("failures", "mean_uptime")} <= places


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    return tmp_path


def test_systems_are_kept(home: Path) -> None:
    assert saved_names() == []
    system = System(arrivals=[5], rates=[[8, 3]], name="mine")
    save(system, "mine 1.2")
    assert saved_names() == ["mine 1.2"]
    assert load_saved("mine 1.2") == system


@pytest.mark.parametrize("name", ["", "..", "../x", "/x", "a/b", ".hidden", "x\0", "x" * 81, "a\n"])
def test_a_name_is_nothing_but_a_name(home: Path, name: str) -> None:
    with pytest.raises(InputError, match="expected letters"):
        save(System(arrivals=[5], rates=[[8]]), name)
    assert not list(home.rglob("*.toml"))
