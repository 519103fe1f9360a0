"""The process that runs the jobs of a machine.

It is started as a script with the numbers of a socket, of the process that starts it and of a file,
and a mark. It forks at once. The child is the worker: it runs one pickled call at a time that comes
in on the socket. The parent is the guardian (``guardian.py``), with which it shares the file.

The module imports little, so that many workers are ready in a moment.
"""

from __future__ import annotations

import fcntl
import io
import math
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
import traceback
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from queue import SimpleQueue
from threading import Lock, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .guardian import Pace

LARGEST = 1 << 28
"""The most bytes of a pickled call or result."""
LARGEST_ERROR = 1 << 23
"""The most bytes of a pickled exception; of a larger one only the text is sent."""
LONGEST = 1 << 16
"""The most bytes of an error text; the middle of a longer one is left out."""
HIGH = 1000
"""The lowest number that the socket gets: jobs that handle low file descriptors miss it."""
SPEAKING = Lock()
SLICE = 0.05
"""Seconds after which a job that waits checks how fast its machine is."""
FOR_JOBS = "gridwright_machine"
"""The module in a worker whose function ``wait`` jobs may call."""

RUN, BACK, PING, READY, HERE, STARTED, ENDED, RETURNED = range(8)
"""Kinds of frames: a worker receives the first three and sends the others."""
FRAME = struct.Struct("!8sBqqdII")


class BrokenLineError(Exception):
    """Raised for bytes on the socket that are not a frame."""


class Frame(NamedTuple):
    """A message on the socket, made of numbers and bytes, so that reading it runs no code."""

    kind: int
    job: int = 0
    """Or the number of a ping, or the pid of a worker that is ready."""
    attempt: int = 0
    at: float = 0.0
    body: bytes = b""
    error: bytes = b""

    def pack(self, mark: bytes) -> bytes:
        """Return the frame as bytes that begin with the mark of the socket."""
        head = FRAME.pack(mark, *self[:4], len(self.body), len(self.error))
        return head + self.body + self.error

    @classmethod
    def unpack(cls, head: bytes, mark: bytes) -> tuple[Frame, int, int]:
        """Return a frame without its body and error, and the lengths of these."""
        its_mark, kind, job, attempt, at, size, rest = FRAME.unpack(head)
        if its_mark != mark or kind > RETURNED or not math.isfinite(at):
            raise BrokenLineError("something other than the worker wrote to the worker's socket")
        if size > LARGEST or rest > LONGEST:
            raise BrokenLineError("the worker sent more than it may")
        return cls(kind, job, attempt, at), size, rest


def main() -> None:
    """Serve the socket whose number is the first argument."""
    line, mark = socket.socket(fileno=int(sys.argv[1])), bytes.fromhex(sys.argv[3])
    guardian, memory = _guardian(), int(sys.argv[4])
    pace = guardian.Pace.of(memory)
    os.close(memory)
    guardian.guard(line, int(sys.argv[2]), pace)
    for_jobs = ModuleType(FOR_JOBS)
    for_jobs.wait = partial(wait, pace)  # type: ignore[attr-defined]
    sys.modules[FOR_JOBS] = for_jobs
    serve(_out_of_reach(line), mark, pace)


def _guardian() -> Any:
    """Load the module beside this one: a script belongs to no package."""
    module = ModuleType("gridwright_guardian")
    beside = os.path.join(os.path.dirname(__file__), "guardian.py")
    SourceFileLoader(module.__name__, beside).exec_module(module)
    return module


def serve(line: socket.socket, mark: bytes, pace: Pace) -> None:
    """Run calls that come in on a socket until it is closed."""
    own = os.getpid()
    os.register_at_fork(after_in_child=line.close)  # children of jobs must not use it
    calls, say = Calls(), partial(tell, line, mark)
    Thread(target=listen, args=(line, mark, calls), daemon=True).start()
    import cloudpickle  # noqa: F401  # before the first job, not during it

    say(Frame(READY, own))
    while True:
        _, job, attempt, _, work, _ = calls.take()

        def begin(job: int = job, attempt: int = attempt) -> None:
            note(pace, working=True)
            say(Frame(STARTED, job, attempt, time.monotonic()))

        result, error = call(work, begin)
        if os.getpid() != own:  # the job forked, and the child returned as well
            os._exit(0)
        note(pace, working=False)
        say(Frame(ENDED, job, attempt, time.monotonic(), result, error.encode()))


