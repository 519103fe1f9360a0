"""Whoever dies, freezes or joins: nothing is lost or done twice."""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
from distributed import Client

from gridwright import GridClosedError, InputError, JobLostError
from gridwright.grid import Grid, Stage
from gridwright.grid.executors import Ended, MachineDown, MachineUp, Returned
from gridwright.grid.executors.dask import DaskExecutor

from .conftest import (
    WAIT,
    Cluster,
    Driven,
    alive,
    all_up,
    events,
    first_time_for_ever,
    journalled,
    running,
    until,
    where,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


@pytest.mark.parametrize("which", ["the worker", "the process of the job"])
def test_a_machine_that_is_killed_loses_its_job_and_comes_back(
    which: str, cluster: Cluster, tmp_path: Path
) -> None:
    mark = tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    with Grid("fcfs", on=DaskExecutor(cluster.address), journal=tmp_path / "j.sqlite") as grid:
        future = grid.submit(function, mark)
        until(mark.exists)
        machine = where(grid, future.number)
        job, worker = map(psutil.Process, map(int, mark.read_text().split()))
        (worker if which == "the worker" else job).kill()
        assert future.result(WAIT) == "done"
        until(lambda: not alive([job]))
        until(lambda: all_up(grid))
        grid.pause("2" if machine == "1" else "1")
        assert grid.submit(abs, -1).result(WAIT) == 1, "it is of use again"
    kept = journalled(tmp_path / "j.sqlite")[0]
    assert (kept.job.stage, kept.job.attempt, kept.job.lost) == (Stage.finished, 2, 1)
    seen = events(tmp_path / "j.sqlite")
    (down,) = (entry for entry in seen if entry.kind == "down")
    killed = "its process was killed by SIGKILL (out of memory?)"
    expected = "its worker died" if which == "the worker" else killed
    assert (down.machine, down.detail) == (machine, expected)
    assert Counter(entry.kind for entry in seen)["finished"] == 2


def test_a_job_on_a_worker_that_freezes_is_stopped_and_runs_elsewhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"rates": [[2.0, 2.0]], "timeout_factor": 2, "corrections": False}
    options["on_timeout"] = "resubmit"
    executor, mark = DaskExecutor(cluster.address), tmp_path / "began"
    function = cloudpickle.loads(cloudpickle.dumps(first_time_for_ever))
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite", **options) as grid:
        grid.pause("2")
        future = grid.submit(function, mark)
        until(mark.exists)
        job, worker = map(int, mark.read_text().split())
        until(lambda: any(entry.kind == "started" for entry in events(tmp_path / "j.sqlite")))
        os.kill(worker, signal.SIGSTOP)
        try:
            grid.resume("2")
            assert future.result(WAIT) == "done"
            with pytest.raises(TimeoutError):
                asyncio.run_coroutine_threadsafe(executor.ping(0), grid._loop).result(WAIT)
        finally:
            os.kill(worker, signal.SIGCONT)
        until(lambda: not psutil.pid_exists(job))
        until(lambda: all_up(grid))
        grid.pause("2")
        assert grid.submit(abs, -1).result(WAIT) == 1
    kept = journalled(tmp_path / "j.sqlite")[0]
    assert (kept.job.stage, kept.job.attempt, kept.job.timed_out) == (Stage.finished, 2, 1)
    kinds = Counter(entry.kind for entry in events(tmp_path / "j.sqlite"))
    assert (kinds["finished"], kinds["timed out"]) == (2, 1)


def test_poison_jobs_are_given_up_and_others_are_served(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address)
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite", retries=1) as grid:
        poison = [grid.submit(os._exit, 7) for _ in range(2)]
        innocents = grid.submit_all(abs, range(20))
        assert [each.result(WAIT) for each in innocents] == list(range(20))
        for each in poison:
            with pytest.raises(JobLostError, match=r"after 2 attempts: .*status 7 on machine"):
                each.result(WAIT)
        assert (grid.status()["deaths"], grid.status()["given_up"]) == (4, 2)


def break_the_third(topic: str, dask_worker: Any) -> None:
    """Let a worker fail when it comes to job 2."""
    plugin = dask_worker.plugins[topic]
    run = plugin._run

    async def fail(machine: Any, job: tuple[int, int], *rest: Any) -> Any:
        if job[0] == 2:
            raise OSError("the socket is broken")
        return await run(machine, job, *rest)

    plugin._run = fail


def test_of_jobs_that_travel_together_only_the_one_at_fault_is_blamed(cluster: Cluster) -> None:
    with Driven(DaskExecutor(cluster.address)) as driven, Client(cluster.address) as client:
        executor, work = driven.executor, cloudpickle.dumps((abs, (-1,), {}))
        client.run(break_the_third, executor._topic)  # type: ignore[attr-defined]

        def start_all() -> None:
            for job in range(5):
                executor.start(job, 0, 1, work)

        driven.call(start_all)
        until(lambda: sum(isinstance(each, Ended | Returned) for each in driven.told) == 5)
        errors = {each.job: each.error for each in driven.told if isinstance(each, Ended)}
        assert errors == {0: "", 1: "", 2: "its worker failed: OSError: the socket is broken"}
        returned = [each for each in driven.told if isinstance(each, Returned)]
        assert returned == [Returned(0, 3, 1), Returned(0, 4, 1)]


