"""Compile single functions for a kind of processor.

A target says how functions become machine code. ``CPU`` uses Numba's public interface. ``quick.py``
compiles for the same processor in less time, with private parts of Numba, and gives the same
results. ``link.target`` chooses between them. ``cuda.py`` compiles for GPUs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .checks import without_results


class How(NamedTuple):
    """How one function of a program is compiled. A target may ignore all but ``checked``."""

    checked: bool = False
    """Check every index."""
    allocates: bool | None = None
    """Without memory allocation, there is no need to count references. None: as its caller."""
    inlined: bool = False
    """Insert the function into its callers."""


class Target(Protocol):
    """How functions become machine code for a kind of processor."""

    name: str
    """It is part of the digest of a program."""
    is_kept: bool
    """Whether Numba keeps the machine code on disk."""

    calls_by_address: bool
    """Whether a loop can call a policy by its address; see ``tiers`` and ``QuickCPU``."""

    def inner(self, function: Callable[..., Any], how: How, part: str = "") -> Any:
        """Compile a function that only compiled code calls; ``part`` names it among all programs.

        It may be kept on disk under this name.
        """

    def entry(self, function: Callable[..., Any], how: How, cached: bool) -> Any:
        """Compile a function that Python calls."""

    def callback(self, function: Callable[..., Any], how: How, cached: bool, signature: Any) -> Any:
        """Compile a function that has an address, for one signature."""

    def guarded(self, value: Any) -> Any:
        """Return what a user's function calls in place of a value; None for the value itself."""

    def built_in(self, value: Any) -> Any:
        """Return what stands for a function of the compiler; None for the function itself."""


class CPU:
    """Compile for the processor of this computer, with Numba's public interface."""

    name = "cpu"
    is_kept = True
    calls_by_address = False

    def inner(self, function: Callable[..., Any], how: How, part: str = "") -> Any:
        """Compile a function that only compiled code calls.

        As an overload, it has no way in from Python, and is compiled once for arguments of a type,
        not again for each constant among them.
        """
        from numba.extending import overload

        def stand_in(*_: Any, **__: Any) -> Any:
            return function

        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **self.options(how)}
        overload(stand_in, jit_options=options, strict=False)(stand_in)
        return stand_in

    def entry(self, function: Callable[..., Any], how: How, cached: bool) -> Any:
        """Compile a function that Python calls."""
        import numba

        return numba.njit(function, cache=cached, **self.options(how))

    def callback(self, function: Callable[..., Any], how: How, cached: bool, signature: Any) -> Any:
        """Compile a function that has an address, for one signature."""
        import numba

        return numba.cfunc(signature, cache=cached, **self.options(how))(function)

    def options(self, how: How) -> dict[str, Any]:
        """Return Numba's options for a function."""
        options = {"nogil": True, "error_model": "numpy", "boundscheck": how.checked}
        return options if how.allocates is None else {**options, "_nrt": how.allocates}

    def guarded(self, value: Any) -> Any:
        """Return what a user's function calls in place of a value, to be safe."""
        return without_results(value)

    def built_in(self, value: Any) -> Any:
        """Return nothing: Numba is taught these functions."""
        return None
