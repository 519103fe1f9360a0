"""Learn when a fast machine should help a slow one, and compare with the exact optimum.

The index of a class on a machine is linear in the numbers of waiting tasks. A free machine takes
the class with the largest index, or waits if all are negative. The cross-entropy method finds the
weights: it tries many at once, keeps the best, and draws the next ones around them.
"""

import numpy as np

from gridwright import System, optimum
from gridwright.env import SchedulingVectorEnv

N_MODEL = System(arrivals=[0.91, 0.28], rates=[[1, 0.5], [0, 1]], costs=[3, 1])
CANDIDATES, EACH, ELITE, ROUNDS, HORIZON = 48, 8, 8, 4, 500
classes, machines = N_MODEL.shape
SHAPE = (machines, classes, 1 + classes)


def mean_costs(env, weights, seed):
    """Run one episode of every environment with its own weights; return the mean costs."""
    seen, info = env.reset(seed=seed)
    numbers = np.arange(env.num_envs)
    cost, is_over = np.zeros(env.num_envs), np.zeros(env.num_envs, bool)
    while not is_over.all():
        machine = seen[:, :machines].argmax(axis=1)
        waiting = seen[:, machines : machines + classes]
        chosen = weights[numbers, machine]
        index = chosen[:, :, 0] + np.einsum("nck,nk->nc", chosen[:, :, 1:], waiting)
        index = np.column_stack([index, np.zeros(env.num_envs)])  # the last action: wait
        actions = np.where(info["action_mask"], index, -np.inf).argmax(axis=1)
        seen, reward, _, truncated, info = env.step(actions)
        cost -= np.where(is_over, 0, reward)
        is_over |= truncated
    return cost / HORIZON


def learn():
    """Return the weights that the cross-entropy method finds."""
    rng = np.random.default_rng(1)
    env = SchedulingVectorEnv(N_MODEL, "pull", CANDIDATES * EACH, horizon=HORIZON)
    mean, spread = np.zeros(SHAPE), np.ones(SHAPE)
    for number in range(ROUNDS):
        tried = mean + spread * rng.standard_normal((CANDIDATES, *SHAPE))
        costs = mean_costs(env, np.repeat(tried, EACH, axis=0), seed=number)
        best = tried[costs.reshape(CANDIDATES, EACH).mean(axis=1).argsort()[:ELITE]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.3 / (1 + number)
    return mean


def main():
    """Learn, measure on other random numbers, and compare."""
    weights = learn()
    env = SchedulingVectorEnv(N_MODEL, "pull", 512, horizon=HORIZON)
    cost = mean_costs(env, np.repeat(weights[None], 512, axis=0), seed=1000).mean()
    found = optimum(N_MODEL, ["cmu"], horizon=20_000)
    least = found.pull.mean_cost
    print(f"the least mean cost without interruptions is {least:.2f}")
    print(f"static priorities (cmu) cost {100 * found.policies[0].gap:.0f} % more")
    print(f"the learned index costs at most 5 % more: {cost <= 1.05 * least}")


if __name__ == "__main__":
    main()
