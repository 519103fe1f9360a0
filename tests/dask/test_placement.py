"""Dask's tasks on real workers, placed by a policy."""

import inspect
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
from dask.delayed import delayed
from distributed import (
    Client,
    Event,
    LocalCluster,
    Status,
    Worker,
    WorkerPlugin,
    get_worker,
    secede,
)

import dask
from gridwright import InputError
from gridwright.dask import Placement, learning

pytestmark = pytest.mark.slow
CLUSTER: dict[str, Any] = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "processes": False,
    "dashboard_address": ":0",
}


def placer(client: Client) -> Any:
    """Return the placer of a scheduler that runs in this process."""
    return client.cluster.scheduler.plugins["gridwright"].placer


def unequal(seconds: float) -> Any:
    """Take ten times as long on every worker but the first."""
    worker = get_worker().name
    time.sleep(seconds * (1 if worker == 0 else 10))
    return worker


def other(seconds: float) -> Any:
    worker = get_worker().name
    time.sleep(seconds * (1 if worker == 1 else 10))
    return worker


@pytest.mark.parametrize("policy", ["fcfs", "gcmu", "lpas_dg", "pas_dg", "mct", "pas"])
def test_results_come_back(client: Client, policy: str) -> None:
    client.register_plugin(Placement(policy))
    futures = client.map(lambda x: x + 1, range(50))
    assert client.gather(futures) == list(range(1, 51))
    total = client.submit(sum, futures)
    assert total.result(timeout=30) == sum(range(1, 51))
    assert placer(client).decisions > 0


def test_tasks_go_where_they_are_fast(client: Client) -> None:
    client.register_plugin(Placement("pas_dg"))
    for _ in range(2):  # the second time it is known who is fast
        slow = [client.submit(unequal, 0.02, pure=False) for _ in range(40)]
        fast = [client.submit(other, 0.02, pure=False) for _ in range(40)]
        where = [Counter(client.gather(each)) for each in (slow, fast)]
    assert min(where[0][0], where[1][1]) >= 30, where


def test_everything_ends_and_nothing_stays_in_the_book(client: Client) -> None:
    client.register_plugin(Placement("pas_dg"))

    def fail(x: int) -> int:
        raise ValueError(x)

    def long(x: int) -> int:
        secede()
        time.sleep(0.2)
        return x

    good = client.map(lambda x: 2 * x, range(20))
    bad = client.map(fail, range(5))
    seceded = client.map(long, range(5))
    pinned = client.submit(lambda: get_worker().name, workers=[1], pure=False)
    cancelled = client.map(time.sleep, [5.0] * 10, pure=False)
    client.cancel(cancelled)
    assert client.gather(good) == list(range(0, 40, 2))
    assert client.gather(seceded) == list(range(5))
    assert pinned.result(timeout=30) == 1
    assert all(isinstance(future.exception(timeout=30), ValueError) for future in bad)
    for _ in range(100):
        if not placer(client).book.jobs:
            break
        time.sleep(0.1)
    assert not placer(client).book.jobs
    assert not placer(client).numbers


def test_a_stock_scheduler_is_left(client: Client) -> None:
    client.register_plugin(Placement("pas_dg"))
    before = client.map(time.sleep, [0.01] * 50, pure=False)
    client.unregister_scheduler_plugin("gridwright")
    after = client.map(time.sleep, [0.01] * 50, pure=False)
    client.gather([*before, *after])
    assert not {"is_rootish", "stimulus_queue_slots_maybe_opened"} & set(
        vars(client.cluster.scheduler)
    )


def test_annotations_and_functions_name_classes(client: Client) -> None:
    client.register_plugin(Placement("fcfs"))
    with dask.annotate(gridwright="render"):  # type: ignore[attr-defined]
        client.gather(client.map(lambda x: x, range(3)))
    client.gather(client.map(abs, range(3)))
    assert list(placer(client).classes) == ["render", "abs"]
    client.unregister_scheduler_plugin("gridwright")
    client.register_plugin(Placement("fcfs", classes=lambda key: "all"))
    client.gather(client.map(hash, range(3)))
    assert list(placer(client).classes) == ["all"]


