"""What the plugin tells of itself: to programs, in a terminal and in the dashboard."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("distributed")
from distributed import Client, LocalCluster, Security, get_worker

import dask
from gridwright import InputError
from gridwright.cli.main import run
from gridwright.dask import Placement
from gridwright.dask.status import ask

pytestmark = pytest.mark.slow


CLUSTER = {
    "threads_per_worker": 2,
    "protocol": "tcp",
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}
"""So that it can be reached by TCP."""


def render(seconds: float) -> None:
    time.sleep(seconds * (1 if get_worker().name == 0 else 10))


def crunch(seconds: float) -> None:
    time.sleep(seconds * (1 if get_worker().name == 1 else 10))


def work(client: Client) -> None:
    """Run tasks of two classes until both workers know both, and one that Dask places."""
    for _ in range(2):
        futures = [client.submit(kind, 0.02, pure=False) for kind in [render, crunch] * 15]
        client.gather(futures)
    pinned = [client.submit(render, 0.02, workers=[k], pure=False) for k in [0, 1] * 5]
    client.gather(pinned)


def test_status(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    address = client.cluster.scheduler_address
    client.register_plugin(Placement("pas_dg"))
    work(client)
    found = ask(address)
    assert found["on"]
    assert (found["policy"], found["why_off"]) == ("pas_dg", None)
    assert found["placed"]["gridwright"] >= 60  # more if a worker gave tasks back
    assert found["placed"]["dask"] == 10
    assert found["compared"] is None
    assert [each["name"] for each in found["classes"]] == ["render", "crunch"]
    assert [each["waiting"] + each["running"] for each in found["classes"]] == [0, 0]
    assert [each["good_for"] for each in found["workers"]] == ["render", "crunch"]
    fast, slow = found["rates"][0]
    assert fast > 2 * slow > 0
    assert found["errors"][0][0] == pytest.approx(found["measured"][0][0] ** -0.5, rel=1e-4)
    assert found["plans"] > 1
    assert found["longest_call_ms"] > 0

    assert run(["dask", "status", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == found.keys()
    assert run(["dask", "status", address]) == 0
    said = capsys.readouterr().out
    assert f"placed: {found['placed']['gridwright']} by the policy, 10 by Dask" in said
    assert f"{fast:.3g} ± " in said


def test_status_of_a_plugin_that_is_off(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    address = client.cluster.scheduler_address
    with pytest.raises(InputError, match="places tasks without Gridwright"):
        ask(address)
    client.register_plugin(Placement("mct"))
    plugin: Any = client.cluster.scheduler.plugins["gridwright"]
    client.cluster.loop.add_callback(plugin._fail, ZeroDivisionError("of <policy>"))
    while plugin.placer is not None:
        time.sleep(0.01)
    assert run(["dask", "status", address]) == 0
    assert "because: ZeroDivisionError: of <policy>" in capsys.readouterr().out
    client.unregister_scheduler_plugin("gridwright")
    assert ask(address)["why_off"] == "the plugin is not registered"


def read(client: Client, path: str) -> str:
    port = client.cluster.scheduler.http_server.port
    with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
        return str(answer.read().decode())


def test_the_page_in_a_browser(client: Client, browser: Any) -> None:
    client.register_plugin(Placement("mct"))
    client.unregister_scheduler_plugin("gridwright")
    client.register_plugin(Placement("pas_dg", compare=1.0))  # its pages are there already
    name = "<i id=evil>&'\""
    with dask.annotate(gridwright=name):  # type: ignore[attr-defined]
        client.gather(client.map(abs, range(30)))
    work(client)
    assert json.loads(read(client, "json/gridwright.json"))["classes"][0]["name"] == name
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{client.cluster.scheduler.http_server.port}/gridwright")
    assert page.locator("thead th").all_inner_texts()[3:] == [name, "render", "crunch"]
    assert page.locator("td.rate").count() == 6
    assert page.locator("#evil").count() == 0
    assert "Dask would have chosen the same worker" in page.inner_text("main")
    client.unregister_scheduler_plugin("gridwright")
    page.wait_for_selector(".off")  # it refreshes itself
    assert "the plugin is not registered" in page.inner_text("main")


def test_pages_follow_the_prefix_of_the_dashboard() -> None:
    with (
        LocalCluster(
            n_workers=0,
            processes=False,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"http_prefix": "/my/dask"},
        ) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(Placement("mct"))
        assert "No task has come yet" in read(client, "my/dask/gridwright")
        assert json.loads(read(client, "my/dask/json/gridwright.json"))["policy"] == "mct"
        with pytest.raises(HTTPError, match="404"):
            read(client, "gridwright")


@pytest.mark.parametrize("saturation", [1.1, float("inf")])
def test_comparison_with_dask(client: Client, saturation: float) -> None:
    """What Dask would do is asked for every decision; asking changes nothing."""
    scheduler: Any = client.cluster.scheduler
    scheduler.WORKER_SATURATION = saturation
    client.register_plugin(Placement("pas_dg", compare=1.0))
    hooks = scheduler.plugins["gridwright"].placer.hooks
    stock, states = hooks.stock_choice, []

    def state(task: Any) -> tuple[Any, ...]:
        group = task.group
        workers = [(each.occupancy, set(each.processing)) for each in scheduler.workers.values()]
        idle = (set(scheduler.idle), set(scheduler.idle_task_count), set(scheduler.saturated))
        tasks = {key: each.state for key, each in scheduler.tasks.items()}
        chosen = (group.last_worker, group.last_worker_tasks_left, scheduler.WORKER_SATURATION)
        return workers, idle, tasks, chosen

    def watched(task: Any) -> Any:
        before = state(task)
        found = stock(task)
        states.append(state(task) == before)
        return found

    hooks.stock_choice = watched
    work(client)
    client.gather(client.map(render, [0.001 + k / 1e6 for k in range(30)]))  # root tasks of Dask
    compared = ask(client.cluster.scheduler_address)["compared"]
    assert compared["sampled"] == len(states) >= 90
    assert all(states)
    assert 0 < compared["same"] <= len(states) - compared["dask_waits"]
    assert 0 < compared["judged"] <= len(states) - compared["dask_waits"]


def test_a_comparison_that_fails_harms_nobody(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.register_plugin(Placement("pas_dg", compare=1.0))
    plugin: Any = client.cluster.scheduler.plugins["gridwright"]
    plugin.placer.hooks.stock_choice = lambda task: task.nothing
    assert client.gather(client.map(abs, range(20))) == list(range(20))
    assert caplog.text.count("no longer compared: AttributeError") == 1
    assert plugin.placer is not None


@pytest.mark.parametrize("share", [-0.1, 2, "all"])
def test_wrong_shares(share: Any) -> None:
    with pytest.raises(InputError, match=r"compare is .*; expected a share"):
        Placement("mct", compare=share)


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dask", "status", "tcp://127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gridwright: no Dask scheduler answers at tcp://127.0.0.1:1")
    assert said.count("\n") == 1
    assert run(["dask", "status", "here"]) == 2
    assert "expected tcp://HOST:PORT" in capsys.readouterr().err


def test_status_over_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    if subprocess.run(
        [*command.split(), "-keyout", key, "-out", cert], capture_output=True
    ).returncode:
        pytest.skip("openssl cannot make a certificate")
    roles = {
        f"tls_{role}_{part}": file
        for role in ("scheduler", "worker", "client")
        for part, file in (("cert", cert), ("key", key))
    }
    security = Security(tls_ca_file=cert, require_encryption=True, **roles)
    options = {**CLUSTER, "protocol": "tls", "n_workers": 1, "processes": False}
    with LocalCluster(security=security, **options) as cluster, Client(cluster) as client:
        client.register_plugin(Placement("mct"))
        assert client.submit(abs, -1).result() == 1
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        files = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
        assert run(["dask", "status", address, *files, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["policy"] == "mct"
        assert run(["dask", "status", address]) == 2
        assert "asks for TLS" in capsys.readouterr().err
