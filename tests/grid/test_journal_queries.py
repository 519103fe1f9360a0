"""Pages of a journal, and who writes it."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import GridClosedError, GridTimeoutError, InputError
from gridwright.grid import (
    Journal,
    event_page,
    interruptions,
    job_page,
    latest_events,
    machine_states,
    queues,
    request,
    statistics,
)
from gridwright.grid.event import Entry
from gridwright.grid.job import Job, Stage


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Thirty jobs, one a time unit: the last five wait, the five before them run."""
    made = Journal(tmp_path / "1.sqlite")
    made.describe(classes=["a", "b"], machines=["m0", "m1", "m2"], jobs=["long"])
    entries, jobs, works = [], [], []
    for k in range(30):
        stage = Stage.finished if k < 20 else Stage.sent if k < 25 else Stage.waiting
        job = Job(k, k % 2, float(k), stage, attempt=1)
        if k < 25:
            job.sent = k + 0.25
        if k < 20:
            job.ended = job.settled = k + 2.0
        machine = f"m{k % 3}" if k < 25 else None
        jobs.append((job, "ab"[k % 2], machine))
        works.append((k, b"work"))
        entries.append(Entry(float(k), "submitted", k))
    entries.append(Entry(30.0, "down", machine="m2"))
    made.write(entries, jobs, works)
    return made


def test_pages_filters_and_orders(journal: Journal) -> None:
    page = job_page(journal, offset=28, limit=10)
    assert (page.total, [job["number"] for job in page.jobs]) == (30, [28, 29])
    page = job_page(journal, sort="ended", descending=True, limit=2)
    assert [job["number"] for job in page.jobs] == [19, 18]
    wanted: dict[str, Any] = {"class": "a", "machine": "m0", "stage": "finished"}
    page = job_page(journal, limit=100, **wanted)
    assert [job["number"] for job in page.jobs] == [0, 6, 12, 18]
    assert page.total == 4
    assert job_page(journal, stage="no such").total == 0
    assert job_page(journal, offset=-5, limit=-5).jobs == []
    mistakes: list[dict[str, Any]] = [{"sort": "number; DROP TABLE job"}, {"colour": "red"}]
    for wrong in mistakes:
        with pytest.raises(InputError, match="expected"):
            job_page(journal, **wrong)


@pytest.mark.parametrize("sort", ["number", "ended", "class", "machine"])
@pytest.mark.parametrize("descending", [False, True])
def test_every_page_of_an_order(journal: Journal, sort: str, descending: bool) -> None:
    """Pages hold every job once, in one order, from whichever end the database looks."""
    found = []
    for offset in range(0, 35, 7):
        page = job_page(journal, sort=sort, descending=descending, limit=7, offset=offset)
        found += [(job[sort], job["number"]) for job in page.jobs]
    known = [(value is not None, value, number) for value, number in found]
    empty: Any = "" if sort in ("class", "machine") else 0
    wanted = sorted(known, key=lambda each: each[2])
    wanted.sort(key=lambda each: (each[0], each[1] or empty), reverse=descending)
    assert known == wanted
    assert len(found) == 30


def test_events_without_what_every_job_goes_through(journal: Journal) -> None:
    (only,) = event_page(journal)
    assert (only.kind, only.machine) == ("down", "m2")


def test_queues(journal: Journal) -> None:
    found = queues(journal, points=61)
    waiting = sum(found.waiting.values())
    inside = sum(found.in_system.values())
    assert isinstance(waiting, np.ndarray)
    assert isinstance(inside, np.ndarray)
    assert waiting[-1] == 5
    assert inside[-1] == 10
    assert waiting.min() >= 0
    assert found.times[-1] == 30


