"""Run every benchmark: ``python -m bench``, or ``python -m bench allocation`` for some."""

import sys
from importlib import import_module

BENCHMARKS = [
    "allocation",
    "simulation",
    "decentralised",
    "batch",
    "chains",
    "optimum",
    "grid",
    "stalls",
    "dask",
    "dask_short",
    "functions",
    "swap",
    "startup",
    "page",
]

chosen = sys.argv[1:] or BENCHMARKS
if unknown := [name for name in chosen if name not in BENCHMARKS]:
    sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
for name in chosen:
    print(f"\n{name}")
    import_module(f"bench.{name}").main()
