"""Compile for GPUs of NVIDIA, with numba-cuda.

Only what is asked to run on a GPU imports this file, so the package does not need numba-cuda.
Another compiler for GPUs would be another file like this one. numba-cuda is in maintenance, and its
successor does not compile named tuples yet.

Besides the public interface of numba-cuda, this file uses four parts that are private. NVVM is
told not to contract a product and a sum into one instruction, so that results agree with those of a
CPU, and not to unroll loops, so that the code is small. A function is linked once, not once for
each of its callers. Functions are compiled for a GPU that is not there, which is how they are
tested anywhere. And only machine code is kept on disk.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

try:
    VERSION = version("numba-cuda")
except PackageNotFoundError:
    raise ImportError("numba-cuda is not installed") from None

import numba
import numpy as np
from numba import cuda
from numba.cuda import dispatcher, extending
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core import config
from numba.cuda.cudadrv import nvvm
from numba.cuda.typing.typeof import typeof

from .checks import readonly
from .link import link
from .numba_types import register_philox, register_shaped
from .target import How

SIZE, WARP = 64, 32
"""Threads of a block, and those that run in step. A block may be smaller than a warp."""
REGISTERS, FEW_REGISTERS = 128, 64
"""The most registers of a thread, so that a multiprocessor holds 512 of them, or 1,024."""
MOST_BLOCKS = 32
"""The most blocks that a multiprocessor of any GPU holds; some hold fewer."""

SCALAR = {
    id(getattr(np, name)): getattr(math, name)
    for name in [
        "ceil",
        "cos",
        "exp",
        "expm1",
        "floor",
        "log",
        "log1p",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    ]
}
"""Functions of NumPy that numba-cuda knows for arrays only, if at all."""

BRANCH = re.compile(r"^ +br [^!\n]+$", re.MULTILINE)
NOT_UNROLLED = r"\g<0>, !llvm.loop !987650"
NODES = """
!987650 = distinct !{!987650, !987651}
!987651 = !{!"llvm.loop.unroll.disable"}
"""
"""A branch; the branch with what it says of the loop that it closes; what that refers to."""

Capability = tuple[int, int]


class NoDeviceError(Exception):
    """There is no GPU, or its driver is missing; the message says which."""


class CUDA:
    """Compile for GPUs of NVIDIA.

    Users' functions are not checked here: they ran on the CPU first, with all checks.
    """

    is_kept = True
    calls_by_address = False
    name = f"cuda {VERSION}, {REGISTERS} or {FEW_REGISTERS} registers, no loop unrolled"

    def inner(self, function: Callable[..., Any], how: How, part: str = "") -> Any:
        """Compile a function that only compiled code calls, once for arguments of a type."""
        from numba.core.types.misc import unliteral

        made: Any = cuda.jit(function, device=True, forceinline=how.inlined, lto=False)
        once = made.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            return once(tuple(map(unliteral, args)), {key: unliteral(kws[key]) for key in kws})

        made.get_call_template = get_call_template
        return made

    def entry(self, function: Callable[..., Any], how: How, cached: bool) -> Any:
        """Compile a function that Python starts on the GPU.

        It is not optimised again when it is linked, where products and sums would be contracted.
        numba-cuda keeps what it compiles for each kind of GPU, and has settings of its own.
        """
        most = FEW_REGISTERS if getattr(function, "memory_bound", False) else REGISTERS
        before, config.CACHE_DIR = config.CACHE_DIR, numba.config.CACHE_DIR
        try:
            made: Any = cuda.jit(function, cache=cached, lto=False, max_registers=most)
        finally:
            config.CACHE_DIR = before
        if cached:
            _keep_machine_code_alone(made)
        return made

    def callback(self, function: Callable[..., Any], how: How, cached: bool, signature: Any) -> Any:
        """Refuse: on a GPU, functions are linked and not called by their address."""
        raise TypeError(f"{function.__name__} cannot have an address on a GPU")

    def guarded(self, value: Any) -> Any:
        """Return nothing: see the class."""
        return None

    def built_in(self, value: Any) -> Any:
        """Return what stands for ``readonly``, and for NumPy's functions of a number."""
        return _unchanged if value is readonly else SCALAR.get(id(value))


