"""Train a neural network with Stable-Baselines3: ``pip install stable-baselines3``."""

from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from gridwright import System
from gridwright.env import SchedulingEnv

N_MODEL = System(arrivals=[0.91, 0.28], rates=[[1, 0.5], [0, 1]], costs=[3, 1])
HORIZON = 200


def mean_cost(envs, model, episodes=10):
    """Return the mean cost of some episodes."""
    envs.training = False
    envs.seed(1000)
    seen, total, ended = envs.reset(), 0.0, 0
    while ended < episodes:
        actions, _ = model.predict(seen, deterministic=True)
        seen, _, is_over, _ = envs.step(actions)
        total -= envs.get_original_reward().sum()
        ended += is_over.sum()
    envs.training = True
    return total / episodes / HORIZON


def main():
    """Train, and compare with the untrained network."""
    # Costs grow with the queues; unless they are scaled, the network learns nothing.
    envs = VecNormalize(DummyVecEnv([lambda: SchedulingEnv(N_MODEL, "pull", horizon=HORIZON)]))
    model = PPO("MlpPolicy", envs, seed=1, device="cpu")
    before = mean_cost(envs, model)
    model.learn(12_000)
    after = mean_cost(envs, model)
    print(f"training lowers the mean cost to less than a fifth: {after < before / 5}")


if __name__ == "__main__":
    main()
