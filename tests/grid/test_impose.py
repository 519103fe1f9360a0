"""A machine of imposed availability is slow before, during and after as it should be.

Linux counts for how long a process ran and for how long it was ready to run. Together this is about
the time in which it was not stopped.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright.grid import Grid
from gridwright.grid.executors import Ended, Executor, MachineUp, Reading, Started
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.grid.executors.local import LocalExecutor
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.grid.guardian import Brake, Pace
from gridwright.testbed import Experiment, conduct
from gridwright.testbed.adjuster import carry_along, wait

from .conftest import WAIT, Cluster, Driven, until

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
TRIES = 3
"""A bad moment may be followed by a better one."""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))


@settings(max_examples=100)
@given(
    share=st.floats(0.02, 0.98),
    late=st.lists(st.floats(0, 0.02), min_size=1, max_size=5),
    seconds=st.floats(3, 6),
)
def test_a_guardian_that_is_late_makes_up_for_it(
    share: float, late: list[float], seconds: float
) -> None:
    pace, sent, now, k = Pace(share=share, working=1.0), list[int](), 100.0, 0
    brake = Brake(pace, sent.append)
    brake.step(now)
    while now < 100.0 + seconds:
        now += brake.step(now) + late[k % len(late)]
        k += 1
    brake.step(now)
    assert pace.watched == pytest.approx(now - 100.0)
    cycle = max(0.02, 0.005 / share)
    assert abs(pace.stopped - (1 - share) * pace.watched) < cycle + 2 * max(late)
    assert sent == [(signal.SIGSTOP, signal.SIGCONT)[k % 2] for k in range(len(sent))]
    pace.share = 1.0
    brake.step(now)
    assert len(sent) % 2 == 0, "it runs in the end"


def test_a_machine_without_a_job_is_not_stopped() -> None:
    sent: list[int] = []
    pace = Pace(share=0.1, working=0.0)
    brake = Brake(pace, sent.append)
    for now in range(100):
        assert brake.step(float(now)) >= 1.0
    assert (sent, pace.watched) == ([], 0.0)


def test_jobs_of_fake_machines_take_longer() -> None:
    async def run() -> list[Any]:
        told: list[Any] = []
        executor = FakeExecutor(["a"], lambda *_: 10.0, before=1.0, readings=lambda *_: 0.8)
        await executor.open(told.append, resolution=10.0)
        await executor.impose(0, 0.5)
        executor.start(0, 0, 1, b"")  # it begins at 1
        await asyncio.sleep(7)
        await executor.impose(0, 0.1)  # 7 of its 10 seconds are left, at a tenth of the speed
        await asyncio.sleep(20)
        await executor.impose(0, 1.0)
        await asyncio.sleep(6)
        await executor.close()
        return told

    told = run_virtually(run())
    (ended,) = (each for each in told if isinstance(each, Ended))
    assert ended.at == pytest.approx(7 + 20 + 5)
    readings = [each.measured for each in told if isinstance(each, Reading)]
    assert readings == pytest.approx([0.8, 0.08, 0.08, 0.8])


def ready_share(seconds: float) -> float:
    """Return the share of some seconds in which this process ran or was ready to."""

    def ready() -> float:
        ran, waited, _ = Path("/proc/self/schedstat").read_text().split()
        return (int(ran) + int(waited)) / 1e9

    began, before = time.monotonic(), ready()
    while time.monotonic() < began + seconds:
        pass
    return (ready() - before) / (time.monotonic() - began)


def share_of_cpu(seconds: float) -> float:
    """Return the share of some seconds in which this process ran: on a busy computer, less."""
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() < began + seconds:
        pass
    return (time.process_time() - used) / (time.monotonic() - began)


Makes = Callable[[Any], Executor]
KINDS: list[tuple[str, Makes]] = [
    ("local", lambda cluster: LocalExecutor(["a"])),
    ("dask", lambda cluster: DaskExecutor(cluster.address, 1)),
]


@pytest.mark.slow
@pytest.mark.usefixtures("no_process_stays_behind")
@pytest.mark.parametrize(("kind", "make"), KINDS, ids=[kind for kind, _ in KINDS])
def test_before_during_and_after(kind: str, make: Makes, cluster: Cluster) -> None:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("this kernel does not count how long a process was ready to run")
    numbers = iter(range(100))
    carry_along()
    with Driven(make(cluster)) as driven:

        def measured(share: float, seconds: float) -> float:
            driven.wait(driven.executor.impose(0, share))
            number = next(numbers)
            driven.start(number, 0, ready_share, seconds)
            return float(driven.result(number))

        assert measured(1.0, 0.3) > 0.95
        found = []
        for _ in range(TRIES):
            found.append(measured(0.4, 1.0))
            if abs(found[-1] - 0.4) < 0.02:
                break
        # on a busy computer a process stops only when it gets the processor, and until then it is
        # ready; `bench imposed` tells how exact it is on a quiet one
        assert 0.2 < min(found) < 0.9, found
        assert measured(1.0, 0.3) > 0.95

        number = next(numbers)
        driven.start(number, 0, wait, 0.3)
        until(lambda: [e for e in driven.told if isinstance(e, Started) and e.job == number])
        driven.wait(driven.executor.impose(0, 0.25))
        slow_since = time.monotonic()
        time.sleep(0.4)
        slow = time.monotonic() - slow_since
        driven.wait(driven.executor.impose(0, 1.0))
        driven.result(number)
        times = {type(e): e.at for e in driven.told if isinstance(e, Started | Ended)}  # the last
        lost = times[Ended] - times[Started] - 0.3
        # it checks every 0.05 seconds how fast it is; a busy computer makes it later
        assert lost > min(0.75 * slow, 0.15) - 0.05


@pytest.mark.slow
def test_a_process_in_place_of_another_is_as_slow() -> None:
    executor = LocalExecutor(["a"])
    with Driven(executor) as driven:
        driven.wait(executor.impose(0, 0.2))
        first = executor.pid(0)
        os.kill(first, signal.SIGKILL)
        until(lambda: executor.pid(0) not in (first, -1))
        until(lambda: sum(isinstance(each, MachineUp) for each in driven.told) == 2)
        driven.start(0, 0, share_of_cpu, 0.5)
        assert 0 < driven.result(0) < 0.3


@pytest.mark.slow
def test_machines_of_one_computer_report_their_own_shares() -> None:
    executor = LocalExecutor(["a", "b"])
    with Driven(executor, resolution=0.05) as driven:
        driven.wait(executor.impose(0, 0.5))
        count = len(driven.told)
        until(lambda: len(driven.told) >= count + 4)
        pairs = [each for each in driven.told[count:] if isinstance(each, Reading)]
        slow, whole = pairs[-2:] if pairs[-1].machine else pairs[-3:-1]
        assert slow.measured == pytest.approx(whole.measured / 2)
        assert slow.predicted == pytest.approx(whole.predicted / 2)


@pytest.mark.slow
def test_the_grid_knows_at_once_and_forgets_at_the_end(tmp_path: Path) -> None:
    with Grid("fcfs", machines=["a"], journal=tmp_path / "j.sqlite") as grid:

        def believed() -> float:
            return float(grid.mapper.book.machines[0].availability)

        grid.impose("a", 0.5, 0.2)
        assert believed() == 0.5
        until(lambda: believed() == 1.0)
        grid.impose("a", 0.5, 1000.0)
        assert grid.submit(abs, -1).result(WAIT) == 1


@pytest.mark.slow
def test_the_availability_of_an_experiment_is_imposed_and_seen(tmp_path: Path) -> None:
    """It takes effect and is measured, though another one was assumed."""
    system = {
        "arrivals": [2.0],
        "rates": [[10.0]],
        "availability": [0.5],
        "assumed": {"availability": [1.0]},
    }
    experiment = Experiment(
        system=system, policy="fcfs", time_unit=0.5, duration=8.0, resolution=0.5
    )
    with conduct(experiment, path=tmp_path / "1.sqlite") as run:
        readings = [each.fields for each in run.journal.events("availability")]
        jobs = [kept.job for kept in run.journal.jobs() if kept.job.stage == "finished"]
        works = run.jobs.works
    assert readings
    assert all(each["measured"] <= 0.5 + 1e-9 for each in readings)
    assert len(jobs) >= 5
    for job in jobs:
        assert job.ended - job.started >= works[job.number] / 5.0 * 0.999
