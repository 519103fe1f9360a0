"""Many runs on a device: a fake one runs the same functions in plain Python."""

from __future__ import annotations

import sys
from copy import copy
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import (
    Distribution,
    InputError,
    Result,
    System,
    compare,
    compiler,
    contest,
    load,
    simulate,
    sweep,
)
from gridwright.compiler.link import bind
from gridwright.experiments import (
    Pieces,
    Store,
    ahead,
    device,
    pieces,
    random_systems,
    simulate_in_pieces,
)
from gridwright.policies import PULL, PUSH, PerClass, View, find
from gridwright.policies.policy import policy_of
from gridwright.reproduction import Laboratory, Run, data, data_of, reproduce
from gridwright.reproduction.laboratory import Scale
from gridwright.simulation import Job, Replication, launch, replicate
from gridwright.simulation.launch import Fleet, share_out
from gridwright.simulation.on_device import ROOM, OnDevice

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
SEEDS = [np.random.SeedSequence(5, spawn_key=(number,)) for number in range(3)]


def _bytes(array: Any) -> Any:
    """Return what lies between the fields of records too, as a device copies it."""
    return array.view(np.ndarray).reshape(-1).view(np.uint8)


class Interpreter:
    """A device that runs everything here, in plain Python; it counts what it is asked for."""

    def __init__(self, memory: int = 1 << 30) -> None:
        self.name, self.memory, self.counts = "a fake GPU", memory, [0]
        self.hooks: set[str] = set()
        self.starts: list[int] = []
        self.took = 0.0

    @property
    def linked(self) -> int:
        """How many programs were linked."""
        return len(self.counts) - 1

    def beside(self) -> Interpreter:
        return copy(self)

    def free(self) -> int:
        return self.memory

    def put(self, array: Any, times: int = 1) -> Any:
        copied = (
            np.concatenate([_bytes(array)] * times).view(array.dtype).reshape(-1, *array.shape[1:])
        )
        return copied.view(np.recarray) if array.dtype.names else copied

    def get(self, there: Any, array: Any, first: int = 0) -> None:
        _bytes(array)[...] = _bytes(there[first : first + len(array)])

    def write(self, there: Any, array: Any, first: int) -> None:
        _bytes(there[first : first + len(array)])[...] = _bytes(array)

    def extend(self, there: Any, array: Any) -> Any:
        return self.put(np.concatenate([there, array]))

    def link(self, kernel: Any, hooks: dict[str, Any]) -> Any:
        self.place = len(self.counts)
        self.counts.append(0)
        self.hooks.update(hooks)
        return bind(kernel, **hooks)

    def start(self, linked: Any, count: int, *arguments: Any) -> None:
        self.counts[self.place] = max(self.counts[self.place], count)
        self.starts.append(self.place)
        began = perf_counter()
        linked(*arguments)
        self.took = perf_counter() - began

    def wait(self) -> float:
        return self.took


def run(fake: Interpreter, *jobs: Job, **options: Any) -> dict[tuple[int, int], Replication]:
    found: dict[tuple[int, int], Replication] = {}

    def on_done(job: int, number: int, replication: Replication) -> None:
        assert (job, number) not in found
        found[job, number] = replication

    launch(fake, jobs, on_done, **options)
    return found


def as_on_a_cpu(job: Job, number: int) -> Replication:
    return replicate(
        job.system,
        job.policy,
        horizon=job.horizon,
        warmup=job.warmup,
        tails=job.tails,
        seed=job.seeds[number],
        rng="philox",
        interpreted=True,
    )


def check(found: dict[tuple[int, int], Replication], *jobs: Job, rtol: float = 0.0) -> None:
    assert found.keys() == {(k, n) for k, job in enumerate(jobs) for n in range(len(job.seeds))}
    for (k, number), one in found.items():
        other = as_on_a_cpu(jobs[k], number)
        for name in set(Replication._fields) - {"seconds", "trace", "more"}:
            mine, theirs = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(mine, theirs, rtol, err_msg=f"{k}, {number}: {name}")


