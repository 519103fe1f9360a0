"""Run every benchmark: ``python -m bench``, or ``python -m bench allocation`` for some.

The names of rows may follow that of a benchmark which has them: ``python -m bench dask_placement
known``.
"""

import sys
from importlib import import_module

from gridwright.compiler import tiers

BENCHMARKS = [
    "allocation",
    "simulation",
    "decentralised",
    "batch",
    "chains",
    "optimum",
    "environment",
    "grid",
    "stalls",
    "imposed",
    "dask",
    "dask_short",
    "dask_placement",
    "functions",
    "swap",
    "gpu",
    "startup",
    "page",
    "define",
]

tiers.ENOUGH = 0.0  # the speed of long runs is measured, in which loop and policy are linked
chosen: list[tuple[str, list[str]]] = []
for word in sys.argv[1:] or BENCHMARKS:
    if word in BENCHMARKS:
        chosen.append((word, []))
    elif chosen and word in getattr(import_module(f"bench.{chosen[-1][0]}"), "ROWS", ()):
        chosen[-1][1].append(word)
    else:
        sys.exit(f"no benchmark {word!r}; there are {', '.join(BENCHMARKS)}")
for name, rows in chosen:
    print(f"\n{name}")
    import_module(f"bench.{name}").main(*rows)
