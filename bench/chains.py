"""Chains: the three published tables with ten repeats. Floor: under 20 s; baseline: the draws."""

from time import perf_counter

import numpy as np

from gridwright import load, simulate
from gridwright.simulation.chain_setup import templates_of

NODES = (1, 2, 4, 8, 16, 20, 24, 28, 32, 64)
POLICIES = ("chain_fcfs", "chain_rr", "chain_mct")
BODIES, REPEATS = 10, 10


def main() -> None:
    for policy in POLICIES:
        simulate("Wisnesky:1", policy, replications=1)  # compiles
    begin, jobs, inside = perf_counter(), 0, 0.0
    for policy in POLICIES:
        for nodes in NODES:
            result = simulate(f"Wisnesky:{nodes}", policy, replications=BODIES * REPEATS)
            jobs += result.tasks
            inside += result.seconds
    whole = perf_counter() - begin
    rng = np.random.default_rng(1)
    begin = perf_counter()
    for nodes in NODES:
        system = load(f"Wisnesky:{nodes}")
        for _ in range(len(POLICIES) * BODIES * REPEATS):
            templates_of(system, rng)
    draws = perf_counter() - begin
    print(f"Tables II to IV, {REPEATS} × {BODIES} bodies a row, {jobs:,} jobs: {whole:.1f} s")
    print(f"of which {inside:.1f} s in the loop; drawing the templates alone takes {draws:.1f} s")
