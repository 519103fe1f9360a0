"""Policies that interrupt tasks, against known queues, exact optima, and what must always hold.

A simulated mean must lie within 4.5 standard errors of the exact one, as in ``test_theory``.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import Grid, InputError, System, allocate, load, optimum, simulate
from gridwright.experiments.markov_decision import Preemptive, evaluate
from gridwright.experiments.optimum import Best, _best
from gridwright.policies import PULL, Policy, Table, View, find, policies, policy_of
from gridwright.simulation import KINDS, Replication, preemption, replicate
from gridwright.statistics import Estimate
from gridwright.statistics.estimate import student
from gridwright.testbed import JobList
from gridwright.traces import replay

SEED = np.random.SeedSequence(3)
N_MODEL = System(
    arrivals=[0.9, 0.5], rates=[[1.0, 0.6], [0.0, 1.2]], costs=[1.0, 2.0], name="N-model"
)


def check(found: Estimate, exact: float, replications: int = 10) -> None:
    error = found.half_width / student(replications - 1)
    assert found.mean == pytest.approx(exact, abs=4.5 * error + 1e-12)
    assert found.half_width < 0.05 * exact, "too short to tell anything"


def run(system: System, policy: str | Policy, horizon: float = 50.0, **options: Any) -> Replication:
    options = {"trace": True, "interpreted": True, **options}
    return replicate(system, find(policy), horizon=horizon, seed=SEED, **options)


def test_one_machine_with_priorities() -> None:
    """M/M/1: the dear class does not notice the other one."""
    system = System(arrivals=[0.3, 0.4], rates=[[1.0], [2.0]])
    found = simulate(system, "cmu:preempt=true", 60_000, 10, warmup=1000)
    check(found.classes[1].mean_response, 0.5 / (1 - 0.2))
    residual = 0.3 + 0.4 / 4
    slow = 1 / (1 - 0.2) + residual / ((1 - 0.2) * (1 - 0.5))
    check(found.classes[0].mean_response, slow)
    check(found.classes[0].mean_waiting, slow - 1)
    check(found.mean_number, 0.2 / 0.8 + 0.3 * slow)
    check(found.utilisation[0], 0.5)
    # a slow task is interrupted by each fast one that finds no other fast one, and it
    check(found.interrupted, 60_000 * 0.4 * 0.3)
    assert found.as_json()["interrupted"] == found.interrupted.as_json()


def test_a_task_resumes_with_the_work_it_has_left() -> None:
    """M/G/1 with preemptive-resume priorities (Kleinrock 1976, section 3.5)."""
    shapes: list[Any] = ["deterministic", {"kind": "hyperexponential", "scv": 4}]
    system = System(arrivals=[0.3, 0.4], rates=[[1.0], [2.0]], execution=shapes)
    found = simulate(system, "cmu:preempt=true", 100_000, 10, warmup=1000)
    residual = 0.3 * 1 / 2 + 0.4 * 5 / 4 / 2
    check(found.classes[1].mean_response, 0.5 + 0.4 * 5 / 4 / 2 / (1 - 0.2))
    check(found.classes[0].mean_response, 1 / (1 - 0.2) + residual / ((1 - 0.2) * (1 - 0.5)))


def mm2(arrivals: float) -> float:
    """Return the mean number in an M/M/2 queue with rate 1 a machine."""
    return arrivals / (1 - arrivals**2 / 4)


def test_two_machines_with_priorities() -> None:
    """M/M/2: the dear class does not notice the other one, and all tasks are one queue."""
    system = System(arrivals=[0.7, 0.9], rates=[[1.0, 1.0], [1.0, 1.0]], costs=[2.0, 1.0])
    found = simulate(system, "cmu:preempt=true", 60_000, 10, warmup=1000)
    check(found.classes[0].mean_response, mm2(0.7) / 0.7)
    check(found.mean_number, mm2(1.6))
    check(found.figure("mean_cost"), mm2(1.6) + mm2(0.7))


def look_up(machine: int, view: View, table: Any = Table([-1]), most: int = 0) -> int:  # noqa: B008
    """Look up what a machine serves, by the number of tasks of each class in the system."""
    index = 0
    for i in range(len(view.classes)):
        there = view.classes[i].waiting
        for j in range(len(view.machines)):
            there += view.machines[j].serving == i
        index = index * (most + 1) + min(there, most)
    return int(np.int64(table[index * len(view.machines) + machine]))


def best_of_all(system: System) -> tuple[Best, Policy]:
    """Return the least mean cost of any policy, and the policy that has it, as a table."""
    found, (model, (actions,)) = _best(Preemptive, system, allocate(system).load, 1e-5)
    assert found is not None
    classes, most = len(system.classes), found.tasks
    counts = np.indices((most + 1,) * classes).reshape(classes, -1)
    table = Table(model.serving[actions[model.queues.nearest(counts)]].ravel())
    return found, policy_of(look_up, PULL, preempt=True)(table=table, most=most)


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        N_MODEL,
        load("2.B"),
        System(arrivals=[0.7, 0.5], rates=[[1.0, 0.4, 0.2], [0.3, 0.9, 0.5]]),
        System(arrivals=[0.3, 0.2, 0.4], rates=[[1.0, 0.3], [0.2, 1.0], [1.5, 0.7]]),
    ],
    ids=["N-model", "2.B", "2 x 3", "3 x 2"],
)
def test_the_best_table_is_as_good_as_the_optimum(system: System) -> None:
    exact, policy = best_of_all(system)
    assert exact.error < 1e-4 * exact.mean_cost
    horizon = 60_000 / system.arrival_rates.sum()
    found = simulate(system, policy, horizon, 10, warmup=horizon / 50)
    check(found.figure("mean_cost"), exact.mean_cost)
    assert found.refusals == 0
    assert found.interrupted.mean > 0


def test_the_c_mu_rule_on_the_n_model() -> None:
    """Machine 2 serves class 2 whenever it can, else it helps with class 1: exactly this chain."""
    model = Preemptive(N_MODEL.arrival_rates, np.array(N_MODEL.nominal), 100, N_MODEL.holding_costs)
    one, two = model.queues.counts
    machines = np.where(one > 0, 0, -1), np.where(two > 0, 1, np.where(one > 1, 0, -1))
    actions = 3 * (machines[0] + 1) + machines[1] + 1
    exact, *_ = evaluate(model.chain((actions,)), model.cost, 2, np.zeros((len(model.cost), 2)))
    found = optimum(N_MODEL, ["cmu", "cmu:preempt=true"], 40_000, 10)
    kept, interrupting = found.policies
    check(interrupting.mean_cost, exact)
    assert found.preemptive is not None
    assert found.pull is not None
    assert exact > found.preemptive.mean_cost
    assert kept.gap == pytest.approx(kept.mean_cost.mean / found.pull.mean_cost - 1)
    assert interrupting.gap == pytest.approx(
        interrupting.mean_cost.mean / found.preemptive.mean_cost - 1
    )


def spells(found: Replication) -> dict[int, Any]:
    """Return when each task ran, from and until, where, and how that ended; check the order."""
    running: dict[int, tuple[float, int]] = {}
    busy: dict[int, int] = {}
    made: dict[int, Any] = {}
    for event in found.trace:
        kind, task, machine = KINDS[event.kind], int(event.task), int(event.machine)
        if kind == "arrival":
            made[task] = []
        elif kind == "start":
            assert task not in running
            assert machine not in busy
            assert not made[task] or made[task][-1][3] != "finish"
            running[task], busy[machine] = (float(event.time), machine), task
        elif kind in ("finish", "interruption", "loss"):
            begun, where = running.pop(task)
            assert busy.pop(where) == task
            assert where == machine
            made[task].append((begun, float(event.time), where, kind))
    return made


def test_what_is_left_is_a_share_of_the_task() -> None:
    """A fifth is done on the slow machine when the fast one is free, and takes over the rest."""
    system = System(
        arrivals=[1 / 0.6],
        rates=[[0.5, 1.0]],
        interarrival="deterministic",
        execution="deterministic",
    )
    first, second, third, *_ = spells(run(system, "fcfs:preempt=true", 4.0)).values()
    assert first == [(0.6, pytest.approx(1.6), 1, "finish")]
    assert second == [
        (1.2, pytest.approx(1.6), 0, "interruption"),
        (pytest.approx(1.6), pytest.approx(2.4), 1, "finish"),
    ]
    assert third == [(pytest.approx(1.8), pytest.approx(3.8), 0, "finish")], "it need not move"


POLICIES = [
    name
    for name, each in policies().items()
    if each.kind is PULL and each.is_shipped and "preempt" in each.parameters
]


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Draw a system whose machines may fail."""
    classes, machines = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    speed = st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0])
    rates = [[draw(speed) for _ in range(machines)] for _ in range(classes)]
    for row in rates:
        row[0] = row[0] or 1.0
    rates[0] = [rate or 2.0 for rate in rates[0]]
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["failures"] = {"mean_uptime": 5, "mean_repair": 1}
    if draw(st.booleans()):
        more["costs"] = [draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in rates]
    shape = draw(st.sampled_from(["exponential", "deterministic", {"kind": "erlang", "stages": 2}]))
    arrivals = [draw(st.sampled_from([0.2, 0.6, 1.2])) for _ in rates]
    return System(arrivals=arrivals, rates=rates, execution=shape, **more)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(system=systems(), policy=st.sampled_from(POLICIES))