def test_systems_and_policies_run_together_as_on_a_cpu() -> None:
    small, jobs = load("2.B"), []
    for system, name in [
        (small, "lpas"),
        (load("2.D"), "lpas"),
        (small, "guided_lpas"),
        (FAILING, "lpas_dg"),
        (FAILING, "mct"),
        (FAILING, "kpb:k=2"),
        (FAILING, "kpb:k=3"),
        (small, "fcfs"),
        (FAILING, "cmu:preempt=true"),
    ]:
        jobs.append(Job(system, find(name), SEEDS[:2], 4.0, 1.0))
    fake = Interpreter()
    check(run(fake, *jobs), *jobs)
    assert max(fake.counts) == 4, "two systems under lpas, and two values of k, are one launch each"


def dearest(machine: int, view: View, weight: PerClass = 1.0) -> int:
    """Take the waiting class with the largest weight."""
    best = -1
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and (best < 0 or weight[i] > weight[best]):
            best = i
    return best


def rotating(task_class: int, view: View) -> int:
    """Send tasks to the machines in turn, and count them in a table of its own size."""
    view.memory[6, 1] += 1.0
    turn = int(view.memory[6, 1]) % len(view.machines)
    return turn if view.rate[task_class, turn] > 0.0 else task_class % len(view.machines)


ROTATING = policy_of(rotating, PUSH, memory=(7, 2))


def test_parameters_by_class_and_memories_of_any_size_run_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(load("2.B"), policy_of(dearest, PULL)(weight=[1, 2]), SEEDS[:1], 4.0, 1.0)
    check(run(Interpreter(), job), job)
    apart = [Job(load(name), ROTATING, SEEDS, 4.0, 1.0) for name in ("2.B", "2.D")]
    check(run(Interpreter(), *apart), *apart)
    monkeypatch.setattr(sys.modules[OnDevice.__module__], "MANY_RUNS", 2)
    check(run(Interpreter(), *apart), *apart)


@pytest.mark.parametrize(("policy", "shares"), [("lpas_dg", (1, 0.5)), ("pas", (1, 1))])
def test_plans_that_many_runs_need_are_solved_before(
    policy: str, shares: tuple[float, float]
) -> None:
    system = System(
        arrivals=[2, 2],
        rates=[[4, 4, 1], [2, 2, 3]],
        availability=[*shares, 1],
        failures={"mean_uptime": 3, "mean_repair": 2},
    )
    job = Job(system, find(policy), SEEDS, 25.0)
    fake = Interpreter()
    found = run(fake, job)
    check(found, job)
    assert "solved" in fake.hooks
    assert min(each.replans for each in found.values()) > 8, "all situations were met"
    unlike = system.replace(availability=[0.3, 0.7, 1])  # a sum depends on which come first
    few, fake = Job(unlike, find(policy), SEEDS[:1], 5.0), Interpreter()
    check(run(fake, few), few)
    assert "solved" not in fake.hooks


def test_many_runs_lie_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[OnDevice.__module__], "MANY_RUNS", 2)
    seeds = [np.random.SeedSequence(5, spawn_key=(number,)) for number in range(34)]
    without = [
        Job(load("2.B"), find("pas"), seeds, 1.0, 0.5),
        Job(load("2.D"), find("pas"), SEEDS, 1.0),
    ]
    steady = FAILING.replace(availability=[1, 1, 0.5], assumed=None)
    crowded = System(arrivals=[120.0], rates=[[1.0]])
    more = [Job(steady, find("lpas_dg"), SEEDS, 4.0, 1.0), Job(crowded, find("fcfs"), SEEDS, 4.0)]
    for jobs in (without, more):
        fake = Interpreter()
        check(run(fake, *jobs), *jobs, rtol=1e-12)
        assert ("by_machine" in fake.hooks) == (jobs is without)
        assert "in_step" in fake.hooks


def test_delays_are_kept() -> None:
    delays = {"before": 0.1, "after": 0.05, "detection": 0.5, "reporting": 1.0}
    job = Job(FAILING.replace(delays=delays), find("lpas_dg"), SEEDS[:1], 6.0)
    check(run(Interpreter(), job), job)