def test_percentiles_and_shares_of_the_response(tmp_path: Path) -> None:
    """Responses of class a are 1 to 1,000; those of b are all 5; one job of each has not ended."""
    made = Journal(tmp_path / "1.sqlite")
    made.describe(classes=["a", "b", "c"], machines=["m0"])
    jobs = []
    for k in range(2002):
        job = Job(k, k % 2, float(k), Stage.finished if k < 2000 else Stage.waiting, attempt=1)
        if k < 2000:
            job.sent, job.ended = float(k), k + (5.0 if k % 2 else 1.0 + k // 2)
            job.settled = job.ended
        jobs.append((job, "ab"[k % 2], "m0"))
    made.write([], jobs, [(k, b"work") for k in range(2002)])
    found = statistics(made, within=[5, 100])
    names = ("p50", "p95", "p99", "p99.9")
    works = np.arange(1, 1001)
    both = np.concatenate([works, np.full(1000, 5)])
    for figures, values in ((found.classes["a"], works), (found.overall, both)):
        wanted = np.quantile(values, [0.5, 0.95, 0.99, 0.999])
        assert [figures.tails[name] for name in names] == pytest.approx(list(wanted))
        assert figures.tails["within 100"] == np.mean(values <= 100)
    assert list(found.classes["b"].tails.values()) == [5, 5, 5, 5, 1, 1]
    assert np.isnan(list(found.classes["c"].tails.values())).all()
    assert found.as_json()["classes"]["a"]["p99"] == found.classes["a"].tails["p99"]
    with pytest.raises(InputError, match="within is -1; expected a positive number of time units"):
        statistics(made, within=[-1])
    made.close()


class BusyJournal(Journal):
    """A journal that a grid writes between any two queries: ten jobs come, are sent and end."""

    jobs_so_far = 100

    def select(self, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = super().select(words, values)
        for number in range(self.jobs_so_far, self.jobs_so_far + 10):
            job = Job(number, 0, 30.0, Stage.finished, attempt=1)
            job.sent = job.ended = job.settled = 30.0
            self.write([], [(job, "a", "m0")], [(number, b"work")])
        self.jobs_so_far += 10
        return found


def test_queues_are_never_negative_while_a_grid_writes(journal: Journal) -> None:
    journal.close()
    with closing(BusyJournal(journal.path, new=False)) as busy:
        found = queues(busy, points=61)
    for counts in (*found.waiting.values(), *found.in_system.values()):
        assert counts.min() >= 0


def test_a_cancelled_job_no_longer_waits(journal: Journal) -> None:
    job = Job(29, 1, 29.0, Stage.cancelled)
    job.settled = 30.0
    journal.write([], [(job, "b", None)])
    found = queues(journal, points=61)
    assert sum(each[-1] for each in found.waiting.values()) == 4


def test_machines(journal: Journal) -> None:
    found = {each.name: each for each in machine_states(journal)}
    assert [each.finished for each in found.values()] == [7, 7, 6]
    assert found["m0"].running == 21
    assert found["m2"].state == "down"


def test_a_machine_may_be_away_and_paused(journal: Journal) -> None:
    told = [("up", "up"), ("paused", "paused"), ("killed", "killed, paused"), ("up", "paused")]
    told += [("resumed", "up"), ("paused", "paused"), ("down", "down, paused")]
    told += [("resumed", "down"), ("up", "up"), ("killed", "killed"), ("down", "killed")]
    told += [("started again", "down"), ("up", "up")]
    for k, (kind, words) in enumerate(told):
        journal.write([Entry(31.0 + k, kind, machine="m0")])
        assert machine_states(journal)[0].words == words


def test_only_what_is_asked_for_is_told(journal: Journal) -> None:
    assert set(journal.told("classes", "none")) == {"classes"}
    assert set(journal.about) == {"classes", "machines", "jobs"}


def test_who_writes(journal: Journal) -> None:
    assert journal.owner() is None
    with pytest.raises(GridClosedError, match="not running"):
        request(journal, "ping", "m0")
    journal.claim()
    other = Journal(journal.path, new=False)
    assert other.owner() == os.getpid()
    with pytest.raises(InputError, match="another grid"):
        other.claim()
    assert other.owner() == os.getpid(), "who tries in vain leaves no trace"
    with pytest.raises(GridTimeoutError, match=r"did not answer within 0\.1 seconds"):
        request(other, "ping", "m0", patience=0.1)
    other.close()
    journal.release()
    assert journal.owner() is None
    journal.close()


def test_when_machines_failed_and_when_operators_stepped_in(journal: Journal) -> None:
    told = [(1.0, "paused", "m0"), (2.0, "availability imposed", "m0"), (3.0, "resumed", "m0")]
    told += [(4.0, "availability free", "m0"), (5.0, "paused", "m1")]
    told += [(6.0, "failure", "m0"), (6.1, "down", "m0"), (7.0, "up", "m0")]
    told += [(8.0, "killed", "m0"), (8.1, "down", "m0"), (9.0, "failure", "m0"), (10.0, "up", "m0")]
    told += [(11.0, "failure", "m0"), (12.0, "killed", "m0"), (13.0, "repair", "m0")]
    journal.write([Entry(time, kind, machine=name) for time, kind, name in told])
    journal.write([Entry(14.0, "failure", machine="m1", fields={"period": 2.0})])
    found, never = interruptions(journal), float("inf")
    assert found.failed["m0"] == [(6, 7), (11, 12)]
    assert found.taken == {"m0": [(8, 10), (12, never)], "m1": [(14, never)], "m2": []}
    assert found.paused == {"m0": [(1, 3)], "m1": [(5, never)]}
    assert found.slowed == {"m0": [(2, 4)]}


def test_the_latest_events_always_have_what_operators_did(journal: Journal) -> None:
    told = [Entry(40.0, "killed", machine="m0"), Entry(39.5, "down", machine="m0")]
    told += [Entry(41.0, "failure", machine="m1", fields={"period": 2.0})]
    told += [Entry(42.0, "failure", machine="m2"), Entry(42.5, "lost", 3, 1, "m2")]
    told += [Entry(50.0 + k, "plan", fields={"number": k}) for k in range(20)]
    told += [Entry(60.5, "run paused")]
    journal.write(told)

    def kinds(about: str = "", limit: int = 500) -> list[str]:
        return [each.kind for each in latest_events(journal, about, limit)]

    assert kinds(limit=3) == ["plan", "plan", "run paused", "failure", "killed"]
    times = [each.time for each in latest_events(journal)]
    assert times == sorted(times, reverse=True)
    assert kinds("operators") == ["run paused", "failure", "killed"]
    assert kinds("jobs")[0] == "lost"
    assert kinds("machines")[:4] == ["failure", "failure", "killed", "down"]
    with pytest.raises(InputError, match="expected one of jobs, machines, operators"):
        latest_events(journal, "plans")