def test_a_machine_that_is_taken_away_again_while_it_comes_back_is_away(cluster: Cluster) -> None:
    with Driven(DaskExecutor(cluster.address, ["1"])) as driven:
        until(lambda: driven.told == [MachineUp(0)])

        def there_and_back() -> None:
            for what in ("fail", "repair", "fail", "repair", "fail"):
                getattr(driven.executor, what)(0)

        driven.call(there_and_back)
        driven.call(driven.executor.repair, 0)
        until(lambda: driven.told[-1] == MachineUp(0))
        driven.start(7, 0, abs, -3)
        assert driven.result(7) == 3
        away = MachineDown(0, "it was taken away")
        assert driven.told[1:5] == [away, away, away, MachineUp(0)]


def test_a_scheduler_that_dies_takes_all_machines_with_it_until_it_is_back(tmp_path: Path) -> None:
    path, log = tmp_path / "j.sqlite", tmp_path / "log"

    def note(k: int) -> int:
        time.sleep(0.05)
        with log.open("a") as file:
            file.write(f"{k}\n")
        return k

    with (
        running("--local", "2", "--port", "0") as first,
        Grid("fcfs", on=DaskExecutor(first.address), journal=path) as grid,
    ):
        futures = grid.submit_all(note, range(30))
        until(lambda: sum(each.done() for each in futures) > 5)
        first.end(signal.SIGKILL)
        until(lambda: not any(m["up"] for m in grid.status()["machines"].values()))
        before = [each.number for each in futures if each.done()]
        assert len(before) < 30
        with running("--local", "2", "--port", first.port) as second:
            assert second.address == first.address
            assert [each.result(WAIT) for each in futures] == list(range(30))
            until(lambda: all_up(grid))
    runs = Counter(map(int, log.read_text().split()))
    assert {runs[k] for k in before} == {1}, "what had ended is not run again"
    seen = events(path)
    ended = Counter(entry.job for entry in seen if entry.kind == "finished")
    assert set(ended.values()) == {1}
    assert len(ended) == 30
    downs = [(entry.machine, entry.detail) for entry in seen if entry.kind == "down"]
    assert sorted(downs[:2]) == [("1", "the scheduler is gone"), ("2", "the scheduler is gone")]


def test_nothing_hangs_without_a_scheduler(tmp_path: Path) -> None:
    with running("--local", "1", "--port", "0") as cluster:
        grid = Grid("fcfs", on=DaskExecutor(cluster.address), journal=tmp_path / "j.sqlite")
        future = grid.submit(time.sleep, 1000)
        where(grid, future.number)
        cluster.end(signal.SIGKILL)
        until(lambda: not all_up(grid))
        began = time.monotonic()
        grid.close()
        assert time.monotonic() - began < 10
    with pytest.raises(GridClosedError, match="closed before job 0 had ended"):
        future.result(0)


def test_a_worker_that_joins_is_a_further_machine(cluster: Cluster) -> None:
    with (
        Driven(DaskExecutor(cluster.address)) as all_of_them,
        Driven(DaskExecutor(cluster.address, 2)) as just_two,
    ):
        assert sorted(all_of_them.told) == [MachineUp(0), MachineUp(1)]
        with running("--on", cluster.address, "--name", "late"):
            until(lambda: MachineUp(2) in all_of_them.told)
            assert all_of_them.executor.machines == ["1", "2", "late"]
            all_of_them.start(1, 2, os.getpid)
            assert all_of_them.result(1) != os.getpid()
            with pytest.raises(InputError, match="status 2"):
                Cluster("--on", cluster.address, "--name", "late")
        until(lambda: MachineDown(2, "its worker is gone") in all_of_them.told)
        with running("--on", cluster.address, "--name", "late"):
            until(lambda: all_of_them.told[-1] == MachineUp(2))
        assert just_two.executor.machines == ["1", "2"]
        assert sorted(just_two.told) == [MachineUp(0), MachineUp(1)]


def test_a_grid_uses_a_worker_that_joins(cluster: Cluster, tmp_path: Path) -> None:
    executor = DaskExecutor(cluster.address)
    with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
        with running("--on", cluster.address, "--name", "late"):
            until(lambda: len(grid.status()["machines"]) == 3 and all_up(grid))
            for other in ("1", "2"):
                grid.pause(other)
            assert grid.submit(abs, -1).result(WAIT) == 1
        until(lambda: not grid.status()["machines"]["late"]["up"])
        grid.resume("1")
        assert grid.submit(abs, -2).result(WAIT) == 2
    machines = [each.machine for each in journalled(tmp_path / "j.sqlite").values()]
    assert machines == ["late", "1"]


def test_workers_that_joined_come_back_with_their_scheduler(tmp_path: Path) -> None:
    with (
        running("--local", "1", "--port", "0") as cluster,
        running("--on", cluster.address, "--local", "2", "--name", "x"),
        Driven(DaskExecutor(cluster.address, ["x-2", "x-1"])) as driven,
    ):
        cluster.end(signal.SIGKILL)
        until(lambda: len(driven.told) == 4)
        with running("--local", "1", "--port", cluster.port):
            until(lambda: len(driven.told) == 6)
            assert sorted(driven.told[4:]) == [MachineUp(0), MachineUp(1)]
            driven.start(1, 0, abs, -1)
            assert driven.result(1) == 1
