"""Decentralised systems: against theory, against central ones, and what machines know."""

from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, load, peer, simulate
from gridwright.allocation import Situation
from gridwright.policies import PEER, find, policies, policy_of
from gridwright.policies.choice import Tie, least_completion
from gridwright.simulation import KINDS, Replication, replicate
from gridwright.simulation.peer_state import DIARY
from gridwright.statistics.estimate import student

SEED = np.random.SeedSequence(11)
PEERS = [name for name, policy in policies().items() if policy.kind is PEER and policy.is_shipped]
CHANGES = {
    "mean_interval": 2.0,
    "arrivals": [1, 1.5],
    "rates": [0.8, 1.1],
    "availability": [1, 0.7],
}
SMALL = System(
    name="small",
    arrivals=[[1, 0.5, 0], [0, 1, 1]],
    rates=[[3, 0, 2], [1, 2, 4]],
    availability=[1, 0.7, 1],
    changes=CHANGES,
)


def same(one: Replication, two: Replication) -> None:
    for field in one._fields:
        if field == "more":
            for key in one.more:
                assert np.array_equal(one.more[key], two.more[key]), key
        elif field == "trace":
            assert (one.trace == two.trace).all()
        elif field != "seconds":
            assert np.array_equal(getattr(one, field), getattr(two, field), equal_nan=True), field


@pytest.mark.parametrize("policy", PEERS)
def test_interpreted_and_compiled_runs_are_the_same(policy: str) -> None:
    options: dict[str, Any] = {"horizon": 60.0, "warmup": 5.0, "seed": SEED, "trace": True}
    compiled = replicate(SMALL, find(policy), **options)
    assert compiled.more["changes"] > 10
    assert compiled.refusals == 0
    same(compiled, replicate(SMALL, find(policy), interpreted=True, **options))


def test_the_number_of_threads_does_not_matter() -> None:
    runs = [simulate(SMALL, "lpas_dec", 200, 4, seed=3, threads=n, trace=True) for n in (1, 2)]
    for one, two in zip(runs[0].replications, runs[1].replications, strict=True):
        same(one, two)


@pytest.mark.parametrize("pair", [("lpas_dec", "lpas"), ("mct_dec", "mct"), ("kpb_dec", "kpb")])
def test_where_nothing_changes_it_is_the_central_policy_to_the_last_bit(
    pair: tuple[str, str],
) -> None:
    published = load("4.A")
    system = published.replace(changes=None)
    central = system.replace(arrivals=published.arrival_rates)
    one, two = (
        replicate(where, find(name), horizon=500.0, warmup=50.0, seed=SEED, trace=True)
        for where, name in zip((system, central), pair, strict=True)
    )
    assert one.tasks > 20_000
    for field in ("throughput", "utilisation", "number"):
        assert np.array_equal(getattr(one, field), getattr(two, field)), field
    for field in ("mean_number", "response", "queueing"):  # summed up in another order
        assert getattr(one, field) == pytest.approx(getattr(two, field), rel=1e-12), field
    for kind in ("start", "finish"):
        mine, theirs = (
            np.sort(found[(found["kind"] == KINDS.index(kind)) & (found["time"] < 500.0)])
            for found in (one.trace, two.trace)
        )
        assert len(mine) > 20_000
        assert (mine == theirs).all()


@pytest.mark.parametrize("policy", PEERS)
def test_one_machine_alone(policy: str) -> None:
    name = f"{policy}:k=1" if policy == "kpb_dec" else policy
    result = simulate(System(arrivals=[[0.7]], rates=[[1.0]]), name, 4000, 20, seed=7, warmup=400)
    error = result.mean_number.half_width / student(19)
    assert result.mean_number.mean == pytest.approx(0.7 / 0.3, abs=4.5 * error)
    assert result.messages.mean == (2 * result.tasks / 20 if policy == "kpb_dec" else 0)


