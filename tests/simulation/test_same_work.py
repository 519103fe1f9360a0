"""Tasks that are lost and keep their work: the same work each time, and the mean that theory gives.

The exact mean is that of one machine with exponential up-times: a task of work S, which fails with
rate f while it runs, needs e^{fS} attempts on average.
"""

from math import exp
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System
from gridwright.policies import find
from gridwright.simulation import KINDS, Replication, check_system, replicate
from gridwright.statistics.estimate import estimate, student

SEED = np.random.SeedSequence(4)
FAILURES = {"mean_uptime": 2, "mean_repair": 0.5, "same_work": True}
UNEQUAL = System(
    arrivals=[1, 2],
    rates=[[4, 1, 2], [2, 3, 0]],
    availability=[1, 0.5, 0.8],
    execution=["exponential", {"kind": "uniform", "low": 0, "high": 1}],
    failures=FAILURES,
)
AT_MACHINES = UNEQUAL.replace(arrivals=[[0.5, 0.5, 0], [0, 1, 1]])
Spell = tuple[float, float, int, str]


def spells(run: Replication) -> dict[int, list[Spell]]:
    """Return when each task was on which machine, and how that ended."""
    found: dict[int, list[Spell]] = {}
    begun: dict[int, tuple[float, int]] = {}
    for event in run.trace[run.trace.time.argsort(kind="stable")]:
        kind, task = KINDS[event.kind], int(event.task)
        if kind == "start":
            begun[task] = float(event.time), int(event.machine)
        elif kind in ("finish", "loss", "interruption") and task in begun:
            start, machine = begun.pop(task)
            found.setdefault(task, []).append((start, float(event.time), machine, kind))
    return found


def works(system: System, run: Replication, task_class: dict[int, int]) -> dict[int, float]:
    """Return the work that each finished task did after it was last lost."""
    found, after = {}, 0.0 if system.delays is None else float(np.max(system.delays.after))
    for task, parts in spells(run).items():
        if parts[-1][3] == "finish":
            lost = [k for k, part in enumerate(parts) if part[3] == "loss"]
            rates = system.effective[task_class[task]]
            last = parts[lost[-1] + 1 :] if lost else parts
            found[task] = sum((end - after - start) * rates[j] for start, end, j, _ in last)
    return found


@pytest.mark.parametrize(
    ("system", "policy"),
    [
        (UNEQUAL, "fcfs"),
        (UNEQUAL, "mct"),
        (UNEQUAL.replace(delays={"after": 0.3, "detection": 0.2}), "mct"),
        (UNEQUAL, "lpas_dg"),
        (UNEQUAL, "cmu:preempt=true"),
        (AT_MACHINES, "mct_dec"),
    ],
)
def test_a_task_has_the_work_it_would_have_if_no_machine_failed(
    system: System, policy: str
) -> None:
    options: dict[str, Any] = {"horizon": 60.0, "seed": SEED, "trace": True}
    chosen = find(policy)
    run = replicate(system, chosen, **options)
    plain = replicate(system.replace(failures=None), chosen, **options)
    interpreted = replicate(system, chosen, interpreted=True, **options)
    assert run.trace.tobytes() == interpreted.trace.tobytes()
    arrivals = run.trace[run.trace.kind == KINDS.index("arrival")]
    classes = dict(zip(arrivals.task.tolist(), arrivals.task_class.tolist(), strict=True))
    mine, theirs = (works(system, each, classes) for each in (run, plain))
    both = sorted(mine.keys() & theirs.keys())
    assert len(both) > 100
    assert [mine[k] for k in both] == pytest.approx([theirs[k] for k in both], abs=1e-9)
    again = [k for k in both if any(part[3] == "loss" for part in spells(run)[k])]
    assert len(again) > 10
    anew = {**FAILURES, "same_work": False}
    other = works(system, replicate(system.replace(failures=anew), chosen, **options), classes)
    assert any(abs(other[k] - theirs[k]) > 0.1 for k in other.keys() & theirs.keys())


def mean_repeats(execution: Any, fails: float) -> float:
    """Return E[e^{fS}] for a work S with mean 1."""
    if execution == "deterministic":
        return exp(fails)
    if execution["kind"] == "uniform":
        return (exp(2 * fails) - 1) / (2 * fails)
    phases = zip(execution["probabilities"], execution["means"], strict=True)
    return sum(share / (1 - fails * mean) for share, mean in phases)


@pytest.mark.parametrize("policy", ["fcfs", "mct", "mct_dec"])
@pytest.mark.parametrize(
    "execution",
    [
        "deterministic",
        {"kind": "uniform", "low": 0, "high": 2},
        {"kind": "hyperexponential", "probabilities": [0.8, 0.2], "means": [0.75, 2.0]},
    ],
    ids=["deterministic", "uniform", "hyperexponential"],
)
def test_a_task_takes_as_long_as_theory_says(policy: str, execution: Any) -> None:
    """From its first start: (E[e^{fS}] − 1) (1/f + mean repair)."""
    fails, repair, replications = 0.15, 2.0, 20
    exact = (mean_repeats(execution, fails) - 1) * (1 / fails + repair)
    system = System(
        arrivals=[[0.3]] if policy == "mct_dec" else [0.3],
        rates=[[1.0]],
        execution=execution,
        failures={"mean_uptime": 1 / fails, "mean_repair": repair, "same_work": True},
    )
    means = []
    for seed in np.random.SeedSequence(9).spawn(replications):
        run = replicate(system, find(policy), horizon=4000, seed=seed, trace=True)
        done = [each for each in spells(run).values() if each[-1][3] == "finish"]
        means.append(float(np.mean([each[-1][1] - each[0][0] for each in done])))
    found = estimate(means)
    error = found.half_width / student(replications - 1)
    assert found.mean == pytest.approx(exact, abs=4.5 * error)
    assert 4.5 * error < 0.1 * exact, "too short to tell anything"


def test_a_push_policy_refuses_what_it_cannot_reckon() -> None:
    chain = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}
    system = UNEQUAL.replace(availability=[1, 1, chain], delays={"after": 0.1})
    with pytest.raises(InputError, match=r"same_work, .* for pull policies only.* mct is a push"):
        check_system(system, find("mct"))
    check_system(system, find("fcfs"))
    check_system(system.replace(delays={"before": 0.1}), find("mct"))


def test_it_is_yes_or_no() -> None:
    with pytest.raises(InputError, match=r"\[failures\] same_work"):
        System(arrivals=[1], rates=[[2]], failures={**FAILURES, "same_work": "yes"})
    assert "same_work = true" in UNEQUAL.to_toml()
    assert "same_work" not in UNEQUAL.replace(failures={**FAILURES, "same_work": False}).to_toml()
