"""The machines that there are for a run: processes of this computer, or workers of a cluster."""

from __future__ import annotations

import os
import socket
from typing import NamedTuple

from ..grid.executors.connection import check_address, find_workers, security_of
from ..model import InputError

__all__ = ["Available", "available_machines"]


class Available(NamedTuple):
    """A machine, or a computer that has room for many."""

    name: str
    address: str
    processors: int | None = None
    """How many it has, where that is known."""


def available_machines(address: str = "") -> list[Available]:
    """List the workers of the Dask scheduler at an address; of none: this computer."""
    if not address:
        return [Available(socket.gethostname(), "local", os.cpu_count())]
    if check_address(address)[0] == "tls":
        raise InputError(f"{address} asks for TLS, whose files an experiment file names")
    found = find_workers(address, security_of(address, None), 0)
    return [Available(name, where) for where, name in found.items()]
