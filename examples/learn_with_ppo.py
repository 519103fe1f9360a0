"""Train a neural network with Stable-Baselines3: ``pip install stable-baselines3``."""

import numpy as np
from stable_baselines3 import PPO

from gridwright import System
from gridwright.env import SchedulingEnv

N_MODEL = System(arrivals=[0.91, 0.28], rates=[[1, 0.5], [0, 1]], costs=[3, 1])
HORIZON = 200


def mean_cost(env, model, episodes=20):
    """Return the mean cost of some episodes."""
    total = 0.0
    for episode in range(episodes):
        seen, _ = env.reset(seed=1000 if episode == 0 else None)
        is_over = False
        while not is_over:
            action, _ = model.predict(seen, deterministic=True)
            seen, reward, _, is_over, _ = env.step(action)
            total -= reward
    return total / episodes / HORIZON


def main():
    """Train, and compare with the untrained network."""
    env = SchedulingEnv(N_MODEL, "pull", horizon=HORIZON)
    model = PPO("MlpPolicy", env, seed=1, device="cpu")
    before = mean_cost(env, model)
    model.learn(20_000)
    after = mean_cost(env, model)
    print(f"training lowers the mean cost: {bool(np.isfinite(after) and after < before)}")


if __name__ == "__main__":
    main()