def test_what_was_learnt_is_remembered(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    client.register_plugin(Placement("pas_dg", memory=path))
    client.gather([client.submit(unequal, 0.01, pure=False) for _ in range(20)])
    learnt = placer(client).learner.count.sum()
    client.unregister_scheduler_plugin("gridwright")
    client.register_plugin(Placement("pas_dg", memory=path))
    client.submit(unequal, 0.01, pure=False).result(timeout=30)
    assert placer(client).learner.count.sum() >= learnt > 0


def pause(dask_worker: Worker) -> None:
    """Pause a worker as Dask does when its memory is short."""
    dask_worker.status = Status.paused


def test_a_worker_may_be_paused_before_the_first_task(client: Client) -> None:
    client.register_plugin(Placement("pas_dg"))
    book = placer(client).book
    before = book.plans
    client.run(pause, workers=list(client.scheduler_info()["workers"])[:1])
    end = time.monotonic() + 60
    while placer(client) and book.plans == before and time.monotonic() < end:
        time.sleep(0.01)
    assert client.gather(client.map(abs, range(-20, 0))) == list(range(20, 0, -1))
    assert placer(client).decisions > 0


def test_a_policy_that_fails_leaves_the_scheduler_working(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "from gridwright.policies import pull\n\n\n"
        "@pull\ndef broken(machine, view):\n"
        "    return 0 if view.classes[0].arrived < 20 else [][1]\n"
    )
    client.register_plugin(Placement(file))
    assert client.gather(client.map(lambda x: -x, range(50))) == [-x for x in range(50)]
    plugin = client.cluster.scheduler.plugins["gridwright"]
    assert "IndexError" in plugin.why_off
    assert plugin.placer is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": "pas_dgg"}, "did you mean"),
        ({"policy": "min_min"}, "push and pull"),
        ({"groups": "rack"}, "worker, prefix, host"),
    ],
)
def test_wrong_input(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Placement(**given)


def test_very_short_tasks_are_left_to_dask(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "TINY", 0.5)  # on a busy computer nothing is short
    client.register_plugin(Placement("pas_dg"))
    assert client.gather(client.map(abs, range(-1000, 0))) == list(range(1000, 0, -1))
    before = placer(client).decisions
    assert client.gather(client.map(abs, range(1, 301))) == list(range(1, 301))
    assert placer(client).decisions == before
    for _ in range(100):
        if not placer(client).book.jobs:
            break
        time.sleep(0.1)
    assert not placer(client).book.jobs
    assert not placer(client).numbers


def pass_gate() -> Any:
    return Event("gate").wait()


def test_a_late_message_of_another_worker_leaves_no_task_behind(client: Client) -> None:
    client.register_plugin(Placement("fcfs"))
    gate = Event("gate", client=client)
    busy = [client.submit(pass_gate, pure=False) for _ in range(8)]
    scheduler = client.cluster.scheduler
    while not scheduler.queued:
        time.sleep(0.01)
    waiting = next(task for task in busy if scheduler.tasks[task.key].state == "queued")
    said = {"key": waiting.key, "worker": next(iter(scheduler.workers)), "run_id": 0}
    handler = scheduler.stream_handlers["long-running"]
    taken = set(inspect.signature(type(scheduler).handle_long_running).parameters)
    said |= {"compute_duration": None, "stimulus_id": "late"}
    said = {name: value for name, value in said.items() if name in taken}
    scheduler.loop.add_callback(lambda: handler(**said))
    gate.set()
    assert client.gather(busy) == [True] * 8


def test_a_worker_that_replaces_another_gets_waiting_tasks(client: Client) -> None:
    client.register_plugin(Placement("pas_dg"))
    gate, scheduler = Event("gate", client=client), client.cluster.scheduler
    waiting = [client.submit(pass_gate, pure=False) for _ in range(8)]
    while len(scheduler.queued) != 6:
        time.sleep(0.01)

    async def replace_a_worker() -> Worker:
        await scheduler.remove_worker(next(iter(scheduler.workers)), stimulus_id="test")
        return await Worker(scheduler.address, nthreads=1)

    new = client.cluster.sync(replace_a_worker)
    while not scheduler.workers[new.address].processing:
        time.sleep(0.01)
    gate.set()
    assert client.gather(waiting) == [True] * 8
    client.cluster.sync(new.close)


class MostMade(WorkerPlugin):  # type: ignore[misc]
    """Counts the results on a worker that others still need."""

    name = "most made"

    def setup(self, worker: Any) -> None:
        self.worker, self.most = worker, 0

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        made = sum(str(each).startswith("abs") for each in self.worker.data)
        self.most = max(self.most, made)


def spend(number: int) -> None:
    return None


@pytest.mark.parametrize("policy", ["pas_dg", "mct"])
def test_results_are_used_before_more_are_made(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "TINY", 0.5)  # on a busy computer nothing is short
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(MostMade())
        client.register_plugin(Placement(policy))
        made = [delayed(abs)(-k) for k in range(60)]
        client.gather(client.compute([delayed(spend)(each) for each in made]))
        counts = client.run(lambda dask_worker: dask_worker.plugins["most made"].most)
    assert list(counts.values()) == [1, 1]
