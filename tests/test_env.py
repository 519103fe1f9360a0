"""Environments: they take Gymnasium's checks, and their runs are those of the simulator."""

from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from gridwright import Distribution, InputError, System, load, simulate
from gridwright.policies import PUSH, Policy, View, find
from gridwright.policies.policy import policy_of
from gridwright.simulation import replicate
from gridwright.simulation.decisions import Decisions
from gridwright.simulation.driver import Replication, read_off

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from gridwright.env import ID, SchedulingEnv, SchedulingVectorEnv  # noqa: E402

SEED = SeedSequence(3, spawn_key=(4,))
SMALL = System(arrivals=[0.9, 0.3], rates=[[1, 0.5], [0, 1]], costs=[3, 1])
CHAIN = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}
FAILING = System(
    name="failing",
    arrivals=[3, 4],
    rates=[[4, 1, 2], [2, 3, 0]],
    counts=[1, 2, 1],
    availability=[1, 0.5, CHAIN],
    failures={"mean_uptime": 10, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}},
    execution=[{"kind": "hyperexponential", "scv": 2}, "exponential"],
    assumed={"inaccuracy": {"availability": 0.3, "rates": 0.1, "arrivals": 0.1}},
)


class Halves(Distribution):
    """A distribution of a user's own: draws are made in Python."""

    @property
    def mean(self) -> float:
        return 1.0

    @property
    def variance(self) -> float:
        return 1 / 9

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return rng.choice([2 / 3, 4 / 3], size)


def keep_some(task_class: int, view: View) -> int:
    """Send a task to an idle machine, at random; hold it back if there is none."""
    first = int(view.rng.random() * len(view.machines))
    for k in range(len(view.machines)):
        j = (first + k) % len(view.machines)
        machine = view.machines[j]
        if machine.up and machine.backlog == 0 and view.rate[task_class, j] > 0:
            return j
    return -1


HOLDING = policy_of(keep_some, PUSH)


def decided_by(policy: Policy, runs: Decisions, seeds: list[SeedSequence]) -> None:
    """Start all runs, and let a policy decide until they are at their horizons."""
    arguments = policy.arguments(runs.system.shape)
    runs.start(range(len(seeds)), seeds)
    while runs.is_asked.any():
        runs.step(
            np.array(
                [
                    policy.decide(runs.asking(k), runs.view(k), *arguments) if is_asked else -1
                    for k, is_asked in enumerate(runs.is_asked)
                ]
            )
        )


def measured(runs: Decisions, number: int) -> Replication:
    mechanism = copy(runs.first)
    mechanism.state = runs.state(number)
    return read_off(mechanism, (np.zeros(0), np.zeros(0)), 0.0, None)


