"""How to reach a Dask scheduler, and which workers it has."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...model import InputError

__all__ = [
    "PATIENCE",
    "Workers",
    "check_address",
    "choose",
    "find_workers",
    "names",
    "probe",
    "quiet",
    "security_of",
    "unreachable",
]

PATIENCE = 8.0
"""Seconds in which a scheduler must answer, and may be without workers."""
Workers = dict[str, str]
"""Names of workers by their addresses."""


def check_address(address: str) -> tuple[str, str, int]:
    """Return the protocol, host and port of an address.

    >>> check_address("tcp://127.0.0.1:8786")
    ('tcp', '127.0.0.1', 8786)
    """
    place = re.fullmatch(r"(tcp|tls)://(\[.+\]|[^:/\s]+):(\d{1,5})", address)
    if place is None or int(place[3]) > 65535:
        raise InputError(
            f"{address!r} is no address of a cluster; expected tcp://HOST:PORT or tls://HOST:PORT"
        )
    return place[1], place[2].strip("[]"), int(place[3])


def security_of(address: str, security: Any) -> Any:
    """Make Dask's security of TLS options; refuse them for an address that is not encrypted."""
    try:
        from distributed import Security
    except ImportError:
        raise InputError("a cluster needs Dask: pip install 'gridwright[grid]'") from None
    quiet()
    encrypted = check_address(address)[0] == "tls"
    if encrypted and not security:
        raise InputError(
            f"{address} asks for TLS: give security=dict(tls_ca_file=…, tls_client_cert=…, "
            "tls_client_key=…)"
        )
    if not encrypted and _has_files(security):
        raise InputError(
            f"TLS files are given, but {address} is not encrypted: use tls://{address[6:]}"
        )
    if not isinstance(security, Mapping):
        return security or Security()
    try:
        found = Security(require_encryption=encrypted, **security)
        found.get_connection_args("client")  # reads the files
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"these TLS options cannot be used: {error}") from None
    return found


def _has_files(security: Any) -> bool:
    """Tell whether TLS options name any file of a client."""
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    if isinstance(security, Mapping):
        return any(security.get(name) for name in names)
    return any(getattr(security, name, None) for name in names)


def quiet() -> None:
    """Let Dask log nothing: what is wrong is told in one line."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def find_workers(address: str, security: Any, at_least: int) -> Workers:
    """Ask a scheduler which workers it has; wait a while until there are some."""
    with ThreadPoolExecutor(1) as thread:  # whoever calls may have an event loop of their own
        return thread.submit(asyncio.run, _ask(address, security, at_least)).result()


async def _ask(address: str, security: Any, at_least: int) -> Workers:
    from distributed import rpc

    deadline = time.monotonic() + PATIENCE
    arguments = security.get_connection_args("client")
    scheduler = rpc(address, timeout=PATIENCE, connection_args=arguments)
    try:
        async with asyncio.timeout(PATIENCE + 1):
            while True:
                said = await scheduler.identity(n_workers=-1)
                workers = names(said)
                if len(workers) >= at_least or time.monotonic() > deadline - 0.1:
                    return workers
                await asyncio.sleep(0.1)
    except (OSError, ValueError, TypeError) as error:
        raise unreachable(address, error) from None
    finally:
        await scheduler.close_rpc()


async def probe(address: str) -> None:
    """Raise OSError at once if nobody listens there; Dask would try ever less often."""
    _, host, port = check_address(address)
    async with asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()


def unreachable(address: str, error: BaseException) -> InputError:
    """Say in one line that nobody answers."""
    why = f": {error}" if str(error) else ""
    return InputError(f"no Dask scheduler answers at {address}{why}")


def names(identity: dict[str, Any]) -> Workers:
    """Return the names of the workers that a scheduler tells of."""
    return {address: str(worker["name"]) for address, worker in identity["workers"].items()}


def choose(address: str, workers: Workers, machines: int | Sequence[str] | None) -> list[str]:
    """Return the workers to use, as they are called: all, the first few, or those named."""
    there = sorted(workers.values(), key=_natural)
    known = ", ".join(there) or "none"
    if machines is None or isinstance(machines, int):
        wanted = len(there) if machines is None else machines
        if wanted < 1 and machines is not None:
            raise InputError(f"machines is {machines}; expected at least 1")
        if wanted > len(there) or not there:
            raise InputError(
                f"the cluster at {address} has {len(there)} workers ({known}); expected at least "
                f"{max(1, wanted)}: gridwright workers --connect {address} adds one"
            )
        return there[:wanted]
    chosen = [str(machine) for machine in machines]
    if not chosen:
        raise InputError("machines names no worker; expected at least 1")
    for name in chosen:
        if name not in there and name not in workers:
            raise InputError(f"no worker {name!r} at {address}; there are {known}")
    if len({workers.get(name, name) for name in chosen}) < len(chosen):
        raise InputError(f"machines names a worker twice: {', '.join(chosen)}")
    return chosen


def _natural(name: str) -> list[tuple[int, str]]:
    """Order names as people do: 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
