"""What ran on which machine when, read from a journal; requests to several machines at once."""

from pathlib import Path

import pytest

from gridwright import Grid, GridClosedError
from gridwright.grid import Journal, request_all
from gridwright.grid.event import Entry
from gridwright.grid.job import Job, Stage
from gridwright.grid.timeline import Attempt, attempts

NEVER = float("inf")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Four jobs: one finishes, one is lost and finishes elsewhere, one times out, one runs."""
    made = Journal(tmp_path / "1.sqlite")
    jobs = []
    for number, (stage, machine, started) in enumerate(
        [
            (Stage.finished, "m0", 1.0),
            (Stage.finished, "m0", 4.0),
            (Stage.finished, "m1", 5.0),
            (Stage.sent, "m1", 9.0),
        ]
    ):
        job = Job(number, number % 2, 0.0, stage, attempt=1)
        job.sent = job.started = started
        jobs.append((job, "ab"[number % 2], machine))
    told = [
        (1.0, "started", 0, 1, "m0"),
        (2.0, "started", 1, 1, "m1"),
        (3.0, "finished", 0, 1, "m0"),
        (3.5, "down", None, None, "m1"),
        (3.6, "lost", 1, 1, "m1"),
        (4.0, "started", 1, 2, "m0"),
        (5.0, "started", 2, 1, "m1"),
        (6.0, "timed out", 2, 1, "m1"),
        (7.0, "finished", 1, 2, "m0"),
        (8.0, "finished", 2, 1, "m1"),
        (9.0, "started", 3, 1, "m1"),
    ]
    entries = [Entry(*each, {"then": "wait"} if each[1] == "timed out" else {}) for each in told]
    made.write(entries, jobs, [(number, b"") for number in range(4)])
    return made


WHOLE = [
    Attempt("m0", 0, "a", 1.0, 3.0, "finished"),
    Attempt("m1", 1, "b", 2.0, 3.5, "lost"),
    Attempt("m0", 1, "b", 4.0, 7.0, "finished"),
    Attempt("m1", 2, "a", 5.0, 8.0, "finished"),
    Attempt("m1", 3, "b", 9.0, NEVER, "running"),
]


def test_every_attempt_has_a_start_and_an_end(journal: Journal) -> None:
    assert attempts(journal) == WHOLE


def test_of_the_latest_events_those_that_began_before_are_known(journal: Journal) -> None:
    assert attempts(journal, most=2) == WHOLE[3:]
    journal.write([Entry(9.5, "paused", machine="m0")])
    assert attempts(journal, most=1) == WHOLE[4:]


def test_several_machines_answer_at_once(tmp_path: Path) -> None:
    path = tmp_path / "grid.sqlite"
    with Grid(machines=["m0", "m1"], journal=path):
        other = Journal(path, new=False)
        found = request_all(other, "pause", ["m0", "m1", "m9"])
        assert found["m0"] == found["m1"] == "done"
        assert found["m9"].startswith("error: no machine 'm9'")
        assert request_all(other, "pause", ["m1"]) == {"m1": "as it was"}
    with pytest.raises(GridClosedError):
        request_all(other, "pause", ["m0"])
    other.close()