def test_no_task_is_lost_and_all_work_is_done(system: System, policy: str) -> None:
    found, kept = (run(system, name) for name in (f"{policy}:preempt=true", policy))
    assert found.refusals == 0
    whole = spells(kept)
    done, classes, arrived = (np.zeros(system.shape[k]) for k in (1, 0, 0))
    arrivals = found.trace[found.trace["kind"] == KINDS.index("arrival")]
    inside, interrupted = 0.0, 0
    for (task, parts), event in zip(spells(found).items(), arrivals, strict=True):
        i = int(event.task_class)
        assert task == event.task
        assert all(one[1] <= other[0] for one, other in pairwise(parts))
        is_done = bool(parts) and parts[-1][3] == "finish"
        arrived[i] += 1
        classes[i] += is_done
        end = parts[-1][1] if is_done else 50.0
        inside += end - event.time
        interrupted += sum(part[3] == "interruption" for part in parts)
        for begun, ended, machine, _ in parts:
            done[machine] += ended - begun
        if system.failures is None and is_done:
            work = sum((ended - begun) * system.nominal[i, j] for begun, ended, j, _ in parts)
            for begun, ended, j, _ in whole[task]:
                assert work == pytest.approx((ended - begun) * system.nominal[i, j], abs=1e-9)
    assert found.interrupted == interrupted
    assert found.mean_number * 50 == pytest.approx(inside, abs=1e-6)
    assert (found.throughput * 50).round(6).tolist() == classes.tolist()
    assert (found.class_number * 50).sum() == pytest.approx(inside, abs=1e-6)
    unfinished = found.utilisation * 50 - done  # tasks that run at the end
    assert (unfinished > -1e-9).all()
    assert (arrived >= classes).all()


