"""Drafts of tabs: files that outlive a server, and never stop a page."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.web import drafts
from gridwright.web.drafts import Draft, History, kept_drafts

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


def version(number: int) -> dict[str, Any]:
    return {"name": "mine", "number": number}


def again(history: History) -> History:
    """The same draft after a reload of the page."""
    found = History.open(history.key)
    assert found is not None
    return found


def test_undo_and_redo_outlive_a_reload(home: Path) -> None:
    history = History(version(0))
    assert kept_drafts() == [], "what nobody has changed is not listed"
    for number in (1, 2, 3):
        history.add(version(number), "2 classes × 2 machines")
    history = again(history)
    history.go(-1)
    history.go(-1)
    assert again(history).document == version(1)
    history = again(history)
    history.go(1)
    assert (history.document, history.can_redo) == (version(2), True)
    history.add(version(2))
    assert history.can_redo, "nothing changed"
    history.add(version(4))
    history = again(history)
    assert (history.can_redo, history.can_undo) == (False, True)
    history.go(1)
    assert history.document == version(4)


@given(st.lists(st.sampled_from(["add", "undo", "redo", "save", "reload"]), max_size=30))
def test_versions_are_as_in_a_list(tmp_path_factory: Any, steps: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRIDWRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        history, known, shown, saved = History(version(0)), [0], 0, 0
        for number, step in enumerate(steps, start=1):
            if step == "add":
                history.add(version(number))
                known = [*known[: shown + 1], number]
                shown += 1
            elif step == "save":
                history.mark_saved()
                saved = known[shown]
            elif step == "reload":
                history = History.open(history.key) or history
            else:
                history.go(-1 if step == "undo" else 1)
                shown += (step == "redo" and shown + 1 < len(known)) - (
                    step == "undo" and shown > 0
                )
            assert history.document == version(known[shown])
            assert (history.can_undo, history.can_redo) == (shown > 0, shown + 1 < len(known))
            assert history.is_saved == (known[shown] == saved)


def test_drafts_are_listed_by_name_with_a_mark(home: Path) -> None:
    one, two = History(version(0)), History({"name": "other"})
    one.add(version(1), "2 classes × 2 machines")
    two.add({"name": "other", "seed": 2}, "1 class × 1 machine")
    two.mark_saved()
    listed = [(each.name, each.is_saved) for each in kept_drafts()]
    assert listed == [("other", True), ("mine", False)]
    two.add({"name": "third"})
    assert (kept_drafts()[0].name, kept_drafts()[0].is_saved) == ("third", False)
    two.delete()
    assert [each.key for each in kept_drafts()] == [one.key]
    assert History.open(two.key) is None


def test_a_second_tab_goes_on_with_a_draft_of_its_own(home: Path) -> None:
    mine = History(version(0))
    mine.add(version(1))
    theirs = again(mine)
    theirs.add(version(2))
    mine.add(version(3))
    assert (mine.is_apart, theirs.is_apart, mine.key == theirs.key) == (True, False, False)
    assert (again(mine).document, again(theirs).document) == (version(3), version(2))
    assert len(kept_drafts()) == 2


def test_old_drafts_and_versions_make_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 3)
    monkeypatch.setattr(drafts, "MOST_VERSIONS", 4)
    for number in range(5):
        History({"name": "x"}).add(version(number))
    assert len(kept_drafts()) == 3
    history = History(version(0))
    for number in range(1, 10):
        history.add(version(number))
    for _ in range(9):
        history.go(-1)
    assert history.document == version(6)


def test_a_folder_that_cannot_be_written_is_told(home: Path) -> None:
    (home / "drafts").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="the draft cannot be kept"):
        History(version(0)).add(version(1))
