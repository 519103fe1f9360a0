"""Environments for learners: decisions per CPU second on one core. Floor (goal): 1 (5) million.

The baseline is the simulator with a compiled policy, in decisions too. The learner here takes the
first possible action, which costs little; its time is not counted.
"""

from time import thread_time

import numpy as np

from gridwright import System, simulate
from gridwright.env import SchedulingEnv, SchedulingVectorEnv

from .baseline import Run, best_of

N_MODEL = System(arrivals=[0.91, 0.28], rates=[[1, 0.5], [0, 1]])
SIZE, STEPS = 1024, 500


def vectorised(kind: str) -> Run:
    """Measure steps per CPU second of many environments together."""
    env = SchedulingVectorEnv(N_MODEL, kind, SIZE, horizon=1e9)
    _, info = env.reset(seed=1)
    mask = info["action_mask"]

    def run() -> float:
        nonlocal mask
        seconds = 0.0
        for _ in range(STEPS):
            actions = mask.argmax(axis=1)
            begin = thread_time()
            *_, info = env.step(actions)
            seconds += thread_time() - begin
            mask = info["action_mask"]
        return SIZE * STEPS / seconds

    return run


def single() -> Run:
    """Measure steps per CPU second of one environment."""
    env = SchedulingEnv(N_MODEL, horizon=1e9)
    env.reset(seed=1)
    actions = np.zeros(STEPS, np.int64)

    def run() -> float:
        begin = thread_time()
        for action in actions:
            env.step(action)
        return STEPS / (thread_time() - begin)

    return run


def simulated() -> float:
    """Measure decisions per CPU second of the simulator."""
    result = simulate(N_MODEL, "gcmu", 100_000.0, 1, threads=1, rng="philox")
    return sum(each.asked for each in result.replications) / result.seconds


def main() -> None:
    simulated()  # compiles
    best = best_of(
        5, pull=vectorised("pull"), push=vectorised("push"), single=single(), inside=simulated
    )
    for name, label in (("pull", "pull, 1024 at once"), ("push", "push, 1024 at once")):
        share = best[name] / best["inside"]
        print(f"{label:26}{best[name] / 1e6:8.2f} M steps/s, {share:.2f} of the simulator")
    print(f"{'pull, single':26}{best['single'] / 1e6:8.3f} M steps/s")
    print(f"{'the simulator, gcmu':26}{best['inside'] / 1e6:8.2f} M decisions/s")
