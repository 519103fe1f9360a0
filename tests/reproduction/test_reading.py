"""Every other reading of a printed cell is counted beside the primary one."""

from collections import Counter

import pytest

from gridwright.catalogue import results
from gridwright.reproduction import ADOPTED, PRIMARY, accounts, adopted, by_reading, targets
from gridwright.reproduction.account import Judged
from gridwright.reproduction.question import run_of
from gridwright.reproduction.reading import READINGS, printed_cell


def test_every_printed_cell_is_identified() -> None:
    found = Counter(map(printed_cell, results()))
    assert {key for key, count in found.items() if count > 1} == set()


def test_every_other_reading_is_of_a_printed_cell_and_has_it_once() -> None:
    printed = {printed_cell(cell) for cell in results()}
    others = [
        (cell["reading"], printed_cell(cell))
        for target in targets().values()
        for cell in target.cells
        if "reading" in cell and "Figure" not in cell["table"].partition(":")[2]
    ]
    assert len(others) == len(set(others)) > 300
    assert {key for _, key in others} <= printed


def test_adopted_readings_of_a_source_concern_different_cells() -> None:
    known = {cell.get("reading") for target in targets().values() for cell in target.cells}
    for source, names in ADOPTED.items():
        assert set(names) <= known
        cells = [
            printed_cell(cell)
            for target in targets().values()
            for cell in target.cells
            if cell["src"] == source
            and cell.get("reading") in names
            and "Figure" not in cell["table"].partition(":")[2]
        ]
        assert len(cells) == len(set(cells)) > 0


def test_a_reading_explains_and_spoils() -> None:
    stated = [Judged("K", "", verdict, "") for verdict in ("agrees", "differs", "differs")]
    other = [Judged("K", "as run", "agrees", "differs"), Judged("K", "as run", "differs", "agrees")]
    lost = [Judged("K", "as run", "agrees", "")]  # its printed cell was not reproduced
    first, second = accounts([*stated, *other, *lost])
    assert first == ("K", PRIMARY, 3, 1, 2, 0, 0, 0)
    assert second == ("K", "as run", 2, 1, 2, 0, 1, 1)
    assert adopted([first, second], {}) == [first]
    assert adopted([first, second], {"K": ["as run"]}) == [second]
    counts = by_reading([*other, *lost, *stated])
    assert list(counts) == [PRIMARY, "as run"]
    assert counts["as run"]["agrees"] == 2


def test_two_adopted_readings_add_up() -> None:
    stated = [Judged("A", "", verdict, "") for verdict in ("agrees", "differs", "differs")]
    found = accounts(
        [
            *stated,
            Judged("A", "one", "agrees", "differs"),
            Judged("A", "two", "agrees", "differs"),
            Judged("A", "two", "differs", "agrees"),
        ]
    )
    (both,) = adopted(found, {"A": ["one", "two"]})
    assert (both.reading, both.agree, both.differ) == ("one and two", 2, 1)
    assert (both.cells, both.explained, both.spoiled) == (3, 2, 1)


@pytest.mark.parametrize(
    ("name", "planner"),
    [("vertex by Dantzig's rule", "dantzig"), ("vertex by the dual LP", "dual")],
)
def test_one_rule_for_the_vertex_concerns_every_simulated_cell_of_its_policy(
    name: str, planner: str
) -> None:
    read = {reading.name: reading.read for reading in READINGS}[name]
    others = [other for cell in results(policy="LPAS_DG") if (other := read(cell))]
    runs = {run_of(cell) for cell in others}
    assert len(others) > 240
    assert {run.policy.partition(":use")[0] for run in runs} == {f"lpas_dg:planner={planner}"}
    assert {"MGST.HiLo:8", "3.A:alpha1:5", "3.4.4:alpha:1"} <= {run.system for run in runs}
    assert run_of(others[0], "Gcmu").policy == "gcmu"
    assert all(read(cell) is None for cell in results(policy="Gcmu"))