def test_tails_are_measured_there_too() -> None:
    jobs = [Job(FAILING, find(name), SEEDS[:1], 4.0, tails=True) for name in ("mct", "lpas_dg")]
    found = run(Interpreter(), *jobs)
    check(found, *jobs)
    assert all(each.responses.sum() > 0 for each in found.values())


def test_a_run_that_needs_more_room_comes_back_and_goes_on() -> None:
    crowded = System(arrivals=[120.0], rates=[[1.0]])
    for name in ("mct", "fcfs"):
        job = Job(crowded, find(name), SEEDS, 5.0)
        found = run(Interpreter(), job)
        assert max(each.number.max() for each in found.values()) > 1.5 * ROOM
        check(found, job, rtol=1e-12)  # where a loop comes back, its sums are added up


def test_runs_that_outgrow_the_memory_start_again_in_smaller_parts() -> None:
    job = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS, 5.0)
    narrow = Interpreter(memory=90_000)
    check(run(narrow, job), job, rtol=1e-12)
    assert narrow.counts[1] == len(SEEDS)
    assert narrow.counts[-1] == 1
    with pytest.raises(InputError, match=r"more than 256 tasks .* the GPU has no memory for more"):
        run(Interpreter(memory=20_000), job._replace(seeds=SEEDS[:1]))


def test_what_is_read_back_is_read_in_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Fleet.__module__], "HERE", 8 * 3000)
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0, 1.0) for name in ("lpas", "fcfs")]
    check(run(Interpreter(), *jobs), *jobs)


def patient(task_class: int, view: View) -> int:
    """Hold a task back while the first machine has two."""
    return 0 if view.machines[0].backlog < 2 else -1


def test_a_policy_that_holds_tasks_back_gets_an_event_list() -> None:
    system = System(arrivals=[2.0], rates=[[3.0]])
    policies = [policy_of(patient, PUSH), find("mct")]
    jobs = [Job(system, each, SEEDS, 10.0) for each in policies]
    found = run(Interpreter(), *jobs)
    check(found, *jobs)
    assert any(each.held for each in found.values())


def test_what_does_not_fit_is_run_in_parts() -> None:
    job = Job(load("2.B"), find("lpas"), SEEDS, 3.0)
    whole, narrow = Interpreter(), Interpreter(memory=10_000)
    assert run(whole, job).keys() == run(narrow, job).keys()
    assert (whole.linked, narrow.linked) == (1, 3)
    check(run(narrow, job), job)


def test_programs_run_side_by_side_until_they_fill_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [Job(load("2.B"), find(name), SEEDS, 3.0) for name in ("mct", "fcfs", "jsq")]
    together, in_turn = Interpreter(), Interpreter()
    check(run(together, *jobs), *jobs)
    assert together.starts[:6] == [1, 2, 3, 1, 2, 3]
    monkeypatch.setattr(sys.modules[Fleet.__module__], "ENOUGH", len(SEEDS))
    check(run(in_turn, *jobs), *jobs)
    assert in_turn.starts == sorted(in_turn.starts)


def test_a_run_that_outgrows_the_memory_waits_for_those_beside_it() -> None:
    crowded = Job(System(arrivals=[60.0], rates=[[1.0]]), find("mct"), SEEDS[:1], 5.0)
    small = Job(load("2.B"), find("fcfs"), SEEDS[:1], 3.0)
    narrow = Interpreter(memory=20_000)  # alone, the first one is refused
    check(run(narrow, crowded, small), crowded, small, rtol=1e-12)
    assert narrow.linked == 3


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=6))
def test_time_that_programs_share_is_counted_once(given: list[tuple[int, int]]) -> None:
    fleets: Any = [SimpleNamespace(span=(a, a + long), seconds=0.0) for a, long in given]
    covered = {moment for a, long in given for moment in range(a, a + long)}
    until = share_out(fleets, 0.0)
    assert until == max(a + long for a, long in given)
    assert sum(each.seconds for each in fleets) == pytest.approx(len(covered))
    for (_, one), a in zip(given, fleets, strict=True):
        for (_, other), b in zip(given, fleets, strict=True):
            assert a.seconds * other == pytest.approx(b.seconds * one)
    assert share_out(fleets, until) == until  # this time is counted
    assert sum(each.seconds for each in fleets) == pytest.approx(len(covered))