def note(pace: Pace, *, working: bool) -> None:
    """Note whether a job uses the processor; on a slow machine, let the guardian look at once."""
    pace.working = float(working)
    if pace.share < 1:
        with suppress(OSError):  # it has ended, and so do we
            os.kill(os.getppid(), signal.SIGCONT)


def wait(pace: Pace, seconds: float) -> None:
    """Wait for so many seconds of the machine's own time: longer if it is slow now.

    The worker is not stopped meanwhile, because it does nothing.
    """
    note(pace, working=False)
    now = time.monotonic()
    while seconds > 0:
        share = pace.share
        time.sleep(min(seconds / share, SLICE))
        now, before = time.monotonic(), now
        seconds -= share * (now - before)


def listen(line: socket.socket, mark: bytes, calls: Calls) -> None:
    """Receive messages; when the other end is closed, exit at once, even during a job."""
    with suppress(BrokenLineError, OSError):  # a job reads from it, or has closed it
        while (message := receive(line, mark)) is not None:
            if message.kind == PING:
                tell(line, mark, Frame(HERE, message.job))
            elif message.kind == RUN:
                calls.put(message)
            elif calls.remove(message.job, message.attempt):
                tell(line, mark, Frame(RETURNED, message.job, message.attempt))
    os._exit(0)


class Calls:
    """The calls that wait to be run, in their order."""

    def __init__(self) -> None:
        self.waiting: deque[Frame] = deque()
        self._signals: SimpleQueue[None] = SimpleQueue()
        self._lock = Lock()

    def put(self, frame: Frame) -> None:
        """Add a call."""
        self.waiting.append(frame)
        self._signals.put(None)

    def take(self) -> Frame:
        """Wait for a call and remove it."""
        while True:
            self._signals.get()
            with self._lock, suppress(IndexError):  # it was removed
                return self.waiting.popleft()

    def remove(self, job: int, attempt: int) -> bool:
        """Remove a call that has not begun; return whether there is one."""
        with self._lock:
            for frame in self.waiting:
                if (frame.job, frame.attempt) == (job, attempt):
                    self.waiting.remove(frame)
                    return True
        return False


def tell(line: socket.socket, mark: bytes, message: Frame) -> None:
    """Send a message; exit if that is not possible."""
    try:
        with SPEAKING:
            line.sendall(message.pack(mark))
    except OSError:
        os._exit(1)


class _WithResults(pickle.Unpickler):
    """Unpickles a call whose arguments include results of other jobs."""

    def __init__(self, work: bytes, results: dict[int, bytes]) -> None:
        super().__init__(io.BytesIO(work))
        self.results = results

    def persistent_load(self, number: int) -> Any:
        return pickle.loads(self.results[number])


