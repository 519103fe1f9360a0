"""Every loop and one policy of each kind compile for a GPU, without one (``make gpu-ptx``: all).

``make setup`` installs numba-cuda on Linux computers with x86-64 or ARM64.
"""

import sys
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from gpu_ptx import ptx_of
from numba import cuda
from numba.cuda import dispatcher
from numba.cuda.codegen import CUDACodeLibrary, JITCUDACodegen
from numba.cuda.cudadrv import nvvm
from numba.cuda.typing.typeof import typeof

from gridwright import InputError, System, load, simulate
from gridwright.compiler import cuda as cuda_module
from gridwright.compiler.cuda import CUDA, Device, assembly, lanes
from gridwright.compiler.link import link
from gridwright.policies import PUSH, Policy, View, find
from gridwright.policies.policy import policy_of
from gridwright.simulation.kernel import run_push
from gridwright.simulation.on_device import MANY_RUNS

FAILING = load("3.A:alpha1:5")
GAMMA = {"kind": "gamma", "shape": 2}


def least_backlog(task_class: int, view: View) -> int:
    """Send a task to the machine with the fewest; draw among equals."""
    best, fewest = -1, 1e9
    for j in range(len(view.machines)):
        if view.plan[task_class, j] > 0.0:
            count = view.machines[j].backlog + 0.5 * view.rng.random()
            if count < fewest:
                best, fewest = j, count
    return best


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("system", "policy", "replications"),
    [
        pytest.param(
            load("2.D").replace(execution=GAMMA),
            find("lpas:tie=random"),
            MANY_RUNS,
            marks=pytest.mark.slow,
        ),
        (System(arrivals=[1], rates=[[2, 3]]), policy_of(least_backlog, PUSH), 1),
        pytest.param(FAILING, find("lpas_dg"), MANY_RUNS, marks=pytest.mark.slow),
        pytest.param(FAILING, find("cmu:preempt=true"), 1, marks=pytest.mark.slow),
    ],
    ids=[
        "push, gamma, side by side",
        "push, a user's",
        "pull, failures, plans, side by side",
        "preemption, failures",
    ],
)
def test_it_compiles_to_ptx(system: System, policy: Policy, replications: int) -> None:
    """Every loop, for runs side by side and apart, with and without plans that it makes itself."""
    code = ptx_of(system, policy, (9, 0), replications)
    assert ".target sm_90" in code
    entry = code.partition(".visible .entry")[2].partition("\n.func")[0]
    assert "ret;" in entry
    assert ".local" not in entry, "tuples that are passed to functions would be copied"


def test_what_is_compiled_is_kept_on_disk() -> None:
    made: Any = link(run_push, made_for=CUDA(), lanes=lanes, decide=find("lpas").decide)
    digest = made.py_func.__qualname__.rpartition("_")[2]
    assert f"/code/{digest}/" in made._cache.cache_path


def twice(numbers: Any) -> None:
    """Double numbers, each in a thread of its own."""
    first, count = lanes()
    for k in range(first, len(numbers), count):
        numbers[k] *= 2.0


