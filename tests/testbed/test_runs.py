"""Runs on real processes: what happens is what was to happen, and nothing is lost."""

import asyncio
import csv
import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError
from gridwright.grid import Journal, Mapper, Statistics
from gridwright.testbed import (
    Experiment,
    Run,
    actual_rates,
    conduct,
    export,
    gap,
    report,
    runs,
    twin,
)
from gridwright.testbed.twin import TWINS
from gridwright.testbed.workload import Fault, JobList

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))


def experiment(**parts: object) -> Experiment:
    usual = {"system": "MGST.HiHi:4", "policy": "lpas_dg", "time_unit": 0.4, "duration": 8}
    return Experiment(**{**usual, **parts})


FAULTS = (Fault(1, 2.0, 4.0), Fault(4, 3.0, 100.0))


def test_a_run_its_twin_and_its_tables(tmp_path: Path) -> None:
    plan = experiment(corrections=False)
    with conduct(plan, faults=FAULTS) as run:
        assert (run.number, run.state, runs()) == (1, "done", [run.path])
        jobs = [kept.job for kept in run.journal.jobs()]
        assert len(jobs) == len(run.jobs) == len(plan.job_list())
        late = np.array([job.submitted for job in jobs]) - run.jobs.times
        assert late.min() > -1e-6, "no job comes before its time"
        found = run.statistics()
        figures = found.overall
        assert figures.finished + figures.unfinished == figures.arrived == len(jobs)
        assert figures.finished > 100
        done = [job for job in jobs if job.stage == "finished"]
        for job in done:
            assert job.submitted <= job.sent <= job.started <= job.ended <= job.heard
            assert job.heard <= job.settled
            assert job.free <= job.heard_free <= job.sent
        kinds = Counter(entry.kind for entry in run.journal.events())
        assert (kinds["failure"], kinds["repair"]) == (2, 1)
        assert kinds["down"] == 2
        assert kinds["up"] == 7
        assert kinds["finished"] == figures.finished
        assert len(run.journal.decisions()) >= figures.finished
        # Nothing runs where a machine is not.
        for kept in run.journal.jobs():
            if kept.machine == "5" and kept.job.stage == "finished":
                assert kept.job.ended < 3.1
        rates = actual_rates(run)
        there = ~np.isnan(rates)
        assert (rates[there] <= 1.001 * run.system.effective[there]).all(), "a sleep is never short"
        model = twin(run).overall
        assert model.arrived == figures.arrived
        told: list[float] = []
        parts = gap(run, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1
        assert len(told) > 5 * TWINS, "each twin tells how far it is"
        assert parts.run == figures.response
        assert sum(parts.shares.values()) == pytest.approx(parts.run - parts.twin)
        files = export(run, tmp_path / "tables")
        names = {path.name for path in files}
        assert {"jobs.csv", "failures.csv", "decisions.csv", "MGST.HiHi-4_mue.txt"} <= names
        with (tmp_path / "tables" / "jobs.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(jobs)
        assert sum(float(row["response"] or 0) for row in rows) / len(done) == pytest.approx(
            figures.response
        )
    again = Run.find(1)
    assert repr(again.statistics()) == repr(found)
    again.close()


def stop_when(is_time: Callable[[Mapper], bool]) -> Callable[[Mapper], None]:
    pressed: list[bool] = []

    def watch(mapper: Mapper) -> None:
        if not pressed and is_time(mapper):
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    return watch


def test_a_run_that_is_stopped_goes_on() -> None:
    plan = experiment(system="MGST.HiHi:1", policy="gcmu", duration=6)
    with pytest.raises(KeyboardInterrupt):
        conduct(plan, watch=stop_when(lambda mapper: mapper.now() > 2.0))
    with Run.find(1) as run:
        assert run.state == "stopped"
        assert run.until > 1.9
        came = len(list(run.journal.jobs()))
        assert came < len(run.jobs)
        asked = run.journal.ask("pause run", "")
        conduct(run)
        assert run.state == "done"
        assert run.journal.answered(asked) == "error: the grid that this was asked of had ended"
        jobs = [kept.job for kept in run.journal.jobs()]
        assert [job.number for job in jobs] == list(range(len(run.jobs)))
        figures = run.statistics().overall
        assert figures.finished + figures.unfinished == len(jobs)
        assert figures.finished > came, "and so are some that came later"
        ends = Counter(entry.job for entry in run.journal.events("finished"))
        assert set(ends.values()) == {1}, "none finished twice"
        assert len(ends) == figures.finished
        with pytest.raises(InputError, match="run 1 is done"):
            conduct(run)


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    one, other = Journal(tmp_path / "j.sqlite"), Journal(tmp_path / "j.sqlite")
    one.claim()
    assert other.is_claimed()
    with pytest.raises(InputError, match="another grid is writing this journal"):
        other.claim()
    one.close()
    assert not other.is_claimed()
    other.claim()
    other.close()


def test_jobs_may_really_take_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("a; ; 0.001; 2000\nb; ; 0.001; 2000\n")
    plan = Experiment(
        system={"arrivals": [4], "rates": [[8, 4]]},
        policy="fcfs",
        job="spin",
        machines=str(tmp_path / "list"),
        duration=600,
    )
    pressed: list[bool] = []

    def watch(mapper: Mapper) -> None:
        if mapper.journal.count().get("finished") == 3 and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        conduct(plan, jobs=JobList([0.1, 0.2, 0.3], [0, 0, 0], [0.5, 0.5, 0.5]), watch=watch)
    with Run.find(1) as run:
        assert run.statistics().overall.finished == 3
        assert {kept.machine for kept in run.journal.jobs()} == {"a", "b"}


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no run 7"):
        Run.find(7)
    Journal(tmp_path / "grid.sqlite").close()
    with pytest.raises(InputError, match="journal of a grid, not of an experiment"):
        Run(tmp_path / "grid.sqlite")


def test_a_report_and_the_tables_of_a_run_that_goes_on_are_about_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with conduct(experiment(duration=4), path=tmp_path / "run.sqlite") as run:
        still, known = report(run, expected=False), len(list(run.journal.jobs()))
        writer = sqlite3.connect(run.path, timeout=0, isolation_level=None)

        def go_on(done: float = 0.0) -> None:
            """Write as a run that goes on, at any time."""
            writer.execute("UPDATE job SET ended = ended + 1, heard = heard + 1")
            writer.execute("DELETE FROM job WHERE number = (SELECT MAX(number) FROM job)")

        found = report(run, expected=False, progress=go_on)
        assert json.dumps(found.as_json()) == json.dumps(still.as_json())
        measured, before = Run.statistics, run.statistics().overall.arrived
        assert before < known, "it has gone on"

        def and_go_on(self: Run) -> Statistics:
            found = measured(self)
            go_on()
            return found

        monkeypatch.setattr(Run, "statistics", and_go_on)
        export(run, tmp_path / "tables", originals=False)
        writer.close()
    with (tmp_path / "tables" / "jobs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == before
    with (tmp_path / "tables" / "system.csv").open() as file:
        assert ["arrived", str(before)] in list(csv.reader(file))


def test_a_run_in_a_notebook_where_a_loop_runs_already(tmp_path: Path) -> None:
    chosen = Experiment.find("MGST-1", time_unit=0.1, duration=3)

    async def cell() -> float:
        with conduct(chosen, path=tmp_path / "run.sqlite") as run:
            return twin(run).overall.response / run.statistics().overall.response

    assert 0 < asyncio.run(cell()) < 2  # on a busy computer the run is far slower than its twin


def test_a_run_with_a_start_that_nobody_heard_of_can_be_shown_and_exported(tmp_path: Path) -> None:
    """A copy that timed out before its start was heard of may answer first."""
    done = "number, machine FROM job WHERE stage = 'finished' AND class = '1' ORDER BY number"
    with pytest.raises(KeyboardInterrupt):
        conduct(
            experiment(duration=60),
            watch=stop_when(lambda mapper: len(list(mapper.journal.select(done))) > 1),
        )
    with Run.find(1) as run:
        number, machine = next(iter(run.journal.select(done)))
        run.journal._database.execute("UPDATE job SET started=NULL WHERE number=?", (number,))
        found = report(run, expected=False)
        assert found.statistics.overall.finished > 1
        assert np.isfinite(found.statistics.overall.execution)
        assert np.isfinite(list(found.gap.shares.values())).all()
        assert not np.isinf(found.rates).any()
        j = found.statistics.machines.index(machine)
        alone = found.statistics.executed[0, j] == 1
        assert np.isnan(found.rates[0, j]) == alone
        export(run, tmp_path / "tables")
    with (tmp_path / "tables" / "jobs.csv").open() as file:
        row = list(csv.DictReader(file))[number]
    assert (row["t4 started"], row["stage"]) == ("", "finished")