@cuda.jit(device=True)  # type: ignore[untyped-decorator]
def _unchanged(array: Any, rows: int = 0, columns: int = 0) -> Any:
    return array


def _keep_machine_code_alone(made: Any) -> None:
    """Keep no LLVM code and no PTX of a program on disk.

    numba-cuda keeps them too, which is sixty megabytes for a program that makes plans, and reads
    all of it when the program is loaded. The machine code is made before anything is kept. Seen
    with numba-cuda 0.30.4; if another version keeps programs otherwise, it keeps all of them.
    """
    kept = getattr(made._cache, "_impl", None)
    everything = getattr(kept, "reduce", None)
    if kept is None or everything is None:
        return

    def reduce(kernel: Any) -> dict[str, Any]:
        states: dict[str, Any] = everything(kernel)
        library: Any = copy(states.get("codelibrary"))
        if getattr(library, "_cubin_cache", None):
            library._llvm_strs, library._ptx_cache = [], {}
            states = {**states, "codelibrary": library}
        return states

    kept.reduce = reduce


def lanes() -> tuple[int, int]:
    """Return the number of this thread, and how many there are."""
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    return first, cuda.gridDim.x * cuda.blockDim.x


class Device:
    """The GPU of this computer: its memory, and what it runs.

    By default the driver has eight queues. Programs in the same one would wait for each other.
    """

    def __init__(self) -> None:
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        try:
            self.context = cuda.current_context()
            self.unit = cuda.get_current_device()
            self.name = self.unit.name
            self._queue()
        except Exception as error:
            said = " ".join(str(error).split()).rstrip(" :")  # the driver may add nothing
            raise NoDeviceError(said) from None

    def _queue(self) -> None:
        self.stream, self.began, self.ended = cuda.stream(), cuda.event(), cuda.event()

    def beside(self) -> Device:
        """Return this GPU with a queue of its own: the GPU works on several of them at once."""
        made = copy(self)
        made._queue()
        return made

    def free(self) -> int:
        """Return the bytes of memory that are free."""
        self.context.deallocations.clear()  # what is not used any more is free
        return int(self.context.get_memory_info().free)

    def put(self, array: Any, times: int = 1) -> Any:
        """Copy an array to the GPU, so many times one behind the other."""
        if times == 1:
            copied = cuda.to_device(array, self.stream)
            self.stream.synchronize()
            return copied
        there, done = cuda.device_array(len(array) * times, array.dtype), len(array)
        self.write(there, array, 0)
        while done < len(there):
            more = min(done, len(there) - done)
            there[done : done + more].copy_to_device(there[:more], self.stream)
            done += more
        return there

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        """Copy back what begins at an index, as much as the array holds."""
        there[first : first + len(array)].copy_to_host(array, self.stream)
        self.stream.synchronize()

    def write(self, there: Any, array: Any, first: int) -> None:
        """Copy an array into another one on the GPU, to an index; wait until it was read.

        Otherwise some computers would read it later, when it is changed or freed.
        """
        there[first : first + len(array)].copy_to_device(array, self.stream)
        self.stream.synchronize()

    def extend(self, there: Any, array: Any) -> Any:
        """Return an array of the GPU that continues with another one."""
        longer = cuda.device_array(len(there) + len(array), array.dtype)
        longer[: len(there)].copy_to_device(there, self.stream)
        self.write(longer, array, len(there))  # this waits for both: the shorter one may be freed
        return longer

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        """Compile a function that asks for the number of its thread by a hook ``lanes``."""
        return link(kernel, inlined=True, made_for=CUDA(), lanes=lanes, **hooks)

    def start(self, linked: Any, count: int, side_by_side: int, *arguments: Any) -> None:
        """Run a function with a thread for each of so many runs; do not wait for it.

        As many run ``side_by_side``, with those of other functions.
        """
        size = self._block(linked, side_by_side)
        with _as_written(), _linked_once():
            launch = linked[(count + size - 1) // size, size, self.stream]
            self.began.record(self.stream)
            launch(*arguments)
            self.ended.record(self.stream)

    def has_ended(self) -> bool:
        """Tell whether nothing that was started is running."""
        return bool(self.ended.query())

    def wait(self) -> float:
        """Wait for what was started; return the seconds that it took."""
        self.ended.synchronize()
        return float(cuda.event_elapsed_time(self.began, self.ended)) / 1000.0

    def _block(self, linked: Any, count: int) -> int:
        """Return how many threads a block has.

        Threads of a warp that do different things wait for each other. So warps are filled only
        if there are too few of them otherwise, as their code needs registers.
        """
        for kernel in linked.overloads.values():
            registers = WARP * -(-kernel.regs_per_thread // 8) * 8
            warps = min(self.unit.MAX_REGISTERS_PER_MULTIPROCESSOR // registers, MOST_BLOCKS)
            needed = -(-count // (warps * self.unit.MULTIPROCESSOR_COUNT))
            return SIZE if needed > WARP // 2 else 1 << (needed - 1).bit_length()
        return SIZE  # it is not compiled yet


def assembly(kernel: Any, capability: Capability, *arguments: Any) -> str:
    """Return the PTX of a linked function for arguments of these types; this needs no GPU."""
    types = tuple(map(typeof, arguments))
    with _as_written(), _linked_once(), _pretending(capability):
        code, _ = cuda.compile_ptx(kernel.py_func, types, cc=capability)
    return str(code)


@contextmanager
def _as_written() -> Iterator[None]:
    """Tell NVVM not to contract products and sums, and not to unroll loops.

    The runs of large systems are at different places of the code, so they mostly wait for
    instructions. Without unrolled loops, the code is half as long, and 1.2 to 2.6 times as fast.
    """
    unit: Any = nvvm.CompilationUnit
    before, add = unit.__init__, unit.add_module

    def init(self: Any, options: dict[str, Any]) -> None:
        before(self, {**options, "fma": 0})

    def add_module(self: Any, code: bytes) -> None:
        add(self, _not_unrolled(code.decode()).encode())

    unit.__init__, unit.add_module = init, add_module
    try:
        yield
    finally:
        unit.__init__, unit.add_module = before, add


def _not_unrolled(code: str) -> str:
    r"""Return code for NVVM whose loops are not unrolled.

    >>> print(_not_unrolled("again:\n  br label %again"))
    again:
      br label %again, !llvm.loop !987650
    !987650 = distinct !{!987650, !987651}
    !987651 = !{!"llvm.loop.unroll.disable"}
    <BLANKLINE>
    """
    return BRANCH.sub(NOT_UNROLLED, code) + NODES


@contextmanager
def _linked_once() -> Iterator[None]:
    """Link each module once.

    numba-cuda lists the modules that a function calls, once for each way that leads to them: nearly
    every second one of a program that makes plans. All of them are written out as text and read by
    NVVM, which keeps one. Seen with numba-cuda 0.30.4; one that lists them otherwise is left alone.
    """
    library: Any = CUDACodeLibrary
    before = getattr(library, "modules", None)
    if isinstance(before, property):
        library.modules = property(lambda self: list(dict.fromkeys(before.__get__(self))))
    try:
        yield
    finally:
        if isinstance(before, property):
            library.modules = before


@contextmanager
def _pretending(capability: Capability) -> Iterator[None]:
    """Compile inner functions for a GPU that is not there."""
    changed: Any = dispatcher
    before = changed.get_current_device
    changed.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        changed.get_current_device = before


types: Any = numba.types
register_philox(extending.register_jitable, extending.overload_method, types.NamedUniTuple)
register_shaped(extending.type_callable, extending.lower_builtin)
