"""An experiment in cells: what is said of machines stays with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError, load
from gridwright.catalogue import experiment_names
from gridwright.testbed import Experiment, Fault, Listed, parse_machines
from gridwright.web.documents import document_of, experiment_from, system_of
from gridwright.web.form import TRACE, FaultCells, Form
from gridwright.web.pasted_table import read_table

WHOLE: dict[str, Any] = {
    "system": {
        "name": "mine",
        "arrivals": [5, 8],
        "rates": [[8, 3], [4, 10]],
        "counts": [1, 2],
        "availability": [1.0, 0.5, 0.25],
        "failures": {"mean_uptime": 20, "mean_repair": 2},
        "assumed": {"rates": [[8, 3], [4, 9]]},
    },
    "policy": "kpb:k=1",
    "name": "mine",
    "time_unit": 0.5,
    "duration": 30,
    "seed": 2**40,
    "job": "spin",
    "iterations": [500, 700],
    "machines": ["a", "b", "c"],
    "calibrations": [{"iterations": 500, "seconds": k} for k in (1, 2, 3)],
    "timeout": 4,
    "on_timeout": "duplicate",
    "detection": "timeout",
    "failures": [["1", 3.5, 4], ["3", 1, 2]],
    "resolution": 1,
    "prediction": ["weekly", {"mode": "recursive", "c": 0.3}, "weekly"],
    "corrections": {"overhead": False},
}


def test_an_experiment_is_the_same_through_the_cells() -> None:
    made = experiment_from(WHOLE)
    assert experiment_from(Form.of(WHOLE).document()) == made
    assert experiment_from(Form.of(document_of(made)).document()) == made


def test_new_rates_leave_everything_else() -> None:
    form = Form.of(WHOLE)
    form.take_table(read_table("2,5\t3,1\n4\t10,25", "rates"), whole=True)
    rates = {"system": {**WHOLE["system"], "rates": [[2.5, 3.1], [4, 10.25]]}}
    assert experiment_from(form.document()) == experiment_from({**WHOLE, **rates})
    form.take_table(read_table("2.5\n4", "rates"), whole=True)
    found = experiment_from(form.document())
    assert (found.system.mean_availability.tolist(), found.faults()) == ([1], (Fault(0, 3.5, 4),))
    assert found.system.failures is not None
    said = form.take_table(read_table("2.5\n4\n5", "rates"), whole=True)
    assert said.endswith("; a new class has the arrivals of the last one before it")
    assert form.sheet.arrivals[2] == form.sheet.arrivals[1]
    with pytest.raises(InputError, match="chains"):
        Form.of({"system": {"template": []}}).take_table(read_table("1", "rates"))


def test_a_table_with_known_names_goes_where_they_are() -> None:
    """Names in another order take along their rates, so nothing else changes its machine."""
    form = Form.of(WHOLE)
    form.sheet.classes, form.sheet.groups = ["a", "b"], ["x", "y"]
    before = form.document()
    said = form.take_table(read_table("\ty\tx\nb\t1\t2\na\t3\t4", "rates"), whole=True)
    assert said.endswith("put where its names are")
    after = form.document()
    assert after["system"].pop("rates") == [[4, 3], [2, 1]]
    del before["system"]["rates"]
    assert after == before
    form.take_table(read_table("\tz\nb\t7", "rates"), (0, 2))
    assert form.document()["system"]["groups"] == ["x", "y", "z"]
    assert form.document()["system"]["rates"] == [[4, 3, 3], [2, 1, 7]]


def test_any_class_and_any_column_may_go() -> None:
    form = Form.of(WHOLE)
    form.remove_classes([0])
    found = form.document()
    assert (found["system"]["rates"], found["iterations"]) == ([[4, 10]], 700)
    form.remove_columns([0])
    found = form.document()
    assert (found["system"]["rates"], found["machines"]) == ([[10]], ["b", "c"])
    assert found["failures"] == [["2", 1, 2]], "what was said of its machines went with it"
    form.remove_classes([0])
    form.remove_columns([0])
    assert form.document()["system"]["rates"] == [[10]], "the last stays"


@pytest.mark.parametrize("name", experiment_names()[::4])
def test_so_are_the_published_ones(name: str) -> None:
    made = Experiment.find(name)
    again = experiment_from(Form.of(document_of(made)).document())
    for key in ("system", "policy", "time_unit", "duration", "seed", "corrections", "failures"):
        assert getattr(again, key) == getattr(made, key)


def test_what_is_said_of_a_machine_goes_with_it() -> None:
    form = Form.of(WHOLE)
    assert form.names() == ["1", "2", "3"]
    form.remove_machines([(1, 0)])
    found = form.document()
    assert found["system"]["counts"] == [1, 1]
    assert found["system"]["availability"] == [1, 0.25]
    assert found["machines"] == ["a", "c"]
    assert found["failures"] == [["1", 3.5, 4], ["2", 1, 2]]
    form.remove_machines([(0, 0)])
    assert form.document()["failures"] == [["1", 1, 2]]
    form.remove_machines([(0, 0)])
    assert form.names() == ["1"], "the last stays"


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_any_machines_may_go(counts: list[int], data: Any) -> None:
    form = Form.of({"system": {"arrivals": [1], "rates": [[1.0] * len(counts)], "counts": counts}})
    places = form.sheet.machines()
    for number, place in enumerate(places):
        form.machine(place).address = f"m{number}"
        form.faults.append(FaultCells(place, str(number), str(number + 1)))
    form.cells["failures"] = TRACE
    gone = data.draw(st.sets(st.sampled_from(places), max_size=len(places) - 1))
    form.remove_machines(list(gone))
    left = [number for number, place in enumerate(places) if place not in gone]
    found = form.document()
    assert found["machines"] == [f"m{number}" for number in left]
    starts = {name: start for name, start, _ in found["failures"]}
    assert starts == dict(zip(form.names(), left, strict=True))


def test_a_list_names_the_columns() -> None:
    form = Form.of(WHOLE)
    form.list_machines(parse_machines("x; pw; 1; 500\ny\nz;;;", "the list"))
    found = form.document()
    assert found["system"]["groups"] == ["x", "y", "z"]
    assert found["system"]["rates"] == [[8, 3, 3], [4, 10, 10]]
    assert found["calibrations"][0] == {"iterations": 500, "seconds": 60}
    assert "pw" not in str(found)
    form.list_machines([Listed("x")])
    assert form.document()["failures"] == [["x", 3.5, 4]]


def test_chains_are_kept_as_they_are() -> None:
    form = Form.of({"system": document_of(load("Wisnesky:1"))})
    assert form.names() == []
    assert system_of(form.document()["system"]) == load("Wisnesky:1")
    form.sheet.add_machine()
    form.sheet.add_class()
    with pytest.raises(InputError, match="no table of machines"):
        form.list_machines([Listed("x")])


def test_a_trace_is_taken() -> None:
    form = Form.of({"system": {"arrivals": [1], "rates": [[2, 2]], "groups": ["a", "b"]}})
    form.take_faults([Fault(1, 1.25, 2.5)])
    assert form.document()["failures"] == [["b", 1.25, 2.5]]
    form.sheet.groups[1] = "c"
    assert form.document()["failures"] == [["c", 1.25, 2.5]], "it is still the same machine"
