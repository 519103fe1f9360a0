"""The process that is a machine of the local executor.

It is started with the number of a socket, runs one pickled call at a time that comes in on it, and
ends when the other end is closed. It imports little, so that many are ready in a moment.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

__all__ = ["HEADER", "LARGEST", "LONGEST", "cut", "main", "pack", "receive"]

HEADER = struct.Struct("!Q")
SPEAKING = Lock()
LARGEST = 1 << 28
"""Bytes of a pickled call or result, at most."""
LONGEST = 1 << 16
"""Characters of a job's error, at most."""


def main() -> None:
    """Serve the socket whose number is the only argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    line = socket.socket(fileno=int(sys.argv[1]))
    messages: SimpleQueue[tuple[int, int, bytes]] = SimpleQueue()
    Thread(target=listen, args=(line, messages), daemon=True).start()
    import cloudpickle  # noqa: F401  # now, and not in the time of the first job

    tell(line, ("ready",))
    while True:
        job, attempt, work = messages.get()
        begin = partial(announce, line, job, attempt)
        result, error = call(work, begin)
        tell(line, ("ended", job, attempt, time.monotonic(), result, error))


def listen(line: socket.socket, messages: SimpleQueue[tuple[int, int, bytes]]) -> None:
    """Take messages in; when the other end is gone, end at once, in the middle of a job too."""
    while (message := receive(line)) is not None:
        said = pickle.loads(message)
        if isinstance(said, int):
            tell(line, ("here", said))
        else:
            messages.put(said)
    os._exit(0)


def tell(line: socket.socket, message: Any) -> None:
    """Send a message, whole."""
    with SPEAKING:
        line.sendall(pack(message))


def announce(line: socket.socket, job: int, attempt: int) -> None:
    """Say that a job begins."""
    tell(line, ("started", job, attempt, time.monotonic()))


def call(work: bytes, begin: Callable[[], None]) -> tuple[bytes, str]:
    """Run a pickled call; return its pickled result, or a traceback.

    It begins when it is unpickled: what that imports is no part of the work.
    """
    import cloudpickle

    begun = False
    try:
        function, arguments, keywords = pickle.loads(work)
        begin()
        begun = True
        result = cloudpickle.dumps(function(*arguments, **keywords))
    except BaseException as error:
        if not begun:
            begin()
        return b"", explain(error)
    if len(result) > LARGEST:
        return b"", f"the result has {len(result):,} bytes; expected at most {LARGEST:,}"
    return result, ""


def explain(error: BaseException) -> str:
    """Return an exception's traceback as a text of bounded length.

    Every part is cut before they are joined: a message may take most of the memory.
    """
    try:
        parts = traceback.format_exception(error)
        text = cut("".join(cut(part) for part in parts))
        # a name of a file may be no text, and what is said of it must be
        return cut(text.encode("utf-8", "backslashreplace").decode())
    except BaseException:
        return f"{type(error).__name__}; its traceback cannot be shown"


def cut(text: str) -> str:
    """Shorten a text that is too long: keep its beginning and its end, and say what is missing.

    >>> len(cut("x" * 100_000)) <= LONGEST
    True
    """
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2 - 50
    left_out = f"\n... {len(text) - 2 * half:,} characters left out ...\n"
    return text[:half] + left_out + text[-half:]


def pack(message: Any) -> bytes:
    """Turn a message into bytes that say how long they are."""
    body = pickle.dumps(message)
    return HEADER.pack(len(body)) + body


def receive(line: socket.socket) -> bytes | None:
    """Wait for a message; None when the other end is closed."""
    header = _exactly(line, HEADER.size)
    return None if header is None else _exactly(line, HEADER.unpack(header)[0])


def _exactly(line: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = line.recv(min(size - len(parts), 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    main()