class Triangular(Distribution):
    """A user's own distribution, which is drawn in Python."""

    @property
    def mean(self) -> float:
        return 1.0

    @property
    def variance(self) -> float:
        return 1 / 6

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        return rng.triangular(0, 1, 2, size)


def test_draws_of_a_users_distribution_come_from_here() -> None:
    job = Job(
        System(arrivals=[2.0], rates=[[3.0]], execution=Triangular()), find("mct"), SEEDS, 9.0
    )
    check(run(Interpreter(), job), job)


def test_progress_rises_to_one_and_a_stop_is_a_stop() -> None:
    shares: list[float] = []
    jobs = [Job(load("2.B"), find(name), SEEDS[:1], 5.0) for name in ("mct", "fcfs")]
    run(Interpreter(), *jobs, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Interpreter(), *jobs, on_progress=stop)


def own_plan(situation: Any) -> Any:
    """Permit everything."""
    return np.ones(situation.rates.shape)


def first_class(machine: int, view: View) -> int:
    """Take the first class."""
    return 0 if view.classes[0].waiting > 0 else 1


def test_a_planner_in_python_is_refused_where_plans_change() -> None:
    mine = policy_of(first_class, PULL, own_plan)
    job = Job(load("2.B"), mine, SEEDS[:1], 2.0)
    check(run(Interpreter(), job), job)
    with pytest.raises(InputError, match="its planner is plain Python, which does not"):
        run(Interpreter(), Job(FAILING, mine, SEEDS[:1], 2.0))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    """Put a fake device in place of the GPU that most computers lack."""
    found = Interpreter()
    for module in (ahead, device, pieces, data):
        monkeypatch.setattr(module, "find_device", lambda: found)
    return found


def values(result: Result) -> Any:
    return result.values("mean_number"), result.values("mean_response")


def test_simulate_on_a_gpu_gives_the_results_of_philox(fake: Interpreter) -> None:
    there = simulate("2.B", "lpas", 20, 3, on="gpu")
    here = simulate("2.B", "lpas", 20, 3, rng="philox")
    assert np.array_equal(values(there), values(here))
    assert there.stable == here.stable


def test_what_was_reproduced_on_a_gpu_names_it(fake: Interpreter) -> None:
    laboratory = Laboratory(on="gpu")
    found = data_of(reproduce("LP", laboratory=laboratory), laboratory)
    assert found.made.endswith(" and a fake GPU")


def test_what_a_gpu_cannot_plan_is_reproduced_on_the_cpu(fake: Interpreter) -> None:
    laboratory = Laboratory(Scale(2, 1e-5), on="gpu")
    runs = [Run("3.B:alpha1:2", f"lpas_dg:planner={name}") for name in ("interior", "grouped")]
    laboratory.simulate_ahead(runs)
    assert fake.counts == [0, 2]
    assert all(laboratory.result(run).tasks > 0 for run in runs)


def test_a_run_whose_pieces_cannot_tell_is_not_cut(fake: Interpreter) -> None:
    laboratory = Laboratory(Scale(2, 1e-3, pieces=(("2.", Pieces(2, 1.0)),)), on="gpu")
    short, settled = Run("2.A", "lpas"), Run("2.D", "lpas")
    found = laboratory.result(short)
    assert found.horizon == laboratory.scale.length(short)
    assert np.isfinite(found.replications[0].waiting).all(), (
        "pieces do not know how long tasks wait"
    )
    assert not np.isfinite(laboratory.result(settled).replications[0].waiting).any()
    assert laboratory.whole == {short}


def test_a_comparison_is_one_launch_a_program(fake: Interpreter) -> None:
    shares: list[float] = []
    names = ["mct", "lpas"]
    report = lambda policy, done, runs: shares.append(done)  # noqa: E731
    there = compare("2.B", names, 10, 2, on="gpu", progress=report)
    here = compare("2.B", names, 10, 2, rng="philox")
    assert fake.linked == len(there.results)
    assert max(shares) == 1.0
    for one, two in zip(there.results, here.results, strict=True):
        assert np.array_equal(values(one), values(two))


