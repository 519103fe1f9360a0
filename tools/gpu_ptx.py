"""Compile push and pull policies for GPUs, on a computer without one: ``make gpu-ptx``.

python tools/gpu_ptx.py [POLICY…] compiles some policies; by default all, for sm_80 and sm_90.
"""

import sys
from time import perf_counter
from typing import Any, Self

import numpy as np

from gridwright import InputError, System, load
from gridwright.compiler.cuda import CUDA, Capability, assembly, lanes
from gridwright.compiler.link import link
from gridwright.policies import Policy, find, policies
from gridwright.simulation import Job
from gridwright.simulation.launch import launch

CAPABILITIES = ((8, 0), (9, 0))
SYSTEMS = ("2.B", "3.A:alpha1:5")
"""Machines that never fail, and machines that do, with new plans."""


class CompiledError(Exception):
    """Raised with the code, in place of a launch."""


class Assembler:
    """A device that compiles and runs nothing."""

    name = "none"

    def __init__(self, capability: Capability) -> None:
        self.capability = capability

    def free(self) -> int:
        """Return the bytes of memory that are free."""
        return 1 << 30

    def put(self, array: Any, times: int = 1) -> Any:
        """Leave an array where it is."""
        return array

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        """Do nothing."""

    def write(self, there: Any, array: Any, first: int) -> None:
        """Do nothing."""

    def extend(self, there: Any, array: Any) -> Any:
        """Leave an array as it is."""
        return there

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        """Compile a function as a GPU does."""
        return link(kernel, inlined=True, made_for=CUDA(), lanes=lanes, **hooks)

    def beside(self) -> Self:
        """Return it: it runs nothing."""
        return self

    def start(self, linked: Any, count: int, side_by_side: int, *arguments: Any) -> None:
        """Compile a function for these arguments, and stop."""
        raise CompiledError(assembly(linked, self.capability, *arguments))

    def has_ended(self) -> bool:
        """Return True: nothing is started."""
        return True

    def wait(self) -> float:
        """Do nothing."""
        return 0.0


def ptx_of(system: System, policy: Policy, capability: Capability, replications: int = 1) -> str:
    """Return the code for the replications of a system under a policy; many lie side by side."""
    seeds = np.random.SeedSequence(1).spawn(replications)
    try:
        launch(Assembler(capability), [Job(system, policy, seeds, 1.0)], _done)
    except CompiledError as found:
        return str(found)
    raise AssertionError("nothing was launched")


def _done(*_: object) -> None:
    pass


def main(*names: str) -> None:
    """Compile policies and print how long that takes, and how long the code is."""
    chosen = names or [name for name, each in policies().items() if each.kind.is_central]
    for name in chosen:
        for system in SYSTEMS:
            for capability in CAPABILITIES:
                began = perf_counter()
                what = f"{name:16} {system:13} sm_{capability[0]}{capability[1]}"
                try:
                    code = ptx_of(load(system), find(name), capability)
                except InputError as error:
                    print(f"{what} refused: {error}", flush=True)
                    continue
                seconds, lines = perf_counter() - began, code.count("\n")
                print(f"{what} {seconds:6.1f} s {lines:8,} lines", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
