"""Run a Dask scheduler and workers: named, one thread each, without a dashboard."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ...model import InputError
from ..messages import is_loopback
from .connection import Tls, check_address, find_workers, probe, quiet, security_of, unreachable

AGAIN = 0.5
"""Seconds between attempts of a worker to find its scheduler again."""
LEAVE = 2.0
"""Seconds that a worker has to end before it is killed."""
FRUGAL = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",  # many workers share a computer
    "distributed.admin.system-monitor.interval": "5s",
}


@dataclass(frozen=True)
class _Place:
    """The scheduler of workers, and the host where they listen."""

    address: str
    security: Any
    host: str


def serve(
    names: list[str],
    host: str,
    port: int,
    tls: Tls | None,
    ready: Callable[[str], None],
    *,
    plugins: Sequence[Any] = (),
) -> None:
    """Run a scheduler and its workers until a signal; call ``ready`` when all are there.

    ``plugins`` are those of the scheduler.
    """
    host = host.strip("[]")
    _refuse_open(host, tls)
    host = _bracketed(host)
    address = f"{'tls' if tls else 'tcp'}://{host}:{port}"
    place = _Place(address, security_of(address, tls.options() if tls else None), host)
    _run(_serve(place, names, ready, plugins))


def join(names: list[str], address: str, tls: Tls | None, ready: Callable[[str], None]) -> None:
    """Run workers of an existing scheduler until a signal; reconnect when it is gone."""
    security = security_of(address, tls.options() if tls else None)
    _, host, port = check_address(address)
    _refuse_open(host, tls)
    place = _Place(address, security, _facing(host, port))
    taken = set(find_workers(address, place.security, 0).values()).intersection(names)
    if taken:
        raise InputError(f"there is a worker {taken.pop()!r} at {address} already; choose a --name")
    _run(_work(place, names, ready))


def _refuse_open(host: str, tls: Tls | None) -> None:
    """Refuse to listen to other computers without TLS."""
    if not is_loopback(host) and tls is None:
        raise InputError(
            f"{host} can be reached by others, who could run anything here: give --tls-ca-file, "
            "--tls-cert and --tls-key, or stay on 127.0.0.1"
        )


def _facing(host: str, port: int) -> str:
    """Return the address of this computer on the way to a host."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as line:
            line.connect(address)  # this sends nothing: it only finds the route
            return _bracketed(line.getsockname()[0])
    except OSError as error:
        raise InputError(f"{host} cannot be reached: {error}") from None


def _bracketed(host: str) -> str:
    """Return a host as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _run(what: Any) -> None:
    import dask

    quiet()
    with (
        tempfile.TemporaryDirectory(prefix="gridwright-") as folder,
        dask.config.set({**FRUGAL, "temporary-directory": folder}),
    ):
        asyncio.run(what)


async def _serve(
    place: _Place, names: list[str], ready: Callable[[str], None], plugins: Sequence[Any]
) -> None:
    from distributed import Scheduler

    stop = _stop_signal()
    protocol, _, port = check_address(place.address)
    try:
        scheduler = await Scheduler(
            host=place.host,
            port=port,
            protocol=protocol,
            security=place.security,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            plugins=plugins,
        )
    except (OSError, ValueError, RuntimeError) as error:
        why = error.__cause__ or error
        raise InputError(f"no scheduler can be started at {place.address}: {why}") from None
    async with scheduler:
        await _work(replace(place, address=scheduler.address), names, ready, stop)


async def _work(
    place: _Place,
    names: list[str],
    ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Run workers until Ctrl-C or SIGTERM."""
    stop = stop or _stop_signal()
    starting = asyncio.ensure_future(asyncio.gather(*(_start(place, name) for name in names)))
    stopped = asyncio.create_task(stop.wait())
    stopped.add_done_callback(lambda _: starting.cancel())
    try:
        nannies = await starting
    except asyncio.CancelledError:
        return
    finally:
        stopped.cancel()
    keeping = [
        asyncio.create_task(_keep(place, name, nanny))
        for name, nanny in zip(names, nannies, strict=True)
    ]
    ready(place.address)
    await stop.wait()
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)


async def _start(place: _Place, name: str) -> Any:
    """Start a worker in its own process, which is replaced when it dies."""
    from distributed import Nanny

    nanny = Nanny(
        place.address,
        name=name,
        nthreads=1,
        memory_limit=0,
        host=place.host,
        security=place.security,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL + 1,
    )
    try:
        return await nanny
    except asyncio.CancelledError:
        with suppress(AssertionError):  # of a nanny that has just begun
            await nanny.close(timeout=LEAVE)
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise unreachable(place.address, error.__cause__ or error) from None


async def _keep(place: _Place, name: str, nanny: Any) -> None:
    """Keep a worker running: when its scheduler is gone, wait for it and start again."""
    try:
        while True:
            await nanny.finished()
            while nanny.status.name != "running":
                await asyncio.sleep(AGAIN)
                with suppress(InputError, OSError):
                    await probe(place.address)
                    nanny = await _start(place, name)
    finally:
        await nanny.close(timeout=LEAVE)


def _stop_signal() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
