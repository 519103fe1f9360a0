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
    "dask",
    "functions",
    "startup",
    "page",
]

for name in sys.argv[1:] or BENCHMARKS:
    print(f"\n{name}")
    import_module(f"bench.{name}").main()