def test_machine_code_alone_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU is needed to run a program, not to make its machine code."""
    capability = (9, 0, "")
    monkeypatch.setattr(CUDACodeLibrary, "_ensure_cc", lambda self, cc: capability)
    monkeypatch.setattr(JITCUDACodegen, "magic_tuple", lambda self: capability)
    made: Any = link(twice, made_for=CUDA())
    types = (typeof(np.zeros(3)),)
    with cuda_module._pretending(capability[:2]):
        kernel = dispatcher._Kernel(made.py_func, types, **made.targetoptions)
    compiled = kernel._codelibrary
    machine_code = compiled.get_cubin().code
    made._cache.save_overload(kernel.signature, kernel)
    loaded = made._cache.load_overload(kernel.signature, made.targetctx)
    assert machine_code.startswith(b"\x7fELF")
    assert loaded._codelibrary.get_cubin().code == machine_code
    assert not loaded._codelibrary.get_llvm_str()
    assert not loaded._codelibrary._ptx_cache
    assert compiled.get_llvm_str(), "what runs now is as before"
    kept = sum(path.stat().st_size for path in Path(made._cache.cache_path).iterdir())
    assert kept < 2 * len(machine_code)


def squared(x: float) -> float:
    return x * x


def one_more(x: float) -> float:
    return squared(x) + 1.0


def one_less(x: float) -> float:
    return squared(x) - 1.0


def both(numbers: Any) -> None:
    numbers[0] = one_more(numbers[1]) / one_less(numbers[2])


def test_a_function_is_linked_once_however_many_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unit: Any = nvvm.CompilationUnit
    add, added = unit.add_module, list[bytes]()

    def add_module(self: Any, code: bytes) -> None:
        added.append(code)
        add(self, code)

    monkeypatch.setattr(unit, "add_module", add_module)
    modules = CUDACodeLibrary.modules
    code = assembly(link(both, made_for=CUDA()), (9, 0), np.zeros(3))
    assert code.count(".visible .entry") == 1
    assert sum(b"define" in each and b"squared" in each for each in added) > 1
    assert len(added) == len(set(added))
    assert CUDACodeLibrary.modules is modules, "numba-cuda is as before"


def test_without_a_gpu_one_line_says_so() -> None:
    if cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match=r"\Ano GPU of NVIDIA was found: .+[^ :]\Z"):
        simulate("2.B", "mct", 1, 1, on="gpu")


class Late:
    """Arrays and a queue of a GPU that copies nothing until somebody waits for it."""

    def __init__(self, array: Any, queue: list[tuple[Any, Any]]) -> None:
        self.array, self.queue = array, queue

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: Any) -> "Late":
        return Late(self.array[place], self.queue)

    def copy_to_device(self, array: Any, stream: Any) -> None:
        self.queue.append((self.array, getattr(array, "array", array)))

    def synchronize(self) -> None:
        for there, array in self.queue:
            there[...] = array
        self.queue.clear()


def test_what_was_copied_to_a_gpu_may_change_here(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Late(np.zeros(0), [])

    def device_array(length: int, dtype: Any) -> Late:
        return Late(np.zeros(length, dtype), stream.queue)

    def to_device(array: Any, stream: Any) -> Late:
        there = device_array(len(array), array.dtype)
        there.copy_to_device(array, stream)
        return there

    made = {"device_array": device_array, "to_device": to_device}
    monkeypatch.setattr(cuda_module, "cuda", SimpleNamespace(**made))
    device = Device.__new__(Device)
    device.stream = stream
    here = np.array([1, 2])
    one, three = device.put(here), device.put(here, 3)
    here[:] = 5
    device.write(one, here[:1], 1)
    here[:] = 7
    longer = device.extend(one, here)
    here[:], one.array[:] = 9, 9
    stream.synchronize()
    assert three.array.tolist() == [1, 2] * 3
    assert longer.array.tolist() == [1, 5, 7, 7]


def test_warps_are_filled_only_if_all_runs_side_by_side_need_it() -> None:
    launched: list[tuple[int, int]] = []

    class Linked:
        """A program that needs 64 registers a thread."""

        overloads = MappingProxyType({(): SimpleNamespace(regs_per_thread=64)})

        def __getitem__(self, shape: tuple[int, int, None]) -> Any:
            launched.append(shape[:2])
            return lambda: None

    mark = SimpleNamespace(record=lambda stream: None)
    device = Device.__new__(Device)
    device.stream, device.began, device.ended = None, mark, mark
    device.unit = SimpleNamespace(MAX_REGISTERS_PER_MULTIPROCESSOR=65_536, MULTIPROCESSOR_COUNT=132)
    for side_by_side in (3_840, 7_680, 49_920, 65_536 * 2):
        device.start(Linked(), 3_840, side_by_side)
    assert launched == [(3840, 1), (1920, 2), (240, 16), (60, 64)]