class _Travelled:
    """Finds modules that came with a call, if they cannot be imported otherwise."""

    packed = b""
    sources: dict[str, tuple[bool, str, bytes]]
    """Of each module: whether it is a package, its file on the computer of the user, its text."""

    def provide(self, packed: bytes) -> None:
        """Provide modules in place of those of earlier calls."""
        if packed == self.packed:
            return
        for name in [each for each, it in sys.modules.items() if _loader(it) is self]:
            del sys.modules[name]
        self.packed, self.sources = packed, pickle.loads(zlib.decompress(packed))
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.sources:
            return None
        is_package, file, _ = self.sources[name]
        return ModuleSpec(name, self, origin=file, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.__file__ = self.sources[module.__name__][1]
        exec(compile(self.sources[module.__name__][2], module.__file__, "exec"), vars(module))

    def get_source(self, name: str) -> str:
        from importlib.util import decode_source  # for tracebacks

        return decode_source(self.sources[name][2])


_TRAVELLED = _Travelled()


def _loader(module: Any) -> Any:
    return getattr(getattr(module, "__spec__", None), "loader", None)


def with_results(work: bytes, results: dict[int, bytes]) -> bytes:
    """Join a pickled call and the pickled results of other jobs among its arguments."""
    return pickle.dumps((work, results, b""))


def with_modules(work: bytes, packed: bytes) -> bytes:
    """Join a pickled call and the modules that it needs, as `_Travelled` provides them."""
    return pickle.dumps((work, {}, packed))


def unpickled(work: bytes) -> Any:
    """Return a call: its function, arguments and keywords."""
    loaded, results = pickle.loads(work), dict[int, bytes]()
    while isinstance(loaded[0], bytes):  # something was joined to it
        work, more, packed = loaded
        results |= more
        if packed:
            _TRAVELLED.provide(packed)
        loaded = _WithResults(work, results).load()
    return loaded


def call(work: bytes, begin: Callable[[], None]) -> tuple[bytes, str]:
    """Run a pickled call; return its pickled result, or its pickled exception and the traceback.

    ``begin`` is called after unpickling, so that its imports are not part of the job.
    """
    import cloudpickle

    try:
        function, arguments, keywords = unpickled(work)
    except BaseException as error:
        begin()
        return b"", explain(error) + advice(error)
    begin()
    try:
        found = function(*arguments, **keywords)
    except BaseException as error:
        return pickled_error(error), explain(error)
    try:
        result = cloudpickle.dumps(found)
    except BaseException as error:
        return b"", f"the result cannot be pickled\n{explain(error)}"
    if len(result) > LARGEST:
        return b"", f"the result has {len(result):,} bytes; expected at most {LARGEST:,}"
    return result, ""


def advice(error: BaseException) -> str:
    """Return what to do if a call needs a module that this machine does not have."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    where = os.environ.get("GRIDWRIGHT_MACHINE", "")
    return (
        f"machine {where} cannot import {error.name!r}: install it there, or put it beside the "
        "script that submits the job and import it before you submit"
    )


def pickled_error(error: BaseException) -> bytes:
    """Pickle an exception; return b"" if it is too large or cannot be unpickled."""
    import cloudpickle

    try:
        result = cloudpickle.dumps(error)
        survives = len(result) <= LARGEST_ERROR and type(pickle.loads(result)) is type(error)
    except BaseException:  # pickling runs the user's code
        return b""
    return result if survives else b""


def explain(error: BaseException) -> str:
    """Return an exception's traceback as a text of bounded length.

    Each part is cut before they are joined, because one may take most of the memory.
    """
    try:
        return cut("".join(map(cut, traceback.format_exception(error))))
    except BaseException:
        return f"{type(error).__name__}; its traceback cannot be shown"


def cut(text: str) -> str:
    """Return a text as valid Unicode of at most LONGEST bytes, without its middle if it is longer.

    >>> len(cut("é" * 100_000).encode()) <= LONGEST
    True
    """
    half = LONGEST // 2 - 50
    if len(text) > LONGEST:
        left_out = f"\n… {len(text) - 2 * half:,} characters left out …\n"
        text = text[:half] + left_out + text[-half:]
    said = text.encode("utf-8", "backslashreplace")  # file names may be invalid Unicode
    if len(said) > LONGEST:
        said = said[:half] + "\n… some characters left out …\n".encode() + said[-half:]
    return said.decode(errors="ignore")


def receive(line: socket.socket, mark: bytes) -> Frame | None:
    """Wait for a message; return None when the other end is closed."""
    head = _exactly(line, FRAME.size)
    if head is None:
        return None
    frame, size, rest = Frame.unpack(head, mark)
    body = _exactly(line, size + rest)
    return None if body is None else frame._replace(body=body[:size], error=body[size:])


def _out_of_reach(line: socket.socket) -> socket.socket:
    """Give the socket a high number, and hide it from programs that jobs start."""
    high = min(HIGH, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1)
    with line:
        return socket.socket(fileno=fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, high))


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
