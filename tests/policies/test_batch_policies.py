"""What batch policies share, against plain algebra, and what each of them picks."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import InputError, System, batch, simulate
from gridwright.model import GridPmf, robustness
from gridwright.model.batch_tables import table_of
from gridwright.policies import assign, find
from gridwright.policies.on_time import (
    best_first,
    condition,
    convolve,
    foresee,
    next_order,
    probability,
    weigh,
    worth_of,
)
from gridwright.policies.view import CHOSEN, HELD, KIND, SLOT, WAITING, BatchView, records
from gridwright.simulation.batch_state import make_view

RUNS = [
    [GridPmf(1, [0, 0.5, 0.25, 0.25]), GridPmf(1, [0, 0, 0, 0.2, 0.8])],
    [GridPmf(1, [0, 0.1, 0.9]), GridPmf(1, [0, 0, 0.5, 0, 0.5])],
]


def view_of(now: float, holds: list[tuple[int, float]], begun: float | None = None) -> BatchView:
    """Show machine 0 with tasks (class, deadline), the first of which began at a time."""
    view = make_view(table_of(RUNS), np.array([30.0, 30.0]), 4)._replace(now=now)
    view.machines["free"] = 4
    view.machines["ready"] = now
    view.machines["serving"] = -1
    for task_class, deadline in holds:
        m = view.machines[0]
        held = view.queue[0, m.queued]
        held.task_class, held.deadline = task_class, deadline
        m.queued += 1
        m.free -= 1
    if begun is not None:
        view.machines[0].serving, view.machines[0].begun = holds[0][0], begun
    return view


def waiting_of(tasks: list[tuple[int, float]], view: BatchView) -> Any:
    """Let tasks (class, deadline) wait, in the order of their arrival."""
    waiting = records(len(tasks), WAITING)
    view.classes["first"] = -1
    for k in range(len(tasks) - 1, -1, -1):
        w = waiting[k]
        w.task_class, w.deadline = tasks[k]
        w.machine, w.following = -1, view.classes[tasks[k][0]].first
        view.classes[tasks[k][0]].first = k
    return waiting


def in_words(
    now: float, holds: list[tuple[int, float]], begun: float | None
) -> list[tuple[GridPmf, float]]:
    """Say the same as ``robustness`` takes it."""
    tasks: list[tuple[GridPmf, float]] = []
    for place, (task_class, deadline) in enumerate(holds):
        pmf = RUNS[task_class][0]
        if place == 0:
            pmf = pmf.shift(now) if begun is None else pmf.shift(begun).after(now)
        tasks.append((pmf, deadline))
    return tasks


def test_no_field_hides_behind_an_attribute_of_its_record() -> None:
    for dtype in (SLOT, WAITING, KIND, HELD, CHOSEN):
        assert not set(dtype.names or ()) & set(dir(np.record))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.integers(1, 20),
)
def test_convolution_is_numpys(one: list[float], other: list[float], most: int) -> None:
    out = np.full(20, 9.0)
    a, b = np.array(one), np.array(other)
    n = convolve(a, len(a), b, len(b), out, most)
    assert out[:n] == pytest.approx(np.convolve(a, b)[:most], abs=1e-12)


tasks = st.lists(st.tuples(st.integers(0, 1), st.sampled_from([12, 14.5, 16, 20])), max_size=4)


@settings(max_examples=60)
@given(tasks, st.sampled_from([None, 10.0, 9.0]), st.integers(0, 1), st.sampled_from([13, 17.2]))
def test_a_machine_is_foreseen_as_by_plain_algebra(
    holds: list[tuple[int, float]], begun: float | None, task_class: int, deadline: float
) -> None:
    now = 10.0
    view = view_of(now, holds, begun if holds else None)
    plain = in_words(now, holds, begun if holds else None)
    foresee(view, 0)
    m = view.machines[0]
    done = GridPmf(1, [1.0], now)
    if plain:
        done = plain[0][0]
        for pmf, _ in plain[1:]:
            done = done.convolve(pmf)
    n = len(done.mass)
    assert m.anchor == pytest.approx(done.start)
    assert view.done[0, :n] == pytest.approx(done.mass[: m.bins], abs=1e-12)
    on_time = done.convolve(RUNS[task_class][0]).by(deadline)
    found = probability(view, task_class, 0, deadline, view.done[0], m.bins)
    assert found == pytest.approx(on_time, abs=1e-12)
    condition(view, 0)
    judged = robustness(plain)
    assert m.odds * (len(holds) - m.missed) == pytest.approx(judged.counted, abs=1e-12)
    assert (0 if m.missed else m.odds) == pytest.approx(judged.rho, abs=1e-12)


@settings(max_examples=40)
@given(tasks.filter(lambda t: len(t) < 3), st.lists(tasks.filter(bool), min_size=1, max_size=1))
def test_the_best_order_is_the_best_of_all(
    holds: list[tuple[int, float]], drawn: list[list[tuple[int, float]]]
) -> None:
    now, waits = 10.0, drawn[0][:3]
    view = view_of(now, holds)
    waiting = waiting_of(waits, view)
    view.machines[0].picked = len(waits)
    view.best[0, : len(waits)] = np.arange(len(waits))
    condition(view, 0)
    worths = {}
    for order in itertools.permutations(range(len(waits))):
        view.order[: len(waits)] = order
        whole = in_words(now, [*holds, *(waits[k] for k in order)], None)
        worths[order] = robustness(whole).counted
        found = worth_of(waiting, view, 0, len(waits))
        assert found == pytest.approx(worths[order], abs=1e-12)
    first = best_first(waiting, view, 0)
    if len(waits) > 1:
        best = max(worths.values())
        assert max(w for order, w in worths.items() if order[0] == first) == pytest.approx(best)


def test_every_order_comes_once() -> None:
    order = np.arange(4)
    seen = [tuple(order)]
    while next_order(order, 4):
        seen.append(tuple(order))
    assert seen == list(itertools.permutations(range(4)))


def test_a_task_that_should_be_done_is_expected_any_moment() -> None:
    view = view_of(50.0, [(0, 60.0)], begun=10.0)
    foresee(view, 0)
    assert view.machines[0].anchor == 50
    assert view.done[0, 0] == 1


@pytest.mark.parametrize(
    ("policy", "ready", "waits", "first"),
    [
        ("mm", [10, 10], [(0, 40), (1, 15)], (0, 0)),  # 11.75 against 11.9
        ("mmu", [10, 10], [(0, 40), (1, 15)], (1, 0)),
        ("mmu", [10, 10], [(0, 40), (1, 11)], (0, 0)),  # negative slack comes last
        ("msd", [10, 10], [(0, 40), (1, 11)], (1, 0)),
        ("min_min", [10, 10], [(0, 40), (1, 15)], (0, 0)),
        ("max_min", [10, 10], [(0, 40), (1, 15)], (1, 0)),
        ("sufferage", [10, 10], [(1, 40), (0, 40)], (1, 0)),  # 2.05 later against 1.1
        ("moc", [10, 10], [(0, 40), (1, 12.5)], (1, 0)),
        ("mect", [13, 10], [(0, 40), (1, 40)], (0, 1)),
    ],
)
def test_who_comes_first(
    policy: str, ready: list[float], waits: list[tuple[int, float]], first: tuple[int, int]
) -> None:
    view = view_of(10.0, [])
    view.machines["ready"] = ready
    waiting = waiting_of(waits, view)
    chosen = find(policy)
    count = chosen.decide(waiting, view, *chosen.arguments((2, 2)))
    assert count == len(waits)
    assert (view.chosen[0].place, view.chosen[0].machine) == first


def test_a_full_machine() -> None:
    """Both tasks want machine 0, which has room for one."""
    answers = {}
    for full in ("leaves", "counts", "excluded"):
        view = view_of(10.0, [])
        view.machines["ready"] = [10, 12.5]
        view.machines["free"] = [0, 4]
        waiting = waiting_of([(0, 40), (0, 41), (0, 42)], view)
        chosen = find(f"mm:full={full}")
        count = chosen.decide(waiting, view, *chosen.arguments((2, 2)))
        answers[full] = [(c.place, c.machine) for c in view.chosen[:count]]
    assert answers["leaves"] == []
    assert answers["counts"] == []  # its load stands for two tasks before the other is sooner
    assert answers["excluded"] == [(0, 1), (1, 1), (2, 1)]


def test_counting_the_load_sends_later_tasks_elsewhere() -> None:
    view = view_of(10.0, [])
    view.machines["free"] = [0, 4]
    waiting = waiting_of([(0, 40 + k) for k in range(4)], view)
    chosen = find("mm:full=counts")
    count = chosen.decide(waiting, view, *chosen.arguments((2, 2)))
    assert [(c.place, c.machine) for c in view.chosen[:count]] == [(2, 1)]


def test_probabilities_of_what_cannot_be() -> None:
    view = view_of(10.0, [])
    waiting = waiting_of([(0, 9.0), (0, 10.5), (0, 13.0)], view)
    weigh(waiting, view, 0, False)
    assert view.chance[:3, 0].tolist() == [0, 0, 1]


SYSTEM = System(
    arrivals=[1, 2], rates=[[3, 1], [1, 3]], batch={"tasks": 300}, deadlines={"factor": 2}
)


@pytest.mark.slow
def test_a_policy_of_ones_own() -> None:
    @batch
    def oldest(waiting, view):  # type: ignore[no-untyped-def]
        """The oldest task to any machine with room (made up)."""
        count = 0
        for j in range(len(view.machines)):
            while view.machines[j].free > 0 and count < len(waiting):
                count = assign(waiting, view, count, count, j)
        return count

    result = simulate(SYSTEM, oldest, replications=2)
    assert result.refusals == 0
    assert result.figure("unfinished").mean == 0


@pytest.mark.slow
def test_impossible_assignments_are_refused_and_counted() -> None:
    @batch
    def greedy_one(waiting, view):  # type: ignore[no-untyped-def]
        """Twice the same task, and a machine that is not there (made up)."""
        view.chosen[0].place = 0
        view.chosen[0].machine = int(view.machines[0].free == 0)
        view.chosen[1].place = 0
        view.chosen[1].machine = 1
        return 2

    result = simulate(SYSTEM, greedy_one, replications=2)
    assert result.refusals > 100
    assert result.figure("unfinished").mean == 0

    @batch
    def wrong(waiting, view):  # type: ignore[no-untyped-def]
        """Always a machine that is not there (made up)."""
        view.chosen[0].place = 0
        view.chosen[0].machine = 7
        return 1

    with pytest.raises(InputError, match="every answer is impossible; expected places of waiting"):
        simulate(SYSTEM, wrong, replications=2)
