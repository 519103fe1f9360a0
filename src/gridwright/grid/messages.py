"""What travels between a served grid and its clients, and where a served grid is found."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..model import (
    DeadlineError,
    GridClosedError,
    GridError,
    InputError,
    JobFailedError,
    JobLostError,
)
from .future import RemoteError
from .ownership import home

HEAD = struct.Struct("!II")
"""The lengths of the words and of the bytes that follow them."""
MOST_WORDS = 1 << 26
"""The most bytes of the words of a message."""
MOST_BYTES = 1 << 30
"""The most bytes that follow the words."""
SILENCE = 15
"""Seconds of silence after which a connection is tried, and between further tries."""
MOST_GREETING = 1 << 12
"""The most bytes of the words of the first message, before the token is known to be right."""


class Message(NamedTuple):
    """Words as JSON, so that reading them runs no code, and bytes."""

    words: dict[str, Any]
    content: bytes = b""

    def pack(self) -> bytes:
        """Return the message as bytes."""
        words = json.dumps(self.words).encode()
        return HEAD.pack(len(words), len(self.content)) + words + self.content


async def receive(reader: asyncio.StreamReader, most: int = MOST_WORDS) -> Message:
    """Wait for a message; raise ConnectionError at the end, or if it is none.

    If ``most`` is less than usual, no bytes may follow the words.
    """
    try:
        words, content = HEAD.unpack(await reader.readexactly(HEAD.size))
        if words > most or content > (MOST_BYTES if most == MOST_WORDS else 0):
            raise ConnectionError("a message is too long")
        said = json.loads(await reader.readexactly(words))
        if not isinstance(said, dict):
            raise ConnectionError("a message has no words")
        return Message(said, await reader.readexactly(content))
    except (asyncio.IncompleteReadError, ValueError, RecursionError) as error:
        raise ConnectionError(f"the connection ended: {error}") from None


KINDS: dict[str, type[Exception]] = {
    each.__name__: each
    for each in (
        DeadlineError,
        GridClosedError,
        GridError,
        InputError,
        JobFailedError,
        JobLostError,
    )
}


def told_error(error: BaseException) -> tuple[dict[str, str], bytes]:
    """Return the words and bytes that tell of an error."""
    if isinstance(error, RemoteError):
        return {"kind": "RemoteError", "error": str(error)}, error.pickled
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in KINDS]
    return {"kind": kinds[0] if kinds else "GridError", "error": str(error)}, b""


def heard_error(words: dict[str, Any], content: bytes) -> Exception:
    """Return the error that a message tells of."""
    text = str(words.get("error", ""))
    if words.get("kind") == "RemoteError":
        return RemoteError(text, content)
    return KINDS.get(str(words.get("kind")), GridError)(text)


@dataclass(frozen=True)
class Place:
    """Where a grid is served, and the token to show there."""

    host: str
    port: int
    token: str
    is_tls: bool = False
    ca_file: str = ""
    """The certificate of who signed the server's, if it is not a usual authority."""

    @property
    def address(self) -> str:
        """The address as a text."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.is_tls else 'tcp'}://{host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        """Return how a client checks the server, if the connection is encrypted."""
        if not self.is_tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{self.ca_file} is not a certificate: {error}") from None

    def write(self, name: str) -> None:
        """Let clients of this user find the grid by its name."""
        path = place_file(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file)
        part.replace(path)


def place_file(name: str) -> Path:
    """Return the file that says where a grid is served."""
    return home() / "grids" / f"{name}.json"


def known_place(name: str) -> Place | None:
    """Return where a grid is or was served, if it was served here."""
    try:
        return Place(**json.loads(place_file(name).read_text("utf-8")))
    except (OSError, TypeError, ValueError):
        return None


def is_loopback(host: str) -> bool:
    """Tell whether only this computer can reach an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def find_place(where: str, token: str = "", ca_file: str = "") -> Place:
    """Return the place of a grid by its name or its address ``tcp://…`` or ``tls://…``."""
    if "://" not in where:
        found = known_place(where)
        if found is None:
            raise InputError(
                f"no grid {where!r} is served on this computer; "
                f"'gridwright grid serve --name {where}' starts one"
            )
        return found
    try:
        parts = urlsplit(where)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("tcp", "tls") or not host or not port:
        raise InputError(f"the address is {where!r}; expected tcp://HOST:PORT or tls://HOST:PORT")
    if scheme == "tcp" and not is_loopback(host):
        raise InputError(f"{where} would send the token for all to read; use tls://{host}:{port}")
    token = token or os.environ.get("GRIDWRIGHT_TOKEN", "")
    if not token:
        raise InputError(
            "an address needs the token that 'gridwright grid serve' has printed: "
            "token=…, or the environment variable GRIDWRIGHT_TOKEN"
        )
    return Place(host, port, token, scheme == "tls", ca_file)


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice when the other computer is gone without a word."""
    line = writer.get_extra_info("socket")
    with suppress(OSError, AttributeError):  # not every system has all of them
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, SILENCE)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4000 * SILENCE)


def split(content: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut bytes into parts of some sizes."""
    parts, begin = [], 0
    for size in sizes:
        parts.append(content[begin : begin + size])
        begin += size
    if begin != len(content):
        raise InputError("the parts of a message do not add up")
    return parts
