"""Workers listen where their scheduler is, and never in plain text where others can reach them."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Security

from gridwright import InputError
from gridwright.cli.main import run
from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor
from gridwright.testbed import Experiment

from .conftest import WAIT, Cluster, running

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


def listening(cluster: Cluster) -> set[str]:
    """Return the hosts that a command's processes listen on."""
    own = psutil.Process(cluster.process.pid)
    return {
        connection.laddr.ip
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running("--local", "1", "--port", "0") as found:
        yield found


def test_everything_listens_on_loopback(cluster: Cluster, tmp_path: Path) -> None:
    with running("--on", cluster.address, "--name", "x") as joined:
        with Grid("fcfs", on=DaskExecutor(cluster.address), journal=tmp_path / "j") as grid:
            assert [each.result(WAIT) for each in grid.submit_all(abs, [-1, -2, -3])] == [1, 2, 3]
            hosts = [listening(each) for each in (cluster, joined)]
        assert hosts == [{"127.0.0.1"}, {"127.0.0.1"}]


def test_a_scheduler_listens_on_the_loopback_of_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("this computer has no IPv6")
    with running("--local", "1", "--port", "0", "--host", "::1") as cluster:
        assert cluster.address.startswith("tcp://[::1]:")
        assert listening(cluster) == {"::1", "127.0.0.1"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """TLS files that are read only when they are used."""
    folder = tmp_path_factory.mktemp("tls")
    names = {name: str(folder / f"{name}.pem") for name in ("ca_file", "cert", "key")}
    for path in names.values():
        Path(path).touch()
    return names


def test_files_for_tls_are_refused_with_an_address_in_plain_text(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    address = "tcp://127.0.0.1:8786"
    why = f"TLS files are given, but {address} is not encrypted: use tls://127.0.0.1:8786"
    options = [f"--tls-{name.replace('_', '-')}={path}" for name, path in files.items()]
    assert run(["dask", "workers", "--on", address, *options]) == 2
    assert capsys.readouterr() == ("", f"gridwright: {why}\n")
    security = {
        "tls_ca_file": files["ca_file"],
        "tls_client_cert": files["cert"],
        "tls_client_key": files["key"],
    }
    for given in (security, Security(**security)):
        with pytest.raises(InputError, match=re.escape(why)):
            DaskExecutor(address, security=given)
    with pytest.raises(InputError, match="tls is given, but on is"):
        Experiment(
            system={"arrivals": [1], "rates": [[2]]},
            policy="fcfs",
            duration=1,
            on=address,
            tls=files,
        )
