"""Everything published belongs to a target, and every target can be asked."""

import json
from collections import Counter

import pytest

from gridwright import InputError
from gridwright.catalogue import results, tables
from gridwright.policies import find
from gridwright.reproduction import choose, runs_of, targets
from gridwright.reproduction.data import label
from gridwright.reproduction.question import is_of_testbed
from gridwright.reproduction.reproduce import ask


def test_every_printed_cell_belongs_to_just_one_target() -> None:
    printed = Counter(json.dumps(cell) for cell in results())
    shown = Counter(json.dumps(cell) for target in targets().values() for cell in target.cells)
    assert all(shown[cell] == count for cell, count in printed.items())


def test_every_table_and_figure_is_a_target_with_cells() -> None:
    assert set(tables()) < set(targets())
    assert all(target.cells for target in targets().values())


def test_what_is_printed_in_several_tables_is_told_apart() -> None:
    told = Counter(target.about for target in targets().values())
    assert {words for words, count in told.items() if count > 1} == {"numbers in the running text"}
    assert targets()["K:7.5"].about.startswith("MGST experiment 2 (HiHi), mean response on the")


def test_every_cell_can_be_asked_or_says_why_not() -> None:
    for target in targets().values():
        for cell in target.cells:
            assert is_of_testbed(cell) or ask(cell) is not None
            assert all(isinstance(word, str) for word in label(cell))


def test_every_run_is_of_a_known_system_and_policy() -> None:
    for run in runs_of(list(targets().values())):
        assert run.changed().shape[0] > 0
        assert find(run.policy)


def test_names() -> None:
    assert [target.name for target in choose(["2.1", "K:7.2", "LP"])] == ["A:2.1", "K:7.2", "LP"]
    assert [cell["section"] for cell in choose(["3.4.4"])[0].stated.cells] == ["3.4.4", "3.4.4"]
    assert {target.name for target in choose([])} == {n for n in targets() if n[:2] != "Q:"}
    with pytest.raises(InputError, match=r"no table '2.7'; did you mean"):
        choose(["2.7"])
    with pytest.raises(InputError, match="no table 'nonsense'; reproduce --list lists them"):
        choose(["nonsense"])
