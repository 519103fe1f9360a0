"""Two computers: a scheduler and half of the workers behind a link that delays, loses and breaks.

The other computer is a network namespace of this one. The link is a pair of network devices whose
packets pass through this process. Making these needs root.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import cloudpickle
import pytest

from gridwright.grid import Grid
from gridwright.grid.executors.dask import DaskExecutor

from .conftest import WAIT, all_up, events, journalled, running, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this
TUN = "/dev/net/tun"
SET_INTERFACE, PLAIN_TUN = 0x400454CA, 0x1001
"""The request that makes a device, and its kind: packets without anything in front of them."""


class Link:
    """A network link between this computer and another, made of two devices."""

    def __init__(self, names: tuple[str, str], delay: float, loss: float, seed: int) -> None:
        self.delay, self.loss, self.rng = delay, loss, random.Random(seed)
        self.is_cut = self.closing = False
        self.passed = self.lost = 0
        self.ends = [self._device(name) for name in names]
        self.thread = Thread(target=self._carry)

    @staticmethod
    def _device(name: str) -> int:
        file = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(file, SET_INTERFACE, struct.pack("16sH14x", name.encode(), PLAIN_TUN))
        return file

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Let nothing pass."""
        self.is_cut = True
        yield
        self.is_cut = False

    def close(self) -> None:
        """Remove the devices."""
        self.closing = True
        if self.thread.is_alive():
            self.thread.join()
        for end in self.ends:
            os.close(end)

    def _carry(self) -> None:
        """Pass packets from each end to the other, late or never."""
        under_way: list[tuple[float, int, int, bytes]] = []
        while not self.closing:
            due = under_way[0][0] - time.monotonic() if under_way else 0.1
            for end in select.select(self.ends, [], [], max(min(due, 0.1), 0.0))[0]:
                packet, other = os.read(end, 1 << 16), self.ends[end == self.ends[0]]
                if self.is_cut or self.rng.random() < self.loss:
                    self.lost += 1
                else:
                    self.passed += 1
                    at = time.monotonic() + self.delay
                    heapq.heappush(under_way, (at, self.passed, other, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(under_way)
                try:
                    os.write(end, packet)
                except OSError:  # the device is down
                    self.lost += 1


@contextmanager
def another_computer(delay: float, loss: float) -> Iterator[tuple[Link, str, list[str]]]:
    """Make another computer; yield the link, its address, and what to put before a command there.

    Skip the test if that is not possible here.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    number = os.getpid() % (1 << 14)
    here, there = (f"10.213.{number >> 6}.{(number & 63) * 4 + k}" for k in (1, 2))
    space, devices = f"gridwright-{number}", (f"gw{number}here", f"gw{number}there")
    with ExitStack() as stack:

        def do(command: str) -> None:
            try:
                done = subprocess.run(command.split(), capture_output=True, text=True)
            except OSError as error:
                pytest.skip(f"network namespaces need iproute2: {error}")
            if done.returncode:
                pytest.skip(f"{command}: {done.stderr.strip()}")

        do(f"ip netns add {space}")
        stack.callback(do, f"ip netns del {space}")
        try:
            link = Link(devices, delay, loss, seed=1)
        except OSError as error:
            pytest.skip(f"{TUN}: {error}")
        stack.callback(link.close)
        inside = f"ip netns exec {space}"
        do(f"ip link set {devices[1]} netns {space}")
        do(f"ip addr add {here}/30 dev {devices[0]}")
        do(f"ip link set {devices[0]} up")
        do(f"{inside} ip addr add {there}/30 dev {devices[1]}")
        do(f"{inside} ip link set {devices[1]} up")
        do(f"{inside} ip link set lo up")
        link.thread.start()
        yield link, there, inside.split()


def work(number: int, log: str) -> int:
    """Write the number down, and return its square."""
    time.sleep(0.05)
    with open(log, "a", encoding="ascii") as file:
        file.write(f"{number}\n")
    return number**2


def test_nothing_is_lost_between_two_computers(tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    asked = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=grid"]
    command = ["openssl", "req", *asked, "-keyout", key, "-out", cert]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("openssl cannot make a certificate")
    tls = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    security = {"tls_ca_file": cert, "tls_client_cert": cert, "tls_client_key": key}
    log, jobs = str(tmp_path / "log"), 200
    with (
        another_computer(delay=0.01, loss=0.01) as (link, host, there),
        running("--local", "2", "--host", host, "--port", "0", *tls, before=there) as cluster,
        running("--local", "2", "--name", "here", "--on", cluster.address, *tls),
    ):
        executor: Any = DaskExecutor(cluster.address, security=security)
        assert executor.machines == ["1", "2", "here-1", "here-2"]
        with Grid("fcfs", on=executor, journal=tmp_path / "j.sqlite") as grid:
            assert grid.ping("1") >= 0.02
            futures = [grid.submit(work, number, log) for number in range(jobs)]
            until(lambda: sum(future.done() for future in futures) > 20)
            with link.cut():  # TCP sends again what was lost
                time.sleep(1.0)
            until(lambda: sum(future.done() for future in futures) > 60)
            with link.cut():  # long enough that the grid gives up the scheduler
                until(lambda: not any(m["up"] for m in grid.status()["machines"].values()))
            assert [future.result(WAIT) for future in futures] == [n**2 for n in range(jobs)]
            until(lambda: all_up(grid))
            assert grid.submit(work, jobs, log).result(WAIT) == jobs**2
    assert link.lost > 0
    kept = journalled(tmp_path / "j.sqlite")
    assert all(each.job.stage == "finished" for each in kept.values())
    ran = Counter(map(int, Path(log).read_text().split()))
    assert ran.keys() == set(range(jobs + 1))
    again = {number for number, times in ran.items() if times > 1}
    assert again <= {number for number, each in kept.items() if each.job.attempt > 1}
    finished = Counter(e.job for e in events(tmp_path / "j.sqlite") if e.kind == "finished")
    assert set(finished.values()) == {1}