def test_a_compiled_run_is_the_interpreted_one() -> None:
    system = N_MODEL.replace(failures={"mean_uptime": 6, "mean_repair": 2})
    one, other = (
        run(system, "lpas_dg:preempt=true", 200.0, interpreted=interpreted)
        for interpreted in (True, False)
    )
    assert (one.trace == other.trace).all()
    assert one.interrupted == other.interrupted > 0


def test_nothing_changes_where_nothing_can_be_interrupted() -> None:
    """One machine and one class: failures, changing arrivals and speeds, and percentiles."""
    system = System(
        arrivals=[0.5],
        rates=[[1.0]],
        failures={"mean_uptime": 10, "mean_repair": 2},
        availability=[{"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}],
        profile={"durations": [5, 5], "factors": [0.5, 1.5]},
        execution={"kind": "erlang", "stages": 2},
    )
    one, other = (
        run(system, policy, 500.0, trace=False, tails=True)
        for policy in ("fcfs:preempt=true", "fcfs")
    )
    assert one.interrupted == 0
    assert one.lost > 10
    for name in ("mean_number", "response", "waiting", "utilisation", "responses", "lost"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("cmu:preempt=yes", "cmu: preempt is 'yes'; expected true or false"),
        ("cmu:idle=fastest:preempt=true", "with preempt=true all machines are asked; leave out"),
        ("fluid:preempt=true", "fluid has no parameter 'preempt'"),
        ("mct:preempt=true", "mct has no parameter 'preempt'"),
    ],
)
def test_a_wrong_parameter_is_refused(policy: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find(policy)


def test_delays_are_refused() -> None:
    system = System(arrivals=[0.5], rates=[[1.0]], delays={"before": 0.1})
    with pytest.raises(InputError, match=r"fcfs:preempt=true does: simulate fcfs:preempt=false"):
        simulate(system, "fcfs:preempt=true", 100, 2)


def test_real_and_recorded_jobs_are_not_interrupted(tmp_path: Path) -> None:
    words = "real and recorded jobs end where they began; use cmu:preempt=false$"
    with pytest.raises(InputError, match=words):
        Grid("cmu:preempt=true", 1, journal=tmp_path / "grid.sqlite")
    with pytest.raises(InputError, match=words):
        replay(N_MODEL, JobList([0.0], [0], [1.0]), "cmu:preempt=true")
    pytest.importorskip("distributed")
    from gridwright.dask import Placement

    with pytest.raises(InputError, match=words):
        Placement("cmu:preempt=true")


def test_sorted_machines_decide_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many machines are sorted before they lay their tasks down, which changes nothing else."""
    system = System(
        arrivals=[2.0, 2.0],
        rates=[[2.0, 1.0, 0.5], [1.0, 1.0, 2.0]],
        counts=[1, 2, 1],
        failures={"mean_uptime": 20, "mean_repair": 2},
    )
    found = []
    for many in (1, 100):
        monkeypatch.setattr(preemption, "MANY", many)
        for policy in ("cmu:preempt=true", "fcfs:preempt=true"):
            seed = np.random.SeedSequence(4)
            run = replicate(
                system, find(policy), horizon=15.0, seed=seed, trace=True, interpreted=True
            )
            assert run.interrupted > 5
            found.append(run.trace)
    for k in (0, 1):
        assert (found[k] == found[k + 2]).all()


@pytest.mark.slow
def test_many_machines_are_one_queue() -> None:
    """Alike machines that may interrupt tasks are an M/M/c queue, whichever task they run."""
    machines, load = 130, 115.0
    system = System(arrivals=[65.0, 50.0], rates=[[1.0], [1.0]], counts=[machines])
    blocked = 1.0
    for c in range(1, machines + 1):  # Erlang's recursion
        blocked = load * blocked / (c + load * blocked)
    waits = blocked / (1 - load / machines * (1 - blocked))
    exact = load + waits * load / (machines - load)
    result = simulate(system, "cmu:preempt=true", 40, 30, warmup=20)
    error = result.mean_number.half_width / student(29)
    assert result.mean_number.mean == pytest.approx(exact, abs=4.5 * error)