def test_a_rate_that_changes_against_an_exact_chain() -> None:
    """A task keeps the rate that was in force when it began."""
    factors, often, arrival, most = (0.7, 2.0), 0.5, 0.6, 80
    states = [(n, now, then) for n in range(most) for now in (0, 1) for then in (0, 1)]
    place = {state: k for k, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    for n, now, then in states:
        moves = [((n, 1 - now, then if n else 1 - now), often / 2)]
        if n + 1 < most:
            moves.append(((n + 1, now, then if n else now), arrival))
        if n:
            moves.append(((n - 1, now, now), factors[then]))
        for target, rate in moves:
            generator[place[n, now, then], place[target]] += rate
            generator[place[n, now, then], place[n, now, then]] -= rate
    # with nobody there, "then" is what is in force: the other states are never entered
    reached = [k for k, (n, now, then) in enumerate(states) if n or now == then]
    balance = generator[np.ix_(reached, reached)].T
    balance[0] = 1.0
    shares = np.linalg.solve(balance, np.eye(len(reached))[0])
    exact = float(sum(shares[k] * states[place][0] for k, place in enumerate(reached)))
    changes = {"mean_interval": 1 / often, "rates": factors}
    system = System(arrivals=[[arrival]], rates=[[1.0]], changes=changes)
    found = simulate(system, "mct_dec", 6000, 20, seed=5, warmup=600).mean_number
    assert found.mean == pytest.approx(exact, abs=4.5 * found.half_width / student(19))
    assert found.half_width < 0.1 * exact


def test_the_last_slice_ends_with_the_horizon() -> None:
    """Those who are still there at the end are counted, whatever the horizon rounds to."""
    system = System(arrivals=[[1.75, 2.0]], rates=[[1.0, 1.5]])
    runs = {
        horizon: replicate(system, find("mct_dec"), horizon=horizon, seed=SEED)
        for horizon in (999.8, 999.9, 1000.0)
    }
    for horizon, run in runs.items():
        assert run.times[-1] == horizon
        assert run.mean_number == pytest.approx(runs[1000.0].mean_number, rel=0.001)


def test_arrival_rates_that_change_have_their_mean() -> None:
    system = System(
        arrivals=[[2.0, 1.0]],
        rates=[[9.0, 9.0]],
        changes={"mean_interval": 1, "arrivals": [0.5, 2]},
    )
    result = simulate(system, "mct_dec", 2000, 10, seed=3)
    arrived = result.tasks / 10 / 2000
    assert arrived == pytest.approx(3 * 1.25, rel=0.03)
    found = result.replications[0]
    assert found.more["changes"] == pytest.approx(2000, rel=0.1)


def test_littles_law_holds_through_changes() -> None:
    """The sojourns cut at the horizon sum to the integral of the number, whatever was corrected."""
    run = replicate(SMALL, find("lpas_dec"), horizon=400.0, seed=SEED, trace=True)
    events = run.trace
    born = {e.task: e.time for e in events if KINDS[e.kind] == "arrival"}
    gone = {e.task: e.time for e in events if KINDS[e.kind] == "finish"}
    stayed = sum(gone.get(task, 400.0) - time for task, time in born.items())
    assert run.mean_number * 400.0 == pytest.approx(stayed, rel=1e-9)
    begun = {e.task: e.time for e in events if KINDS[e.kind] == "start"}
    busy = sum(gone.get(task, 400.0) - time for task, time in begun.items())
    assert run.utilisation.sum() * 400.0 == pytest.approx(busy, rel=1e-9)


def test_the_log_tells_where_tasks_arrive_and_one_machine_serves_one_at_a_time() -> None:
    events = replicate(SMALL, find("mct_dec"), horizon=200.0, seed=SEED, trace=True).trace
    homes = events[events["kind"] == KINDS.index("arrival")]
    assert set(homes[homes["task_class"] == 0]["machine"]) == {0, 1}
    assert set(homes[homes["task_class"] == 1]["machine"]) == {1, 2}
    for machine in range(3):
        mine = events[(events["machine"] == machine) & (np.isin(events["kind"], (2, 3)))]
        mine = mine[np.argsort(mine["time"], kind="stable")]
        kinds = mine["kind"].tolist()
        assert len(kinds) > 50
        assert kinds[:-1:2] == [2] * len(kinds[:-1:2])
        assert kinds[1::2] == [3] * len(kinds[1::2])


def test_messages_by_both_rules() -> None:
    system = load("4.A")
    found = {
        name: simulate(system, name, 300, 4, seed=2).figures
        for name in ("mct_dec", "kpb_dec", "kpb_dec:k=3", "lpas_dec")
    }
    assert found["mct_dec"]["messages_per_task"].mean == 12
    assert found["kpb_dec"]["messages_per_task"].mean == 4
    assert found["kpb_dec:k=3"]["messages_per_task"].mean == 6
    assert found["kpb_dec"]["like_for_like"].mean == pytest.approx(12 * (1 - 0.723), rel=0.02)
    lpas = found["lpas_dec"]
    assert lpas["messages_per_task"] == lpas["like_for_like"]
    assert lpas["messages_per_task"].mean == pytest.approx(12 * (1 - 0.652), rel=0.02)


def test_who_asks_more_knows_more() -> None:
    system = load("4.A")
    ages = [simulate(system, p, 300, 4, seed=2).figures["view_age"] for p in ("mct_dec", "kpb_dec")]
    assert ages[0].high < ages[1].low
    one = simulate(system, "lpas_dec", 300, 1, seed=2).replications[0]
    assert one.more["view_ages"].shape[1] == 7
    assert 0 <= one.more["disagreement"] < 0.2


@peer
def stay_at_home(task_class: int, home: int, view: Any) -> int:
    """Keep every task where it arrives (nobody)."""
    return home


@peer
def nowhere(task_class: int, home: int, view: Any) -> int:
    """Give an impossible answer (nobody)."""
    return 99


def test_a_policy_that_stays_at_home_gives_queues_of_their_own() -> None:
    system = System(arrivals=[[0.5, 0.8]], rates=[[1.0, 1.0]])
    result = simulate(system, stay_at_home, 4000, 20, seed=9, warmup=400)
    error = result.mean_number.half_width / student(19)
    assert result.mean_number.mean == pytest.approx(0.5 / 0.5 + 0.8 / 0.2, abs=4.5 * error)


def test_impossible_answers_are_counted_and_the_task_stays() -> None:
    system = System(arrivals=[[0.5, 0.8]], rates=[[1.0, 1.0]])
    lost, kept = (
        replicate(system, policy, horizon=300.0, seed=SEED) for policy in (nowhere, stay_at_home)
    )
    assert lost.refusals == lost.tasks
    assert lost.mean_number == kept.mean_number


def test_an_answer_of_none_is_not_impossible() -> None:
    """All machines that the plan permits are down: the task stays, and nothing is refused."""
    system = System(
        arrivals=[[0.0, 0.5]],
        rates=[[9.0, 1.0]],
        failures={"mean_uptime": [50.0, float("inf")], "mean_repair": 50.0},
    )
    fixed = policy_of(completes_first, PEER, plan=only_first)
    run = replicate(system, fixed, horizon=1000.0, seed=SEED, trace=True)
    sent = run.trace[run.trace.kind == KINDS.index("assignment")].machine
    assert min(np.count_nonzero(sent == j) for j in (0, 1)) > 100
    assert run.refusals == 0


def only_first(situation: Situation) -> np.ndarray:
    """Permit the first machine."""
    plan = np.zeros(situation.rates.shape)
    plan[:, 0] = 1.0
    return plan


def completes_first(task_class: int, home: int, view: Any) -> int:
    """Take the machine that finishes first, of those that the plan permits (nobody)."""
    return least_completion(task_class, view, Tie.lowest)


def to_the_first(task_class: int, home: int, view: Any) -> int:
    """Take the first machine that the plan permits (nobody)."""
    return int(np.argmax(view.plan[task_class] > 0))


def test_a_planner_in_plain_python() -> None:
    system = System(arrivals=[[1, 1, 1]], rates=[[5.0, 5, 5]], changes=CHANGES)
    policy = policy_of(to_the_first, PEER, plan=only_first)
    run = replicate(system, policy, horizon=50.0, seed=SEED, interpreted=True)
    assert run.replans > 3
    assert run.utilisation[1] == run.utilisation[2] == 0


def later_nothing(situation: Situation) -> np.ndarray:
    """Permit all, and with another machine's share nothing that is a number."""
    return np.full(situation.rates.shape, 1.0 if situation.availability.min() == 1 else np.nan)


def test_a_plan_that_is_none_is_refused() -> None:
    system = System(arrivals=[[1, 1, 1]], rates=[[5.0, 5, 5]], changes=CHANGES)
    policy = policy_of(to_the_first, PEER, plan=later_nothing)
    with pytest.raises(InputError, match="to_the_first: the plan is array"):
        replicate(system, policy, horizon=50.0, seed=SEED, interpreted=True)


def test_errors_of_estimates_stay_or_are_drawn_anew() -> None:
    wrong = {"inaccuracy": {"arrivals": 0.5, "rates": 0.5}}
    system = load("4.A").replace(assumed=wrong)
    fixed = simulate(system, "lpas_dec", 200, 4, seed=1)
    anew = system.replace(changes={**dict(system.changes or ()), "redraw_errors": True})
    redrawn = simulate(anew, "lpas_dec", 200, 4, seed=1)
    exact = simulate(load("4.A"), "lpas_dec", 200, 4, seed=1)
    assert len({str(r.mean_number.mean) for r in (fixed, redrawn, exact)}) == 3
    assert fixed.tasks == exact.tasks


def test_no_field_hides_behind_an_attribute_of_its_record() -> None:
    assert not set(DIARY.names or ()) & set(dir(np.record))


@pytest.mark.parametrize(
    ("system", "policy", "message"),
    [
        (
            "2.B",
            "lpas_dec",
            "2.B has no arrivals at machines; expected arrivals as a matrix",
        ),
        (
            "4.A",
            "lpas",
            "rates that change ([changes]), for decentralised policies only",
        ),
        (
            "4.A",
            "fcfs",
            "rates that change ([changes]), for decentralised policies only",
        ),
        ("4.A", "kpb_dec:k=8", "k is 8; expected from 1 to 7"),
    ],
)
def test_what_does_not_suit_is_refused(system: str, policy: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        simulate(system, policy, 10, 2)
    assert message in str(error.value)


def test_further_systems_that_do_not_suit() -> None:
    chain = {"states": [1, 0.5], "transition": [[0.5, 0.5], [0.5, 0.5]], "step": 1}
    with pytest.raises(InputError, match="as a chain and in"):
        simulate(SMALL.replace(availability=[1, 0.7, chain]), "mct_dec", 10, 2)
    doubtful = SMALL.replace(assumed={"inaccuracy": {"availability": 0.1}})
    with pytest.raises(InputError, match="inaccuracy of arrivals and rates only"):
        simulate(doubtful, "mct_dec", 10, 2)
    with pytest.raises(InputError, match="rates that change"):
        simulate(SMALL.replace(arrivals=[1, 1]), "mct", 10, 2)


FAILING = System(
    name="failing",
    arrivals=[[1, 0.5, 0], [0, 1, 1]],
    rates=[[3, 0, 2], [1, 2, 4]],
    availability=[1, 0.7, {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}],
    failures={"mean_uptime": 10, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}},
    assumed={"inaccuracy": {"rates": 0.1}},
)


@pytest.mark.parametrize("policy", PEERS)
def test_machines_that_fail_and_change_lose_no_task(policy: str) -> None:
    options: dict[str, Any] = {"horizon": 200.0, "warmup": 5.0, "seed": SEED, "trace": True}
    found = replicate(FAILING, find(policy), **options)
    same(found, replicate(FAILING, find(policy), interpreted=True, **options))
    counts = {kind: int((found.trace.kind == k).sum()) for k, kind in enumerate(KINDS)}
    assert min(counts["failure"], counts["repair"], counts["loss"], counts["availability"]) > 5
    assert counts["loss"] == found.lost
    assert counts["arrival"] == found.tasks
    assert counts["arrival"] - counts["finish"] == found.number[-1]
    down = np.zeros(3, dtype=bool)
    log = found.trace[found.trace.time.argsort(kind="stable")]
    for event in log[np.isin(log.kind, [KINDS.index("failure"), KINDS.index("repair")])]:
        assert down[event.machine] == (event.kind == KINDS.index("repair"))
        down[event.machine] = ~down[event.machine]


@pytest.mark.parametrize("parts", ["failures", "availability"])
def test_one_machine_alone_is_as_in_a_central_system(parts: str) -> None:
    """It has nothing to decide, and its tasks wait for it, where they arrive or centrally."""
    chain = {"states": [1, 0.3], "transition": [[0.8, 0.2], [0.4, 0.6]], "step": 2}
    more: dict[str, Any] = {
        "failures": {"failures": {"mean_uptime": 10.0, "mean_repair": 2.0}},
        "availability": {"availability": [chain]},
    }
    own = System(arrivals=[[0.4]], rates=[[1.0]], **more[parts])
    central = System(arrivals=[0.4], rates=[[1.0]], **more[parts])
    peers, one = simulate(own, "mct_dec", 5000, 12), simulate(central, "mct", 5000, 12, seed=2)
    for name in ("mean_number", "mean_response"):
        mine, theirs = peers.figure(name), one.figure(name)
        spread = np.hypot(mine.half_width, theirs.half_width)
        assert abs(mine.mean - theirs.mean) < 2 * spread
    assert peers.utilisation[0].mean == pytest.approx(one.utilisation[0].mean, rel=0.05)


def test_a_machine_that_does_not_answer_gets_no_tasks() -> None:
    """Machine 1 is fast and often down: whoever asks it then sends the task elsewhere."""
    system = System(
        arrivals=[[0.0, 0.5, 0.5]],
        rates=[[9.0, 1.0, 1.0]],
        failures={"mean_uptime": [50.0, float("inf"), float("inf")], "mean_repair": 50.0},
    )
    run = replicate(system, find("mct_dec"), horizon=2000.0, seed=SEED, trace=True)
    log = run.trace[run.trace.time.argsort(kind="stable")]
    up, sent = True, 0
    for event in log:
        if event.machine == 0 and event.kind in (KINDS.index("failure"), KINDS.index("repair")):
            up = event.kind == KINDS.index("repair")
        elif event.kind == KINDS.index("assignment"):
            assert up or event.machine != 0
            sent += event.machine == 0
    assert 500 < sent < run.tasks - 500
    assert run.refusals == 0
