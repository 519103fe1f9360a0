"""Drafts of tabs: files that outlive a server, and never stop a page."""

from pathlib import Path

import pytest

from gridwright.web import drafts
from gridwright.web.drafts import Draft

TAB = "0f0e0d0c-0000-4000-8000-{:012d}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    return tmp_path


def test_a_draft_is_there_again(home: Path) -> None:
    draft = Draft(TAB.format(1))
    assert dict(draft) == {}
    draft["definition"] = {"system": {"rates": [["fast"]]}}
    draft["simulate"] = {"seed": None}
    assert dict(Draft(TAB.format(1))) == dict(draft)
    assert dict(Draft(TAB.format(2))) == {}
    del draft["simulate"]
    assert list(Draft(TAB.format(1))) == ["definition"]


def test_a_tab_names_no_other_file(home: Path) -> None:
    Draft("../../evil")["definition"] = {}
    Draft("")["definition"] = {}
    assert list(home.rglob("*")) == []


def test_a_damaged_draft_is_an_empty_one(home: Path) -> None:
    Draft(TAB.format(1))["definition"] = {}
    (path,) = home.rglob("*.json")
    for text in ("{", "[1]", "\0"):
        path.write_text(text)
        assert dict(Draft(TAB.format(1))) == {}


def test_the_oldest_drafts_make_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 3)
    for number in range(6):
        Draft(TAB.format(number))["definition"] = number
    assert len(list(home.rglob("*.json"))) == 3
    assert dict(Draft(TAB.format(5))) == {"definition": 5}
