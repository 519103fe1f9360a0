"""Jobs that kill their process or never end: they fail after their retries, others are served."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import JobLostError
from gridwright.grid import (
    Grid,
    JobFailedError,
    Journal,
    Stage,
    machine_states,
    statistics,
    time_limit,
)
from gridwright.grid.executors import Ended, MachineDown
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.executors.virtual import FakeExecutor
from gridwright.grid.worker import LONGEST

from .conftest import WAIT, all_up, journalled, until, where

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct"])
def test_poison_jobs_are_given_up_and_others_are_served(policy: str, tmp_path: Path) -> None:
    with Grid(policy, machines=2, journal=tmp_path / "j.sqlite") as grid:
        poison = [grid.submit(os._exit, 7) for _ in range(2)]
        innocents = grid.submit_all(abs, range(30))
        assert [each.result(WAIT) for each in innocents] == list(range(30))
        for each in poison:
            with pytest.raises(JobLostError, match=r"after 3 attempts: .*status 7 on machine"):
                each.result(WAIT)
        assert (grid.status()["deaths"], grid.status()["given_up"]) == (6, 2)
    kept = journalled(tmp_path / "j.sqlite")
    assert [(kept[k].job.stage, kept[k].job.deaths) for k in (0, 1)] == [(Stage.failed, 3)] * 2
    assert "given up after 3 attempts" in kept[0].error


def test_a_job_without_retries_says_which_signal_ended_it(tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        Grid("fcfs", machines=["only"], journal=tmp_path / "j.sqlite", retries=0) as grid,
        pytest.raises(JobLostError, match=r"after 1 attempt: .* by SIGKILL .* on machine only"),
    ):
        grid.submit(kill).result(WAIT)


def test_deaths_are_counted_across_a_restart_of_the_grid(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    executor = LocalExecutor(1)

    def kill_it(grid: Grid, number: int, times: int) -> None:
        for _ in range(times):
            where(grid, number)
            before = grid.status()["deaths"]
            os.kill(executor.pid(0), signal.SIGKILL)
            until(lambda before=before: grid.status()["deaths"] > before)  # type: ignore[misc]

    grid = Grid("fcfs", on=executor, journal=path)
    future = grid.submit(time.sleep, 1000)
    kill_it(grid, future.number, 2)
    grid.close()
    executor = LocalExecutor(1)
    with Grid("fcfs", on=executor, journal=path) as grid:
        kill_it(grid, future.number, 1)
        with pytest.raises(JobLostError, match=r"given up after 3 attempts: .*SIGKILL .*3 times"):
            grid.unfinished[future.number].result(WAIT)


def test_a_machine_that_is_taken_away_does_not_count_against_its_job(tmp_path: Path) -> None:
    mark = tmp_path / "third"

    def third_time() -> str:
        if not mark.exists():
            time.sleep(1000)
        return "done"

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite", retries=0) as grid:
        future = grid.submit(third_time)
        where(grid, future.number)
        grid.fail("1", for_=0.01)
        until(lambda: machine_states(grid.journal)[0].lost == 1)
        where(grid, future.number)
        grid.kill("1")
        until(lambda: machine_states(grid.journal)[0].lost == 2)
        mark.touch()
        grid.resume("1")
        assert future.result(WAIT) == "done"
        assert grid.status()["deaths"] == 0
    (kept,) = journalled(tmp_path / "j.sqlite").values()
    assert (kept.job.lost, kept.job.deaths) == (2, 0)


@pytest.mark.parametrize("then", ["resubmit", "duplicate", "fail"])
def test_an_endless_job_leaves_every_machine_to_others(then: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[10.0, 10.0]], "timeout_factor": 2, "corrections": False}
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", machines=2, journal=path, on_timeout=then, retries=1, **options) as grid:
        future = grid.submit(time.sleep, 1000)
        times = "1 attempt" if then == "fail" else "2 attempts"
        with pytest.raises(JobLostError, match=f"after {times}: it took more than 2 times"):
            future.result(WAIT)
        until(lambda: all_up(grid))
        assert [each.state for each in machine_states(grid.journal)] == ["up", "up"]
        assert [f.result(WAIT) for f in grid.submit_all(abs, range(4))] == [0, 1, 2, 3]


def test_endless_jobs_and_their_copies_do_not_keep_all_machines(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [[10.0, 10.0]], "timeout_factor": 2, "corrections": False}
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", machines=2, journal=path, on_timeout="duplicate", **options) as grid:
        endless = [grid.submit(time.sleep, 1000) for _ in range(2)]
        assert [f.result(WAIT) for f in grid.submit_all(abs, range(4))] == [0, 1, 2, 3]
        for each in endless:
            with pytest.raises(JobLostError, match="after 3 attempts"):
                each.result(WAIT)


def test_an_endless_copy_is_stopped_when_the_other_answers(tmp_path: Path) -> None:
    second = tmp_path / "second"

    def once_there_are_two() -> str:
        if second.with_suffix(".first").exists():
            second.touch()
            time.sleep(1000)
        second.with_suffix(".first").touch()
        while not second.exists():
            time.sleep(0.01)
        return "first"

    options: dict[str, Any] = {"rates": [[10.0, 10.0]], "timeout_factor": 2, "corrections": False}
    path = tmp_path / "j.sqlite"
    options |= {"on_timeout": "duplicate", "retries": 5}
    with Grid("fcfs", machines=2, journal=path, **options) as grid:
        future = grid.submit(once_there_are_two)
        assert future.result(WAIT) == "first"
        until(lambda: all_up(grid))
        assert [f.result(WAIT) for f in grid.submit_all(abs, range(4))] == [0, 1, 2, 3]


@pytest.mark.parametrize("policy", ["fcfs", "pas_dg", "mct"])
def test_a_copy_that_times_out_before_its_start_poisons_no_rate(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "STARTING", 0.0)

    def slowly() -> str:
        time.sleep(1.0)
        return "read"

    class Slow:
        def __reduce__(self) -> Any:
            return slowly, ()

    options: dict[str, Any] = {
        "rates": [[10.0, 10.0]],
        "timeout_factor": 2,
        "on_timeout": "duplicate",
    }
    path = tmp_path / "j.sqlite"
    with Grid(policy, machines=2, journal=path, **options) as grid:
        assert grid.submit(str, Slow()).result(WAIT) == "read"
        assert grid.status()["timed_out"] > 0
        assert [f.result(WAIT) for f in grid.submit_all(abs, range(6))] == list(range(6))
        assert np.isfinite(grid.status()["rates"]).all()
        found = grid.statistics()
        assert np.isfinite(found.rates[found.executed > 0]).all()
    assert journalled(path)[0].job.started >= 1.0


def test_an_error_is_cut_where_the_job_runs(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("begin" + "x" * 30_000_000 + "end")

    with Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid:
        with pytest.raises(JobFailedError) as error:
            grid.submit(fail).result(WAIT)
        assert grid.submit(abs, -1).result(WAIT) == 1
    said = str(error.value)  # the exception is too large to send, so its text is raised
    assert len(said) <= LONGEST
    assert said.startswith("Traceback")
    assert "begin" in said
    assert "characters left out" in said
    assert said.endswith("end")


class Wordy(FakeExecutor):
    """An executor that does not cut what its jobs say."""

    def _end(self, ended: Ended) -> None:
        super()._end(ended._replace(error="x" * 10_000_000))


class Mortal(FakeExecutor):
    """An executor whose first machine dies with every job, for a reason told at length."""

    def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
        self.tell(MachineDown(machine, "y" * 10_000_000, died=True))
        self.repair(machine)


@pytest.mark.parametrize("kind", [Wordy, Mortal])
def test_an_error_is_cut_at_the_door(kind: type[FakeExecutor], tmp_path: Path) -> None:
    executor = kind(["a"], lambda *attempt: 0.01)
    path = tmp_path / "j.sqlite"
    with Grid("fcfs", on=executor, journal=path, retries=0) as grid:
        with pytest.raises((JobFailedError, JobLostError)) as error:
            grid.submit(abs, -1).result(WAIT)
        assert 1000 < len(str(error.value)) <= LONGEST + 100
        assert grid.status()["broken"] == ""


def test_a_start_that_nobody_heard_of_is_left_out_of_the_statistics(tmp_path: Path) -> None:
    class Mute(FakeExecutor):
        """An executor that never tells of a start."""

        def start(self, job: int, machine: int, attempt: int, work: bytes) -> None:
            tell, self.tell = self.tell, lambda event: None
            super().start(job, machine, attempt, work)
            self.tell = tell

    executor, path = Mute(["a"], lambda *attempt: 0.01), tmp_path / "j.sqlite"
    grid = Grid("fcfs", on=executor, journal=path)
    with pytest.raises(JobFailedError, match="cannot be unpickled"):  # it has no result
        grid.submit(abs, -1).result(WAIT)
    assert np.isfinite(grid.status()["rates"]).all()
    grid.close()
    journal = Journal(path)
    found = statistics(journal)
    journal.close()
    assert found.executed.tolist() == [[1]]
    assert np.isnan(found.rates).all(), "nothing is known, and nothing is infinite"
    assert np.isnan(found.overhead).all()
    assert np.isnan([found.overall.execution, found.overall.communication]).all()
    assert found.overall.response > 0
