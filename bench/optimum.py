"""The optimum of small systems. Floor: a 2 × 2 system at load 0.9 under 10 s.

The baseline is one evaluation of a policy on the largest state space that was needed.
"""

from time import perf_counter

import numpy as np

from gridwright import System, optimum
from gridwright.experiments.markov_decision import Pull, evaluate


def main() -> None:
    arrivals, rates = np.array([6.0, 9.6]), np.array([[8.0, 3.0], [4.0, 10.0]])
    begin = perf_counter()
    found = optimum(System(arrivals=arrivals, rates=rates), [])
    whole = perf_counter() - begin
    assert found.pull is not None
    model = Pull(arrivals, rates, found.pull.tasks, np.ones(2))
    chain = model.chain(model.first(np.ones((2, 2))))
    begin = perf_counter()
    evaluate(chain, model.cost, 2, np.zeros((len(model.cost), 2)))
    once = perf_counter() - begin
    print(f"2 × 2, load 0.9, {found.pull.tasks} tasks, error {found.pull.error:.0e}")
    print(f"{'optimum':26}{whole:7.2f} s")
    print(f"{'one evaluation':26}{once:7.2f} s{whole / once:7.1f} × as much")
