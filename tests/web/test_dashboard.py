"""The page of a run at a glance: tiles, the strip of the last minutes, events as sentences."""

from pathlib import Path

import numpy as np
import pytest

from gridwright.grid import MachineState
from gridwright.grid.event import FIELDS, Entry
from gridwright.grid.timeline import Attempt
from gridwright.model import System
from gridwright.web.dashboard import STATES, Span, Watcher, spans_of, tiles_of
from gridwright.web.pages.machine_tiles import can
from gridwright.web.runs import open_journal
from gridwright.web.sentences import KINDS, operated, sentence

from .long_run import write_long_run

NEVER = float("inf")
SYSTEM = System(arrivals=[1, 1], rates=[[2, 4], [8, 1]], availability=[0.5, 1])
RAN = [
    Attempt("1", 1, "1", 0.0, 4.0, "finished"),
    Attempt("1", 2, "1", 4.0, 8.0, "finished"),
    Attempt("2", 3, "2", 2.0, 6.0, "lost"),
    Attempt("2", 4, "1", 7.0, NEVER, "running"),
]


def machine(name: str, state: str, running: int | None = None) -> MachineState:
    return MachineState(name, state, 0.0, running, 2, 0, None, None)


def test_tiles_say_what_a_machine_does_and_how_fast_it_is() -> None:
    first, second = tiles_of([machine("1", "up"), machine("2", "up", 4)], RAN, 2.0, 10.0, SYSTEM)
    assert (first.state, first.job, first.utilisation) == ("idle", None, 0.75)
    assert (second.state, second.job, second.task_class) == ("busy", 4, "1")
    assert second.utilisation == 0.875
    assert (first.rate_class, first.learnt, first.stated) == ("1", 0.25, 1.0), "of its half CPU"
    assert (second.rate_class, second.learnt, second.stated) == ("2", None, 1.0)
    learnt = np.array([[1.5, 4.0], [8.0, 0.9]])
    first, second = tiles_of([machine("1", "up"), machine("2", "up")], RAN, 2, 10, SYSTEM, learnt)
    assert (first.learnt, first.stated) == (1.5, 2.0), "of its whole CPU, as the grid assumes"
    assert (second.learnt, second.stated) == (0.9, 1.0)


@pytest.mark.parametrize(
    ("state", "running", "shown"),
    [
        ("paused", 3, "finishing"),
        ("paused", None, "paused"),
        ("not yet up", None, "starting"),
        ("down", None, "down"),
        ("off", None, "off"),
    ],
)
def test_states(state: str, running: int | None, shown: str) -> None:
    (tile,) = tiles_of([machine("1", state, running)], [], 0.0, 0.0, SYSTEM)
    assert tile.state == shown
    assert shown in STATES


def test_a_machine_may_be_down_and_paused() -> None:
    state = machine("1", "down")._replace(paused=True)
    (tile,) = tiles_of([state], [], 0.0, 0.0, SYSTEM)
    assert (tile.state, tile.words) == ("down", "down, paused")
    assert can("resume", tile)
    assert can("start", tile)
    assert not can("pause", tile)
    for name, allowed in (("killed", True), ("idle", False), ("down", False)):
        assert can("resume", tile._replace(state=name, paused=False)) is allowed
    assert can("resume", tile._replace(state="finishing"))


def test_the_strip_has_what_is_in_its_time() -> None:
    assert spans_of(RAN, ["1", "2"], ["1", "2"], 5.0, 9.0) == [
        Span(0, 5.0, 8.0, 0),
        Span(1, 5.0, 6.0, 1, lost=True),
        Span(1, 7.0, 9.0, 0),
    ]


def test_a_long_run_has_a_short_strip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    with open_journal(write_long_run(3000)) as journal:
        seen = Watcher().look(journal)
    assert len(seen.tiles) == 6
    assert {each.state for each in seen.tiles} == {"off"}
    assert 0 < seen.since < seen.now
    assert 0 < len(seen.spans) < 2100
    assert sum(each.finished for each in seen.tiles) == 3000


def test_every_kind_of_event_is_a_sentence() -> None:
    values = {"period": 2.0, "availability": 0.5, "measured": 0.4, "predicted": 0.6, "value": 2.0}
    for kind in {*KINDS, *FIELDS} - {"submitted", "sent", "started", "finished"}:
        fields = {name: values.get(name, "x") for name in FIELDS.get(kind, ())}
        said = sentence(Entry(1.0, kind, 7, 1, "m{job}", fields))
        assert said.startswith("1.00: ")
        assert said.endswith(".")
        assert kind in KINDS
    said = sentence(Entry(1.0, "failure", machine="m{job}", fields={"period": 2.0}))
    assert said == "1.00: An operator takes machine m{job} away for 2 time units."
    assert sentence(Entry(1.0, "availability imposed", machine="m")) == (
        "1.00: Availability imposed on machine m."
    )
    told = [Entry(1.0, "paused"), Entry(1.0, "availability imposed"), Entry(2.0, "paused")]
    assert operated(told) == "2 pauses, 1 imposed availability"
