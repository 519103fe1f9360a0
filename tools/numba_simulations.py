"""Print digests of whole simulations of every kind, to compare versions of Numba.

The tests of the compiler compare the two ways to compile with the same simulations.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import gridwright as gw

MINE = """
import gridwright as gw
import numpy as np

WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])

@gw.push
def mine(task_class, view):
    waits = np.zeros(view.machines.size)
    for m in range(view.machines.size):
        rate = view.rate[task_class, m]
        there = view.machines[m].backlog + WEIGHTS[task_class % 4]
        waits[m] = there / rate if rate > 0 else np.inf
    return int(np.argmin(np.add(waits, 1.0)))
"""


SIMULATIONS = (
    ("2.B", "mct", 300),
    ("2.B", "mine", 300),
    ("3.A:alpha1:2", "lpas_dg", 60),
    ("4.A", "lpas_dec", 60),
    ("Wisnesky:8", "chain_mct", None),
    ("Smith", "min_min", None),
)
"""A system, a policy and a horizon of every kind; ``mine`` is the policy above."""


def main() -> None:
    """Simulate, and print a digest of every field of the results."""
    print(json.dumps({" ".join(map(str, each)): digests(*each) for each in SIMULATIONS}))


def digests(system: str, policy: str, horizon: float | None) -> dict[str, str]:
    """Simulate; return a digest of every field of the results but the time it took."""
    with tempfile.TemporaryDirectory() as folder:
        if policy == "mine":
            policy = str(Path(folder, "mine.py"))
            Path(policy).write_text(MINE, "utf-8")
        result = gw.simulate(system, policy, horizon=horizon, replications=2, seed=5, threads=1)
    found = {}
    for field in result.replications[0]._fields:
        if field != "seconds":
            digest = hashlib.sha256()
            fed(digest, [getattr(each, field) for each in result.replications])
            found[field] = digest.hexdigest()
    return found


def fed(digest: Any, value: Any) -> None:
    """Feed a value to a digest."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            for name in value.dtype.names:
                fed(digest, np.ascontiguousarray(value[name]))
        else:
            digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, dict | MappingProxyType):
        fed(digest, [part for item in value.items() for part in item])
    elif isinstance(value, list | tuple):
        for each in value:
            fed(digest, each)
    else:
        digest.update(repr(value).encode())


if __name__ == "__main__":
    main()
