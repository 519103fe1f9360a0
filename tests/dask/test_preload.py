"""Placement that the scheduler's side switches on: ``dask scheduler --preload gridwright.dask``."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
from distributed import Client, LocalCluster, get_worker

import dask
from gridwright import InputError
from gridwright.dask.status import ask

pytestmark = pytest.mark.slow

HERE = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
BY_CONFIGURATION = {"DASK_DISTRIBUTED__SCHEDULER__PRELOAD": '["gridwright.dask"]'}


@contextmanager
def process(*arguments: str) -> Iterator[None]:
    """Run a command of Dask until the end."""
    command = [sys.executable, "-m", "dask", *arguments]
    with subprocess.Popen(command) as running:
        try:
            yield
        finally:
            running.terminate()


@contextmanager
def cluster(folder: Path, *options: str) -> Iterator[Client]:
    """Yield a client of a scheduler with two workers, each a process."""
    file = str(folder / "scheduler.json")
    with ExitStack() as stack:
        stack.enter_context(process("scheduler", *HERE, "--scheduler-file", file, *options))
        for name in ("a-1", "a-2"):
            worker = ["--name", name, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
            stack.enter_context(process("worker", "--scheduler-file", file, *worker))
        with Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            yield client


def settings(dask_scheduler: Any = None) -> tuple[str, Any, Any]:
    plugin = dask_scheduler.plugins["gridwright"]
    return str(plugin.policy), plugin.groups, plugin.memory


def where(_: int) -> Any:
    return get_worker().name


def test_a_scheduler_starts_with_a_policy(tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    options = ["--preload", "gridwright.dask", "--gridwright-policy", "mct"]
    options += ["--gridwright-groups", "prefix", "--gridwright-memory", str(memory)]
    with cluster(tmp_path, *options) as client:
        assert client.run_on_scheduler(settings) == ("mct", "prefix", str(memory))
        futures = client.map(where, range(20))
        assert set(client.gather(futures)) == {"a-1", "a-2"}
    assert '"where"' in memory.read_text()  # kept when the scheduler ended


def test_a_configuration_switches_it_on() -> None:
    table = {"policy": "kpb:k=1", "groups": "host", "memory": None}
    with (
        dask.config.set({"distributed.scheduler.preload": "gridwright.dask", "gridwright": table}),
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        assert client.run_on_scheduler(settings) == ("kpb:k=1", "host", None)
        assert client.submit(where, 1).result(timeout=30) == 0


def test_a_cluster_with_a_policy_in_one_command() -> None:
    command = [sys.executable, "-m", "gridwright", "dask", "workers", "--local", "2", "--port", "0"]
    command += ["--policy", "mct", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            address = json.loads(running.stdout.readline())["address"]
            with Client(address, timeout=60) as client:
                assert set(client.gather(client.map(where, range(20)))) == {"1", "2"}
            found = ask(address)
            assert (found["policy"], found["placed"]["dask"]) == ("mct", 0)
        finally:
            running.terminate()


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        (["--gridwright-policy", "pas_dgg"], {}, "no policy 'pas_dgg'; did you mean 'pas_dg'"),
        ([], {"DASK_GRIDWRIGHT__POLCY": "mct"}, "gridwright.polcy in Dask's configuration is"),
        (None, {**BY_CONFIGURATION, "DASK_GRIDWRIGHT__MEMORY": __file__}, "is no memory of"),
    ],
)
def test_wrong_settings_stop_the_scheduler(
    options: list[str] | None, variables: dict[str, str], said: str
) -> None:
    preload = [] if options is None else ["--preload", "gridwright.dask", *options]
    ended = subprocess.run(
        [sys.executable, "-m", "dask", "scheduler", *HERE, *preload],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert said in next(line for line in ended.stderr.splitlines() if line.startswith("Error: "))
    assert "Traceback" not in ended.stderr


def test_wrong_settings_stop_a_cluster_in_a_program() -> None:
    wrong = {"distributed.scheduler.preload": ["gridwright.dask"], "gridwright.policy": "mtc"}
    with dask.config.set(wrong), pytest.raises(RuntimeError, match="failed to start") as raised:
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    cause: BaseException = raised.value
    while cause.__cause__ is not None:
        cause = cause.__cause__
    assert isinstance(cause, InputError)
    assert "did you mean 'mct'" in str(cause)
