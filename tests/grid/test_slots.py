"""Machines with several slots: names, learning, operators, deaths; local and on Dask workers."""

import io
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from gridwright import InputError, JobLostError
from gridwright.grid import Grid
from gridwright.grid.beliefs import Learner
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.progress import table_of
from gridwright.grid.settings import Corrections
from gridwright.grid.validation import executor_of

from .conftest import WAIT, Cluster, all_up, first_time_for_ever, running, until, where

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
pytestmark = pytest.mark.usefixtures("no_process_stays_behind")


def test_slots_are_named_after_their_machine() -> None:
    executor = LocalExecutor(["big", "small"], slots={"big": 3})
    assert executor.machines == ["big/1", "big/2", "big/3", "small"]
    assert executor.hosts == ["big", "big", "big", "small"]
    assert LocalExecutor(2, slots=2).machines == ["1/1", "1/2", "2/1", "2/2"]
    assert LocalExecutor(2, slots=1).machines == ["1", "2"]
    assert executor_of(None, None).machines == ["1", "2"]
    assert executor_of(None, None, 3).machines == ["1/1", "1/2", "1/3"]


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        (0, "slots is 0; expected a whole number from 1"),
        (2.5, "slots is 2.5"),
        (True, "slots is True"),
        ("8", "slots is '8'; expected a whole number .* or a table"),
        ({"big": 0}, r"slots\['big'\] is 0"),
        ({"bog": 2}, "slots: no machine 'bog'; did you mean 'big'"),
        ({"big": 2}, "two machines would be called 'big/1'"),
    ],
)
def test_wrong_slots(slots: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Grid("fcfs", ["big", "small", "big/1"], slots=slots)


def test_an_executor_has_its_slots() -> None:
    with pytest.raises(InputError, match=r"on is an executor, .*do not give slots too"):
        Grid("fcfs", on=LocalExecutor(1), slots=2)


def test_what_slots_measure_counts_for_their_machine() -> None:
    learner = Learner(
        np.ones((1, 3)), np.ones(1), 0.0, Corrections(), guessed=True, hosts=["a", "a", "b"]
    )
    for slot in (0, 1, 2):
        learner.ran(0, slot, 99.0)  # the first job of a process does not count
        learner.waited(slot, 99.0)
    for _ in range(1000):
        learner.ran(0, 0, 1.0)
        learner.ran(0, 1, 3.0)
        learner.ran(0, 2, 4.0)
        learner.waited(0, 1.0)
        learner.waited(1, 0.0)
    learner.add_machine(np.ones(1), "b")
    found = learner.rates(np.ones((1, 4)), np.ones(4), 0.5)
    assert found is not None
    first, second, third, joined = found[0]
    assert first == second == pytest.approx(1 / (2 + 0.5), rel=0.01)
    assert third == joined == pytest.approx(1 / 4, rel=0.01)


def test_slots_work_at_the_same_time_and_are_learnt_together(tmp_path: Path) -> None:
    slots = {"big": 3}
    with Grid("fcfs", ["big", "small"], slots=slots, journal=tmp_path / "j.sqlite") as grid:
        marks = [tmp_path / str(k) for k in range(4)]
        futures = [grid.submit(meet, mark, marks) for mark in marks]
        names = {future.result(WAIT) for future in futures}
        assert names == {"big/1", "big/2", "big/3", "small"}
        assert {future.machine for future in futures} == names
        list(grid.map(abs, range(60), timeout=WAIT))
        rates = np.array(grid.status()["rates"])
        assert (rates[:, 0] == rates[:, 1]).all()
        assert (rates[:, 0] == rates[:, 2]).all()
        assert grid.mapper.book.group.tolist() == [0, 0, 0, 1]


def meet(mark: Path, marks: list[Path]) -> str:
    """Wait until as many jobs run as there are marks; return the name of the machine."""
    mark.touch()
    while not all(each.exists() for each in marks):
        time.sleep(0.01)
    return machine()


def machine() -> str:
    """Return the name of this machine, without the time to import the package."""
    return os.environ["GRIDWRIGHT_MACHINE"]


def test_rates_are_given_by_machine(tmp_path: Path) -> None:
    rates, names = [[2.0, 1.0]], ["big", "small"]
    with Grid("fcfs", names, slots={"big": 2}, rates=rates, journal=tmp_path / "j.sqlite") as grid:
        assert grid.status()["rates"] == [[2.0, 2.0, 1.0]]
    with pytest.raises(InputError, match="a number for each of 2 machines"):
        Grid("fcfs", names, slots={"big": 2}, rates=[[2.0, 2.0, 1.0]])


def test_an_operator_names_a_machine_or_a_slot(tmp_path: Path) -> None:
    with Grid("fcfs", ["big", "small"], slots=2, journal=tmp_path / "j.sqlite") as grid:
        assert grid.pause("big")
        assert {grid.submit(machine).result(WAIT) for _ in range(4)} <= {"small/1", "small/2"}
        assert grid.resume("big/1")
        assert [each["paused"] for each in grid.status()["machines"].values()] == [
            *(False, True),
            *(False, False),
        ]
        assert grid.resume("big")
        assert 0 < grid.ping("small") < WAIT
        grid.kill("small")
        until(lambda: not any(grid.status()["machines"][f"small/{k}"]["up"] for k in (1, 2)))
        assert "2 of 4 slots of 2 machines up" in str(grid.status())
        grid.resume("small")
        until(lambda: all_up(grid))
        with pytest.raises(InputError, match="no machine 'bag'"):
            grid.pause("bag")


def test_a_job_for_any_slot_of_a_machine(tmp_path: Path) -> None:
    journal, slots = tmp_path / "j.sqlite", {"big": 2}
    with Grid("pas_dg", ["small", "big"], slots=slots, journal=journal) as grid:
        on_big = grid.options(machine="big")
        marks = [tmp_path / str(k) for k in range(2)]
        futures = [on_big.submit(meet, mark, marks) for mark in marks]
        assert {future.result(WAIT) for future in futures} == {"big/1", "big/2"}
        assert {on_big.submit(machine).result(WAIT) for _ in range(6)} <= {"big/1", "big/2"}
        assert grid.submit(machine).result(WAIT)
        assert list(grid.status()["classes"]) == ["meet@big", "machine@big", "machine"]
        rates = np.array(grid.status()["rates"])
        assert (rates[:2, 0] == 0).all()
        assert (rates[2] > 0).all()
        with pytest.raises(InputError, match="jobs of the same class for big; give another class"):
            grid.options(task_class="meet@big").submit(machine)
        grid.kill("big")
        left = on_big.submit(machine)
        until(lambda: "no machine can run class machine@big now" in grid.status()["held_up"])
        grid.close()
    with Grid("pas_dg", ["big", "small"], slots=slots, journal=journal) as grid:
        assert grid.future(left.number).result(WAIT) in ("big/1", "big/2")


def test_a_class_has_its_time_limit_on_any_slot(tmp_path: Path) -> None:
    limits, journal = {"sleep": 0.2}, tmp_path / "j.sqlite"
    with (
        Grid("fcfs", 1, slots=2, timeout=limits, journal=journal) as grid,
        pytest.raises(JobLostError, match=r"0\.2"),
    ):
        grid.options(machine="1").submit(time.sleep, 1000).result(WAIT)


def test_a_machine_with_slots_is_one_row(tmp_path: Path) -> None:
    from rich.console import Console

    mark = tmp_path / "began"
    with Grid("fcfs", ["big", "small"], slots={"big": 3}, journal=tmp_path / "j.sqlite") as grid:
        future = grid.options(machine="big/2").submit(first_time_for_ever, mark)
        assert where(grid, future.number) == "big/2"
        out = Console(width=200, record=True, file=io.StringIO())
        out.print(table_of(grid.status()))
        rows = [line.split() for line in out.export_text().splitlines()]
        assert ["big", "3", "up", "1", "of", "3", "slots", "0"] in rows
        assert ["small", "up", "0"] in rows
        future.cancel()


def test_a_death_takes_one_slot(tmp_path: Path) -> None:
    mark = tmp_path / "began"
    with Grid("fcfs", 1, slots=2, journal=tmp_path / "j.sqlite") as grid:
        other = grid.options(machine="1/1").submit(first_time_for_ever, mark)
        until(mark.exists)
        pid = grid.options(machine="1/2").submit(os.getpid).result(WAIT)
        os.kill(pid, signal.SIGKILL)
        again = until(lambda: grid.options(machine="1/2").submit(os.getpid).result(WAIT) != pid)
        assert again
        assert not other.done()
        other.cancel()


@pytest.mark.slow
def test_slots_of_workers(cluster: Cluster, tmp_path: Path) -> None:
    slots = {"2": 3}
    with Grid("fcfs", on=cluster.address, slots=slots, journal=tmp_path / "j.sqlite") as grid:
        assert list(grid.status()["machines"]) == ["1", "2/1", "2/2", "2/3"]
        marks = [tmp_path / str(k) for k in range(4)]
        futures = [grid.submit(meet, mark, marks) for mark in marks]
        assert {future.result(WAIT) for future in futures} == {"1", "2/1", "2/2", "2/3"}
        list(grid.map(abs, range(60), timeout=WAIT))
        rates = np.array(grid.status()["rates"])
        assert (rates[:, 1] == rates[:, 2]).all()
        assert (rates[:, 1] == rates[:, 3]).all()


@pytest.mark.slow
def test_a_worker_takes_its_slots_with_it(tmp_path: Path) -> None:
    first, later = ["1/1", "1/2"], ["x/1", "x/2"]
    with running("--local", "1", "--port", "0") as cluster:
        executor = DaskExecutor(cluster.address, slots=2)
        with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
            assert list(grid.status()["machines"]) == first
            with running("--on", cluster.address, "--name", "x"):
                until(lambda: len(grid.status()["machines"]) == len(first + later))
                until(lambda: all_up(grid))
                assert list(grid.status()["machines"]) == first + later
                grid.pause("1")
                futures = [grid.submit(first_time_for_ever, tmp_path / name) for name in "ab"]
                assert {where(grid, future.number) for future in futures} == set(later)
                until(lambda: all((tmp_path / name).exists() for name in "ab"))
                grid.resume("1")
            assert [future.result(WAIT) for future in futures] == ["done", "done"]
            assert {future.machine for future in futures} <= set(first)
            up = {name: each["up"] for name, each in grid.status()["machines"].items()}
            assert up == {**dict.fromkeys(first, True), **dict.fromkeys(later, False)}
