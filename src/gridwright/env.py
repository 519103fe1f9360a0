"""Environments for learners, with the interface of Gymnasium: each step is one decision.

A pull environment asks which class an idle machine takes; a push environment asks which machine a
task is sent to. Importing this module registers ``gridwright/Scheduling-v0`` with Gymnasium.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise ImportError("environments need Gymnasium: pip install 'gridwright[env]'") from None

from .catalogue import load
from .model import InputError, System
from .policies import View
from .simulation import check_run
from .simulation.decisions import Decisions

HORIZON = 1000.0
ID = "gridwright/Scheduling-v0"
METADATA: dict[str, Any] = {"render_modes": []}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}

Observation = NDArray[np.float32]
SystemGiven = System | str | PathLike[str]


class SchedulingVectorEnv(VectorEnv[Any, Any, Any]):
    """Many replications of a system, which one compiled call steps to their next decisions.

    Parameters
    ----------
    system
        A system, its name in the catalogue, or the path of its file.
    kind
        ``"pull"``: the action is the class that the machine takes. ``"push"``: the action is the
        machine that the task is sent to. The last action is to wait: the machine stays idle, or the
        task is offered again after the next event.
    num_envs
        How many replications.
    horizon
        The length of an episode in time units. Then it is truncated; no episode terminates.
    idle
        Which idle machine is asked first in a pull system: ``"longest"`` or ``"fastest"``.
    preempt
        Refused if true: environments do not interrupt tasks.

    Notes
    -----
    The reward is minus the holding cost of all tasks in the system since the last decision, so the
    return of an episode is −horizon × mean cost. An episode that needs no decision is over after
    one step, whatever the action. ``features`` names the numbers of an observation.
    ``info["action_mask"]`` marks the possible actions; an impossible one counts as waiting.
    ``info["time"]`` is the time of the decision.

    Episode e of environment k is replication k + e × num_envs of ``simulate(…, rng="philox")`` with
    the same seed: with the decisions of a policy, it is the same run, unless the policy needs a
    plan. Environments make none: in what ``view`` shows, all classes may run everywhere.
    """

    metadata = VECTOR_METADATA

    def __init__(
        self,
        system: SystemGiven = "2.B",
        kind: str = "pull",
        num_envs: int = 1,
        *,
        horizon: float = HORIZON,
        idle: str = "longest",
        preempt: bool = False,
    ) -> None:
        if preempt:
            raise InputError(
                "preempt is True; environments do not interrupt tasks. Simulate a policy with "
                "preempt=true instead"
            )
        if num_envs < 1:
            raise InputError(f"num_envs is {num_envs}; expected at least 1")
        check_run(horizon, 0.0)
        self.system = system if isinstance(system, System) else load(system)
        self.num_envs = num_envs
        self.runs = Decisions(self.system, kind, num_envs, horizon=horizon, idle=idle)
        self.features = self.runs.features
        most = float(np.finfo(np.float32).max)
        self.single_observation_space = spaces.Box(0.0, most, (len(self.features),), np.float32)
        self.single_action_space = spaces.Discrete(self.runs.choices + 1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed: int | None = None
        self._episodes = np.zeros(num_envs, np.int64)
        self._cost = np.zeros(num_envs)
        self._is_over = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode of every environment; with a seed, the first of that seed."""
        if seed is not None or self._seed is None:
            self._seed = (
                int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
            )
            self._episodes[:] = 0
        self._start(np.arange(self.num_envs))
        return self.runs.seen.copy(), self._info()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Any]:
        """Answer every environment's question, and run it to the next one.

        An environment whose episode was over starts the next one, whatever the action.
        """
        runs, ended = self.runs, np.flatnonzero(self._is_over)
        answers = np.asarray(actions, np.int64)
        if answers.shape != (self.num_envs,):
            raise InputError(f"actions have the shape {answers.shape}; expected {self.num_envs}")
        runs.step(np.where(answers == runs.choices, -1, answers))
        if len(ended):
            self._start(ended)
        rewards = self._cost - runs.outcome[:, 1]
        self._cost[:] = runs.outcome[:, 1]
        self._is_over = ~runs.is_asked
        for each in (rewards, self._cost, self._is_over):
            each[ended] = 0  # an episode that has just begun: what it cost so far comes next
        terminated = np.zeros(self.num_envs, np.bool_)
        return runs.seen.copy(), rewards, terminated, self._is_over.copy(), self._info()

    def view(self, number: int = 0) -> tuple[int, View]:
        """Return who asks in an environment, and what a policy would be shown: its arguments."""
        return self.runs.asking(number), self.runs.view(number)

    def _start(self, numbers: NDArray[np.int64]) -> None:
        seeds = [
            SeedSequence(self._seed, spawn_key=(int(k + self._episodes[k] * self.num_envs),))
            for k in numbers
        ]
        self._episodes[numbers] += 1
        self.runs.start(numbers.tolist(), seeds)
        self._cost[numbers], self._is_over[numbers] = 0.0, False

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.runs.mask.copy(), "time": self.runs.outcome[:, 0].copy()}


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """One replication of a system; everything is as in ``SchedulingVectorEnv``.

    >>> env = SchedulingEnv(System(arrivals=[1], rates=[[2]]), "pull", horizon=10)
    >>> observation, info = env.reset(seed=1)
    >>> info["action_mask"].tolist()  # take a task of class 0, or wait
    [True, True]
    """

    metadata = METADATA

    def __init__(
        self,
        system: SystemGiven = "2.B",
        kind: str = "pull",
        *,
        horizon: float = HORIZON,
        idle: str = "longest",
        preempt: bool = False,
    ) -> None:
        how: dict[str, Any] = {"horizon": horizon, "idle": idle, "preempt": preempt}
        self.many = SchedulingVectorEnv(system, kind, 1, **how)
        self.system, self.features = self.many.system, self.many.features
        self.observation_space = self.many.single_observation_space
        self.action_space = self.many.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode; with a seed, the first of that seed."""
        super().reset(seed=seed)
        seen, info = self.many.reset(seed=seed)
        return seen[0], {key: value[0] for key, value in info.items()}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer the question, and run to the next one."""
        seen, rewards, terminated, truncated, info = self.many.step(np.array([action], np.int64))
        info = {key: value[0] for key, value in info.items()}
        return seen[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def view(self) -> tuple[int, View]:
        """Return who asks, and what a policy would be shown: its arguments."""
        return self.many.view()


gymnasium.register(
    ID,
    entry_point=f"{__name__}:SchedulingEnv",
    vector_entry_point=f"{__name__}:SchedulingVectorEnv",
)
