"""What the engines promise: bit-identity, reproducibility, common random numbers, bookkeeping."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import (
    Delays,
    InputError,
    System,
    compare,
    load,
    pull,
    push,
    simulate,
)
from gridwright.policies import PLANNERS, View, find, policies
from gridwright.policies.view import CLASS, MACHINE
from gridwright.simulation import KINDS, Replication, replicate
from gridwright.simulation.central import Central
from gridwright.simulation.central_setup import POOL
from gridwright.simulation.central_state import COUNT, SERVER, STREAM, TICKET
from gridwright.simulation.driver import Conditions, drive, slice_ends
from gridwright.simulation.event_log import EVENT, FINISH, LOSE
from gridwright.simulation.interrupts import SLICE
from gridwright.simulation.sampling import SHAPE

SEED = np.random.SeedSequence(11)
SHIPPED = [n for n, policy in policies().items() if policy.kind.is_central and policy.is_shipped]
FAILING = System(
    name="failing",
    arrivals=[3, 4],
    rates=[[4, 1, 2], [2, 3, 0]],
    counts=[1, 2, 1],
    availability=[1, 0.5, {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}],
    failures={"mean_uptime": 10, "mean_repair": 2, "repair": {"kind": "gamma", "shape": 2}},
    execution=[{"kind": "hyperexponential", "scv": 2}, "exponential"],
    assumed={"inaccuracy": {"availability": 0.3, "rates": 0.1, "arrivals": 0.1}},
)


def same(first: Replication, second: Replication) -> None:
    """Check that two replications are the same to the last bit, time spent aside."""
    for name, one, two in zip(Replication._fields, first, second, strict=True):
        if name == "trace" and one is not None:
            assert one.tobytes() == two.tobytes()
        elif name == "more":
            assert dict(one) == dict(two) == {}
        elif name not in ("seconds", "trace"):
            assert np.array_equal(one, two, equal_nan=True), name


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("system", [load("2.D"), FAILING], ids=["2.D", "failing"])
def test_interpreted_and_compiled_runs_are_bit_identical(name: str, system: System) -> None:
    options: dict[str, Any] = {"horizon": 15.0, "warmup": 3.0, "seed": SEED, "trace": True}
    policy = find(name)
    compiled = replicate(system, policy, **options)
    assert compiled.tasks > 80
    assert compiled.refusals == 0
    same(compiled, replicate(system, policy, interpreted=True, **options))


@pytest.mark.parametrize(
    "policy",
    [
        *("lpas:tie=random", "kpb:percent=40"),
        *(f"lpas_dg:planner={each}" for each in ("interior", "dantzig", "dual")),
    ],
)
def test_parameters_change_nothing_of_that(policy: str) -> None:
    options: dict[str, Any] = {"horizon": 10.0, "seed": SEED}
    compiled = replicate(FAILING, find(policy), **options)
    same(compiled, replicate(FAILING, find(policy), interpreted=True, **options))


@pytest.mark.parametrize("policy", ["lpas:tie=random", "lpas_dg"])
def test_philox_is_bit_identical_in_both_worlds_too(policy: str) -> None:
    options: dict[str, Any] = {"horizon": 10.0, "seed": SEED, "trace": True, "rng": "philox"}
    compiled = replicate(FAILING, find(policy), **options)
    same(compiled, replicate(FAILING, find(policy), interpreted=True, **options))
    other = replicate(FAILING, find(policy), **{**options, "rng": "pcg64"})
    assert compiled.trace.tobytes() != other.trace.tobytes()


def test_philox_gives_common_random_numbers_and_the_same_means() -> None:
    philox = compare("2.B", ["mct", "lpas"], 3000, 6, rng="philox")
    default = compare("2.B", ["mct", "lpas"], 3000, 6, seed=2)
    for one, two in zip(philox.results, default.results, strict=True):
        gap = one.mean_number.mean - two.mean_number.mean
        assert abs(gap) < 2 * (one.mean_number.half_width + two.mean_number.half_width)
    first, second = (r.replications[0].tasks for r in philox.results)
    assert first == second


@pytest.mark.parametrize(
    ("system", "policy", "rng", "words"),
    [
        ("2.B", "mct", "philo", "no random generator 'philo'; did you mean 'philox'?"),
        ("Smith", "mm", "philox", "mm is a batch policy, which cannot use philox"),
        ("Wisnesky:16", "chain_mct", "philox", "chain_mct is a chain policy, which cannot use"),
    ],
)
def test_a_generator_that_cannot_be_used_is_refused(
    system: str, policy: str, rng: str, words: str
) -> None:
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        simulate(system, policy, 10, 1, rng=rng)


@pytest.mark.parametrize("policy", ["mct", "lpas_dg"])
def test_the_number_of_threads_does_not_matter(policy: str) -> None:
    one, two = (
        simulate(FAILING, policy, 200, 6, seed=3, threads=threads, trace=True) for threads in (1, 2)
    )
    for first, second in zip(one.replications, two.replications, strict=True):
        same(first, second)


def test_more_replications_begin_with_the_same_ones() -> None:
    few, many = (simulate("2.B", "lpas", 50, count, seed=4) for count in (2, 5))
    for first, second in zip(few.replications, many.replications, strict=False):
        same(first, second)


def test_the_two_push_loops_agree() -> None:
    for policy in ("mct", "lpas_2k"):
        conditions = Conditions(300.0, SEED, 50.0)
        lazy, eager = (
            drive(Central(load("2.D"), find(policy), conditions, event_list=event_list))
            for event_list in (False, True)
        )
        assert lazy.tasks == eager.tasks
        assert lazy.responded.tolist() == eager.responded.tolist()
        for field in ("mean_number", "response", "queueing", "throughput", "utilisation", "number"):
            assert getattr(eager, field) == pytest.approx(getattr(lazy, field), rel=1e-9), field


def test_no_field_hides_behind_an_attribute_of_its_record() -> None:
    """In plain Python such a field would read as a method of the record."""
    for dtype in (COUNT, EVENT, SERVER, STREAM, TICKET, SHAPE, MACHINE, CLASS):
        assert not set(dtype.names or ()) & set(dir(np.record))


def events_of(policy: str, system: System = FAILING) -> Any:
    trace = replicate(system, find(policy), horizon=100.0, seed=SEED, trace=True).trace
    return trace[np.argsort(trace["time"], kind="stable")]


def test_policies_meet_the_same_arrivals_and_failures() -> None:
    traces = [events_of(policy) for policy in ("fcfs", "gcmu", "lpas_dg", "mct")]
    for kind in (0, 4, 5):  # arrival, failure, repair
        firsts = [trace[trace["kind"] == kind] for trace in traces]
        assert len(firsts[0]) > 20
        for other in firsts[1:]:
            assert np.array_equal(other["time"], firsts[0]["time"])
            assert np.array_equal(other["machine"], firsts[0]["machine"])


def test_policies_meet_the_same_work() -> None:
    system = System(arrivals=[1.0], rates=[[2.0]])
    works = []
    for policy in ("mct", "fcfs"):
        trace = events_of(policy, system)
        begun, ended = (trace[trace["kind"] == kind] for kind in (2, 3))
        count = min(len(begun), len(ended), 80)
        begun, ended = (
            part[np.argsort(part["task"], kind="stable")][:count] for part in (begun, ended)
        )
        works.append(ended["time"] - begun["time"])
    size = min(map(len, works))
    assert works[0][:size] == pytest.approx(works[1][:size], rel=1e-9)


def watch(view: View) -> None:
    """Count pairs, and those where the expected time is not that of the believed rate."""
    for i in range(len(view.classes)):
        for j in range(len(view.machines)):
            can = view.machines[j].up and view.rate[i, j] > 0
            view.tally[6] += 1
            view.tally[7] += view.expected[i, j] != (1 / view.rate[i, j] if can else np.inf)


def test_expected_times_are_those_of_the_believed_rates() -> None:
    """At every question, with machines that fail and beliefs that change."""

    @push(plan=PLANNERS["grouped"])
    def watchful_push(task_class, view):  # type: ignore[no-untyped-def]
        """Watch, and send a task where most of its class goes."""
        watch(view)
        return np.argmax(view.plan[task_class])

    @pull(plan=PLANNERS["grouped"])
    def watchful_pull(machine, view):  # type: ignore[no-untyped-def]
        """Watch, and take what is permitted."""
        watch(view)
        for i in range(len(view.classes)):
            if view.classes[i].waiting > 0 and view.plan[i, machine] > 0:
                return i
        return -1

    for policy in (watchful_push, watchful_pull):
        run = replicate(FAILING, policy, horizon=40.0, seed=SEED, interpreted=True)
        assert run.tally[6] > 1000
        assert run.tally[7] == 0


@pytest.mark.parametrize("policy", ["fcfs", "lpas_dg", "mct", "guided_lpas"])
def test_every_task_is_accounted_for(policy: str) -> None:
    horizon = 100.0
    run = replicate(FAILING, find(policy), horizon=horizon, seed=SEED, trace=True)
    trace = run.trace[np.argsort(run.trace["time"], kind="stable")]
    place: dict[int, str] = {}
    on: dict[int, int] = {}
    sent_to: dict[int, int] = {}
    up = [True] * FAILING.shape[1]
    area, last, inside = 0.0, 0.0, 0
    for event in trace:
        kind, task, machine = KINDS[event.kind], int(event.task), int(event.machine)
        if event.time > horizon:
            break
        area += inside * (event.time - last)
        last = event.time
        if kind == "arrival":
            assert task not in place
            place[task] = "waiting"
            inside += 1
        elif kind == "assignment":
            assert place[task] == "waiting"
            assert up[machine]
            assert FAILING.nominal[event.task_class, machine] > 0
            place[task] = "sent"
            sent_to[task] = machine
        elif kind == "start":
            assert place[task] == "sent"
            assert machine not in on
            on[machine] = task
            place[task] = "running"
        elif kind == "finish":
            assert on.pop(machine) == task
            place[task] = "done"
            inside -= 1
        elif kind == "loss":
            assert on.pop(machine) == task
            place[task] = "waiting"
        elif kind == "failure":
            up[machine] = False
            for number, where in place.items():  # what queued there comes back
                if where == "sent" and sent_to[number] == machine:
                    place[number] = "waiting"
        elif kind == "repair":
            up[machine] = True
    area += inside * (horizon - last)
    assert len(place) == run.tasks
    assert run.mean_number == pytest.approx(area / horizon, rel=1e-9)
    assert run.number[-1] == sum(where != "done" for where in place.values())
    assert run.lost == sum(trace["kind"] == 7)


def test_littles_law_holds_to_rounding() -> None:
    """The area under the number in system is the sum of the times that tasks spend there."""
    for policy in ("lpas", "gcmu"):
        run = replicate(load("2.D"), find(policy), horizon=200.0, seed=SEED, trace=True)
        born = run.trace[run.trace["kind"] == 0]
        left = run.trace[run.trace["kind"] == 3]
        ends = np.full(run.tasks, 200.0)
        ends[left["task"]] = np.minimum(left["time"], 200.0)
        sojourns = ends[born["task"]] - born["time"]
        assert run.mean_number * 200.0 == pytest.approx(sojourns.sum(), rel=1e-10)


def test_memory_follows_what_is_in_the_system() -> None:
    mechanism = Central(load("2.B"), find("lpas"), Conditions(20_000.0, SEED))
    assert mechanism.loop(20_000.0) == SLICE
    assert len(mechanism.state.ticket) == POOL
    assert mechanism.state.count[0].tasks > 200 * POOL


def test_a_queue_without_end_is_refused_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Central, "most", 4096)
    with pytest.raises(InputError, match="more than 4,096 tasks are in the system"):
        replicate(System(arrivals=[50], rates=[[1]]), find("fcfs"), horizon=200.0, seed=SEED)


def test_long_runs_have_as_many_samples_as_short_ones() -> None:
    ends = list(slice_ends(load("3.F:alpha:1"), 20_000.0, 7.0))
    assert sum(is_sample for _, is_sample in ends) == 128
    assert [end for end, _ in ends] == sorted(end for end, _ in ends)
    assert (7.0, False) in ends
    assert ends[-1] == (20_000.0, True)


def test_a_long_queue_grows_the_pool() -> None:
    run = replicate(System(arrivals=[50], rates=[[1]]), find("fcfs"), horizon=200.0, seed=SEED)
    assert run.number[-1] == pytest.approx(50 * 200, rel=0.05)
    run = replicate(System(arrivals=[50], rates=[[1]]), find("mct"), horizon=200.0, seed=SEED)
    assert run.number[-1] == pytest.approx(50 * 200, rel=0.05)


def test_a_users_distribution_is_drawn_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from gridwright import Distribution\n\n\nclass Mine(Distribution):\n    'Two values.'\n\n"
        "    @property\n    def mean(self):\n        return 2.0\n\n"
        "    @property\n    def variance(self):\n        return 1.0\n\n"
        "    def sample(self, rng, size=None):\n"
        "        return 1.0 + 2.0 * (rng.random(size) < 0.5)\n"
    )
    (tmp_path / "system.toml").write_text(
        'arrivals = [1.2]\nrates = [[2]]\nexecution = "./mine.py:Mine"\n'
        '[failures]\nmean_uptime = 1000\nmean_repair = 0.001\nuptime = "./mine.py:Mine"\n'
    )
    system = System.from_file(tmp_path / "system.toml")
    result = simulate(system, "fcfs", 8000, 10)
    exact = 0.6 + 0.36 * 1.25 / (2 * 0.4)
    assert result.mean_number.overlaps(0.97 * exact, 1.03 * exact)
    same(*(replicate(system, find("fcfs"), horizon=9000.0, seed=SEED) for _ in range(2)))


def test_a_task_is_never_sent_where_its_rate_is_0() -> None:
    for name in SHIPPED:
        result = simulate("2.Sharifnia", name, 100, 2)
        assert result.refusals == 0
        for run in result.replications:
            assert run.tasks > 5000


def test_inaccurate_availability_hurts() -> None:
    base = load("3.H:alpha1:1")
    blurred = base.replace(assumed={"inaccuracy": {"availability": 1.0}})
    exact, wrong = (simulate(s, "lpas_dg", 400, 6, seed=2) for s in (base, blurred))
    assert wrong.mean_response.low > exact.mean_response.high


def test_planners_may_be_kept_from_the_availabilities() -> None:
    """Section 3.4.4 of the thesis: knowing them matters when some are very small."""
    found = compare("3.4.4", ["lpas_dg", "lpas_dg:use_availability=false"], 400, 6)
    assert found.winner == "lpas_dg"


def test_delays_run_the_same_compiled_and_interpreted() -> None:
    delays = Delays(before=0.01, after=[0.0, 0.01, 0.02, 0.03], detection=0.5, reporting=2.0)
    options: dict[str, Any] = {"horizon": 20.0, "seed": SEED, "trace": True}
    system = FAILING.replace(delays=delays)
    for policy in ("fcfs", "lpas_dg", "mct"):
        compiled = replicate(system, find(policy), **options)
        same(compiled, replicate(system, find(policy), interpreted=True, **options))
        assert compiled.lost > 0


def test_a_failure_noticed_when_the_only_machine_is_back_changes_no_mean() -> None:
    """Nothing else could have been done with the task, and its new time is drawn alike."""
    system = System(
        arrivals=[0.5], rates=[[1.0]], failures={"mean_uptime": 10.0, "mean_repair": 2.0}
    )
    at_once, late = (
        simulate(system, "fcfs", 4000, 20, delays=Delays(detection=delay)) for delay in (0.0, 1e6)
    )
    assert late.mean_number.overlaps(at_once.mean_number.low, at_once.mean_number.high)
    assert late.lost.mean > at_once.lost.mean


def test_late_notice_costs_time() -> None:
    system = System(
        arrivals=[2.0], rates=[[2.0]], counts=[3], failures={"mean_uptime": 5.0, "mean_repair": 2.0}
    )
    means = [
        simulate(system, "fcfs", 8000, 10, delays=Delays(detection=delay)).mean_response
        for delay in (0.0, 0.5, 2.0)
    ]
    assert means[0].high < means[1].low
    assert means[1].high < means[2].low


def test_reports_of_availability_help_a_planner() -> None:
    chain = {"states": [1, 0.1], "transition": [[0.9, 0.1], [0.1, 0.9]], "step": 50}
    system = System(
        arrivals=[2.2, 2.2], rates=[[4, 3], [3, 4]], counts=[2, 2], availability=[chain, chain]
    )
    told, untold = (
        simulate(system, "lpas_dg", 6000, 6, seed=5, delays=Delays(reporting=period))
        for period in (1.0, 0.0)
    )
    assert told.replications[0].replans > 10
    assert untold.replications[0].replans == 0
    assert told.mean_response.mean < untold.mean_response.mean


def test_a_scheduler_that_sends_one_task_at_a_time_is_a_queue() -> None:
    """M/D/1: sending takes 1 at a load of 0.5, so a task waits 0.5 for it, on enough machines."""
    system = System(arrivals=[0.5], rates=[[10.0]], counts=[40], delays={"sending": 1.0})
    found = simulate(system, "fcfs", 8000, 12, warmup=100).mean_response
    assert found.overlaps(1.6, 1.6)
    assert found.half_width < 0.05


@pytest.mark.parametrize(("uptime", "noticed"), [(4.5, 7.0), (5.5, 9.0)])
def test_a_failure_is_noticed_by_the_time_out_of_a_task(uptime: float, noticed: float) -> None:
    """Tasks come at 2, 4, 6 and take 1. The one that a dead machine has times out 3 later."""
    system = System(
        arrivals=[0.5],
        rates=[[1.0]],
        interarrival="deterministic",
        execution="deterministic",
        failures={
            "mean_uptime": uptime,
            "mean_repair": 100,
            "uptime": "deterministic",
            "repair": "deterministic",
        },
        delays={"timeout": 3.0},
    )
    options: dict[str, Any] = {"horizon": 20.0, "seed": SEED, "trace": True}
    found = replicate(system, find("fcfs"), **options)
    same(found, replicate(system, find("fcfs"), interpreted=True, **options))
    lost = found.trace[found.trace["kind"] == LOSE]
    assert lost["time"].tolist() == [noticed]


def test_wrong_delays() -> None:
    for delays, message in (
        ({"before": -1.0}, r"\[delays\] before is -1"),
        ({"after": [1.0, 2.0, 3.0, 4.0, 5.0]}, r"\[delays\] after has 5 entries"),
        ({"befor": 1.0}, "befor"),
    ):
        with pytest.raises(InputError, match=message):
            simulate("2.B", "fcfs", 10, 1, delays=delays)
    with pytest.raises(InputError, match="sending and timeout are for pull policies; mct is a"):
        simulate("2.B", "mct", 10, 1, delays=Delays(sending=1.0))
    with pytest.raises(InputError, match=r"\[delays\], for push and pull policies only"):
        simulate("4.A", "lpas_dec", 10, 1, delays=Delays(before=1.0))


def test_one_queue_is_as_late_as_its_messages() -> None:
    """One machine: a task waits as without delays, and its messages take their time."""
    system = System(arrivals=[0.5], rates=[[1.0]])
    plain, late = (
        simulate(each, "mct", 4000, 10, warmup=100)
        for each in (system, system.replace(delays={"before": 3.0, "after": 2.0}))
    )
    assert late.mean_response.mean == pytest.approx(plain.mean_response.mean + 5.0, rel=0.005)
    assert late.mean_number.mean == pytest.approx(plain.mean_number.mean + 2.5, rel=0.02)
    assert late.utilisation[0].mean == pytest.approx(plain.utilisation[0].mean, rel=0.005)
    waits = [each.classes[0].mean_queueing.mean for each in (plain, late)]
    assert waits[1] == pytest.approx(waits[0] + 3.0, rel=0.005)


def test_a_machine_works_on_before_its_last_result_is_known() -> None:
    """With one machine and nothing to decide, every task is known to have ended just as late."""
    chain = {"states": [1, 0.2], "transition": [[0.5, 0.5], [0.5, 0.5]], "step": 1}
    system = System(arrivals=[3.0], rates=[[6.0]], availability=[chain])
    ends = []
    for after in (0.0, 2.0):
        run = replicate(
            system.replace(delays={"after": after}),
            find("mct"),
            horizon=300.0,
            seed=SEED,
            trace=True,
        )
        done = run.trace[run.trace.kind == FINISH]
        ends.append(done.time[done.task.argsort()][:700])
    assert np.allclose(ends[0] + 2.0, ends[1])


def test_a_task_on_its_way_is_lost_with_its_machine() -> None:
    failures = {"mean_uptime": 5.0, "mean_repair": 1.0}
    system = System(arrivals=[1.0], rates=[[4.0]], counts=[2], failures=failures)
    at_once, late = (
        simulate(system, "mct", 2000, 10, delays=Delays(before=delay, after=delay))
        for delay in (0.0, 0.5)
    )
    assert late.lost.low > at_once.lost.high
    assert late.mean_response.low > at_once.mean_response.high + 1.0
    assert all(0 < each.mean < 1 for each in late.utilisation)