def assert_same(one: Replication, other: Replication, rel: float) -> None:
    for name in ("response", "waiting", "queueing", "throughput", "utilisation"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=rel, abs=0), name
    for name in ("asked", "refusals", "lost", "tasks"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.mean_number == pytest.approx(other.mean_number, rel=1e-11)
    assert one.class_number == pytest.approx(other.class_number, rel=1e-11)


@pytest.mark.parametrize(
    ("system", "policy", "horizon"),
    [
        (SMALL, find("gcmu"), 60),
        (SMALL, find("fcfs:idle=fastest"), 60),
        (FAILING, find("fcfs"), 10),
        (FAILING, find("gcmu:idle=fastest"), 10),
        (SMALL, find("mct"), 60),
        (SMALL, find("jsq:tie=random"), 60),
        (SMALL, HOLDING, 60),
        (FAILING, find("mct"), 10),
        (FAILING, HOLDING, 10),
        (SMALL.replace(execution=Halves()), find("gcmu"), 60),
    ],
    ids=str,
)
def test_runs_are_those_of_the_simulator(system: System, policy: Policy, horizon: float) -> None:
    runs = Decisions(
        system,
        policy.kind.name,
        2,
        horizon=horizon,
        idle=policy.options.get("idle", "longest"),
        interpreted=True,
    )
    seeds = [SEED, SeedSequence(3, spawn_key=(5,))]
    decided_by(policy, runs, seeds)
    for number, seed in enumerate(seeds):
        expected = replicate(
            system, policy, horizon=horizon, seed=seed, rng="philox", interpreted=True
        )
        assert expected.tasks > 50
        is_retired_early = policy.kind is PUSH and system is SMALL  # sums in another order
        assert_same(measured(runs, number), expected, 1e-11 if is_retired_early else 1e-15)
        cost = float(system.holding_costs @ expected.class_number) * horizon
        assert runs.outcome[number] == pytest.approx([horizon, cost], rel=1e-11)


@pytest.mark.slow
def test_queues_may_grow_and_start_again() -> None:
    runs = Decisions(SMALL, "pull", 2, horizon=500)
    seeds = [SEED, SeedSequence(3, spawn_key=(5,))]
    runs.start(range(2), seeds)
    while runs.is_asked.any():
        runs.step(np.array([-1, 0]))  # the first run serves nobody
    assert runs.state(0).count[0].inside == runs.state(0).count[0].tasks > 512
    assert runs.blocks.keys() == {0}
    used = runs.used
    decided_by(find("gcmu"), runs, seeds)
    given: dict[str, Any] = {"horizon": 500, "seed": SEED, "rng": "philox"}
    expected = replicate(SMALL, find("gcmu"), interpreted=True, **given)
    assert_same(measured(runs, 0), expected, 1e-15)
    assert runs.used == used


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pull", "push"])
def test_gymnasium_checks_it(kind: str) -> None:
    env = gymnasium.make(ID, system=SMALL, kind=kind, horizon=50)
    check_env(env.unwrapped)  # its warnings are errors here


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcmu", "mct"])
def test_episodes_are_replications(name: str) -> None:
    policy, horizon = find(name), 100.0
    env = SchedulingEnv(SMALL, policy.kind.name, horizon=horizon)
    returns = []
    for episode in range(2):
        _, info = env.reset(seed=7 if episode == 0 else None)
        total, is_over = 0.0, False
        while not is_over:
            answer = policy.decide(*env.view(), *policy.arguments(SMALL.shape))
            assert info["action_mask"][answer]
            _, reward, terminated, is_over, info = env.step(answer)
            assert not terminated
            total += reward
        returns.append(total)
        assert info["time"] == horizon
    result = simulate(SMALL, policy, horizon, 2, seed=7, rng="philox")
    costs = [float(SMALL.holding_costs @ each.class_number) for each in result.replications]
    assert returns == pytest.approx([-horizon * cost for cost in costs], rel=1e-9)


@pytest.mark.slow
def test_vectors_are_single_environments() -> None:
    def act(mask: Any) -> Any:
        return mask.argmax(axis=-1)

    many = gymnasium.make_vec(ID, num_envs=3, system=SMALL, horizon=20)
    seen, info = many.reset(seed=5)
    steps = [(seen, np.zeros(3), np.zeros(3, bool))]
    for _ in range(200):
        seen, reward, _, over, info = many.step(act(info["action_mask"]))
        steps.append((seen, reward, over))
    assert sum(over.sum() for _, _, over in steps) > 6
    one = SchedulingEnv(SMALL, horizon=20)
    for number in range(3):
        first, info = one.reset(seed=5)
        for _ in range(number):
            first, info = one.reset()
        assert (steps[0][0][number] == first).all()
        for seen, reward, over in steps[1:]:
            first, expected, _, is_over, info = one.step(act(info["action_mask"]))
            assert (seen[number] == first).all()
            assert (reward[number], over[number]) == (expected, is_over)
            if is_over:
                break


LATE = System(arrivals=[0.5], rates=[[2]], failures={"mean_uptime": 1, "mean_repair": 20})
"""Its machine is often down when the first task arrives: the first decision comes later."""


def test_what_an_episode_costs_before_its_first_decision_counts() -> None:
    env = SchedulingVectorEnv(LATE, "pull", 3, horizon=30)
    env.reset(seed=2)
    returns, now = list[float](), np.zeros(3)
    while len(returns) < 6:
        _, rewards, _, over, _ = env.step(np.zeros(3, np.int64))
        now += rewards
        returns += (-now[over] / 30).tolist()
        now[over] = 0.0
    runs = simulate(LATE, "fcfs", 30, 12, 2, rng="philox").values("mean_number")
    assert all(np.isclose(runs, each, rtol=1e-9).any() for each in returns)
    assert len(set(returns)) == len(returns)


def test_an_episode_without_a_decision_has_one_step() -> None:
    rare = System(arrivals=[0.05], rates=[[2]])
    env = SchedulingEnv(rare, horizon=10)
    costs = simulate(rare, "fcfs", 10, 8, 5, rng="philox").values("mean_number")
    assert (costs == 0).any()
    for episode, cost in enumerate(costs):
        _, info = env.reset(seed=5 if episode == 0 else None)
        total, is_over, steps = 0.0, False, 0
        while not is_over:
            _, reward, _, is_over, info = env.step(0)
            total, steps = total + reward, steps + 1
        assert -total / 10 == pytest.approx(cost, rel=1e-9)
        assert (steps == 1) or cost > 0
        assert info["time"] == 10


def test_features_have_names() -> None:
    runs = Decisions(SMALL, "push", 1, horizon=50, interpreted=True)
    runs.start([0], [SEED])
    runs.step(np.array([0]))
    seen = dict(zip(runs.features, runs.seen[0].tolist(), strict=True))
    view = runs.view(0)
    assert seen[f"asks[{runs.asking(0)}]"] == 1
    assert seen["asks[0]"] + seen["asks[1]"] == 1
    assert seen["waiting[0]"] == view.classes[0].waiting
    assert seen["backlog[0]"] == view.machines[0].backlog
    assert seen["work[0]"] == pytest.approx(view.machines[0].work)
    assert seen["serves[0,0]"] == (view.machines[0].serving == 0)
    assert seen["up[1]"] == seen["availability[1]"] == 1


def test_mistakes() -> None:
    with pytest.raises(InputError, match="environments do not interrupt tasks"):
        SchedulingEnv(preempt=True)
    with pytest.raises(InputError, match="kind is 'peer'; expected push or pull"):
        SchedulingVectorEnv(SMALL, "peer")
    with pytest.raises(InputError, match=r"no order of idle machines 'fast'; did you mean"):
        SchedulingVectorEnv(SMALL, idle="fast")
    with pytest.raises(InputError, match="horizon is 0"):
        SchedulingVectorEnv(SMALL, horizon=0)
    with pytest.raises(InputError, match="num_envs is 0"):
        SchedulingVectorEnv(SMALL, num_envs=0)
    with pytest.raises(InputError, match="batch"):
        SchedulingVectorEnv(load("Smith"))
    several = SchedulingVectorEnv(SMALL, num_envs=3)
    several.reset(seed=1)
    with pytest.raises(InputError, match=r"actions have the shape \(1,\); expected 3"):
        several.step(np.zeros(1, np.int64))