def test_a_contest_runs_all_systems_of_a_policy_together(fake: Interpreter) -> None:
    systems = list(random_systems(3))
    there = contest(systems, ["lpas", "mct"], tasks=60, replications=2, on="gpu")
    here = contest(systems, ["lpas", "mct"], tasks=60, replications=2, rng="philox")
    assert there.as_json() == here.as_json()
    assert (fake.linked, max(fake.counts)) == (2, 6)


def test_a_sweep_runs_all_values_together(fake: Interpreter) -> None:
    there = sweep("2.B", ["mct", "lpas"], "load", [0.4, 0.6], 5, 2, on="gpu")
    here = sweep("2.B", ["mct", "lpas"], "load", [0.4, 0.6], 5, 2, rng="philox")
    assert there.rows() == here.rows()
    assert (fake.linked, max(fake.counts)) == (2, 4)


def test_replications_that_are_kept_are_not_run_again(fake: Interpreter, tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite")
    first = compare("2.B", ["mct", "lpas"], 5, 2, on="gpu", store=store)
    again = compare("2.B", ["mct", "lpas"], 5, 2, on="gpu", store=store)
    assert fake.linked == 2
    assert first.as_json() == again.as_json()


def test_a_long_run_is_the_mean_of_its_pieces_and_is_kept(
    fake: Interpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "AT_ONCE", 8)
    system, cut = load("2.B"), Pieces(4, 2.0)
    store, shares = Store(tmp_path / "results.sqlite", anywhere=True), [0.0]
    given = (system, "lpas", 40.0, 3, 1, cut, store)
    found = simulate_in_pieces(*given, shares.append)
    assert (fake.linked, max(fake.counts), shares[-1]) == (2, 8, 1.0)  # two runs, then one
    assert sorted(shares) == shares
    for k, run in enumerate(found.replications):
        parts = [
            replicate(
                system,
                find("lpas"),
                horizon=12.0,
                warmup=2.0,
                seed=np.random.SeedSequence(1, spawn_key=(k, piece)),
                rng="philox",
            )
            for piece in range(4)
        ]
        assert run.mean_number == pytest.approx(np.mean([each.mean_number for each in parts]))
        assert run.tasks == sum(each.tasks for each in parts)
        number = np.mean([each.class_number for each in parts], axis=0)
        left = np.sum([each.throughput for each in parts], axis=0) * 10.0
        assert run.responded == pytest.approx(left)
        assert run.response == pytest.approx(number * 40.0 / left)  # Little's law
        assert run.number[-1] == np.mean([each.number[-1] for each in parts])
    again = simulate_in_pieces(*given)
    assert fake.linked == 2
    assert again.as_json() == found.as_json()


def test_pieces_start_from_one_drawn_state_and_go_their_own_ways(fake: Interpreter) -> None:
    """Only the availability of the machine differs, so the pieces share what is drawn first."""
    chain = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}
    queue = System(arrivals=[0.5], rates=[[1.0]], availability=[chain])
    found = simulate_in_pieces(queue, "fcfs", 400.0, 2, 1, Pieces(2, 20.0))
    assert max(fake.counts) == 4
    assert len({run.tasks for run in found.replications}) == 2
    assert found.stable


def test_growth_shows_in_pieces(fake: Interpreter) -> None:
    queue = System(arrivals=[3.0], rates=[[1.0]])
    assert simulate_in_pieces(queue, "fcfs", 400.0, 2, 1, Pieces(4, 20.0)).stable is False


@pytest.mark.parametrize(
    ("system", "policy", "options", "words"),
    [
        ("Smith", "mm", {}, "mm is a batch policy; a GPU runs push and pull policies"),
        ("2.B", "mct", {"trace": True}, "a GPU keeps no event log"),
    ],
)
def test_what_stays_on_the_cpu_is_refused(
    system: str, policy: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        simulate(system, policy, 5, 1, on="gpu", **options)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiler, "cuda", raising=False)
    monkeypatch.setitem(sys.modules, "gridwright.compiler.cuda", None)  # importing it fails
    with pytest.raises(
        InputError, match=r"a GPU needs numba-cuda: pip install 'gridwright\[gpu]'$"
    ):
        device.find_device.__wrapped__()
