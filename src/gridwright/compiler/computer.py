"""Name the computer, and the software that makes machine code for it.

Measured speeds are printed with the name of the computer. Machine code depends on the processor,
on the versions of the compiler and on its settings.
"""

import os
import platform
from functools import cache
from hashlib import blake2b
from pathlib import Path

SETTINGS = (
    "BOUNDSCHECK",
    "CPU_FEATURES",
    "CPU_NAME",
    "DEBUGINFO_DEFAULT",
    "DISABLE_INTEL_SVML",
    "ENABLE_AVX",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
)
"""Numba's settings that change machine code."""


def computer() -> str:
    """Name this computer: architecture, model of the processor if it is known, and cores."""
    count = os.cpu_count() or 1
    words = (platform.machine(), processor_model())
    number = f"{count} processor{'' if count == 1 else 's'}"
    return ", ".join([*dict.fromkeys(filter(None, words)), number])


def processor_model(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor's model, or an empty string if it is not known."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor()


@cache
def toolchain() -> str:
    """Name the software that makes machine code: its files and its versions."""
    from importlib.metadata import version

    names = ("llvmlite", "numba", "numpy")
    return f"{LOADED} {platform.python_version()} {[version(name) for name in names]}"


@cache
def processor() -> str:
    """Name the processor that machine code is made for."""
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def numba_settings() -> str:
    """Return the settings of Numba that change machine code."""
    import numba

    return repr([getattr(numba.config, name, None) for name in SETTINGS])


def _loaded() -> str:
    digest = blake2b(digest_size=16)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


LOADED = _loaded()
"""The compiler's files as they were loaded: later edits do not run yet."""
