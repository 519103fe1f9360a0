from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gridwright
from gridwright import InputError, System, allocate, load
from gridwright.allocation import grouped, interior, make_workspace, situation, vertex
from gridwright.allocation import planner as planners
from gridwright.allocation.bottlenecks import optimum
from gridwright.allocation.highs import solve_highs, time_limit
from gridwright.allocation.planner import HUGE, fill, spread, steps
from gridwright.allocation.simplex import FAILED
from gridwright.allocation.workspace import CHANGED, MOVED, Situation, sum_up
from gridwright.catalogue import Entry, entries
from gridwright.compiler.link import link

METHODS = ["grouped", "vertex", "interior"]
SOLVABLE = [entry for entry in entries() if entry.has_capacity]
WITH_CAPACITY = [entry for entry in SOLVABLE if entry.expected_capacity]
WITH_ALLOCATION = [entry for entry in SOLVABLE if entry.expected_allocation]


def by_name(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", WITH_CAPACITY, ids=by_name)
@pytest.mark.parametrize("method", METHODS)
def test_printed_capacities(entry: Entry, method: str) -> None:
    assert entry.expected_capacity is not None
    capacity = allocate(entry.system, method, down=entry.down).capacity
    assert f"{capacity:.4f}" == f"{entry.expected_capacity:.4f}"


@pytest.mark.parametrize("entry", WITH_ALLOCATION, ids=by_name)
def test_printed_allocations(entry: Entry) -> None:
    shares = allocate(entry.system, down=entry.down).shares
    printed = np.array(entry.expected_allocation)[:, entry.system.column]
    assert np.array_equal(shares.round(4), printed)


def test_enough_is_printed() -> None:
    assert len(WITH_CAPACITY) >= 16
    assert len(WITH_ALLOCATION) >= 18


@st.composite
def systems(draw: st.DrawFn) -> System:
    classes, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    entry = draw(st.sampled_from([st.floats(0.1, 20), st.integers(0, 4)]))
    rows = st.lists(
        st.lists(entry, min_size=columns, max_size=columns), min_size=classes, max_size=classes
    )
    rates = np.array(draw(rows), dtype=float)
    assume(rates.any(axis=0).all())
    assume(rates.any(axis=1).all())
    counts = draw(st.lists(st.integers(1, 4), min_size=columns, max_size=columns))
    machines = sum(counts)
    share = st.sampled_from([0.25, 0.5, 1.0]) | st.floats(0.05, 1)
    return System(
        arrivals=draw(st.lists(st.floats(0.1, 50), min_size=classes, max_size=classes)),
        rates=rates,
        counts=counts,
        availability=draw(st.lists(share, min_size=machines, max_size=machines)),
    )


@given(systems(), st.sampled_from(METHODS))
@settings(deadline=None, max_examples=200)
def test_solutions_are_feasible_and_optimal(system: System, method: str) -> None:
    found = allocate(system, method)
    tolerance = 1e-4 if method == "interior" else 1e-7
    assert (found.shares >= 0).all()
    assert (found.shares.sum(axis=0) <= system.mean_availability * (1 + tolerance)).all()
    served = (found.shares * system.nominal).sum(axis=1)
    needed = found.capacity * system.arrival_rates
    assert (served >= needed * (1 - tolerance)).all()
    # primal value = dual value
    assert (found.class_prices * system.arrival_rates).sum() == pytest.approx(1, rel=tolerance)
    worth = (found.machine_prices * system.mean_availability).sum()
    assert worth == pytest.approx(found.capacity, rel=tolerance)
    assert (found.routing.sum(axis=1) == pytest.approx(1)) or method == "interior"


@given(systems())
@settings(deadline=None, max_examples=150)
def test_methods_agree_and_vertex_is_sparse(system: System) -> None:
    classes, machines = system.shape
    capacities = [allocate(system, method).capacity for method in METHODS]
    assert capacities == pytest.approx([capacities[0]] * 3, rel=1e-6)
    assert np.count_nonzero(allocate(system, "vertex").shares) <= classes + machines - 1


@given(systems(), st.floats(0.1, 10))
@settings(deadline=None)
def test_more_arrivals_less_capacity(system: System, factor: float) -> None:
    more = system.replace(arrivals=system.arrivals * factor)
    assert allocate(more).capacity * factor == pytest.approx(allocate(system).capacity)


@given(systems(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_machines_does_not_matter(system: System, random: Any) -> None:
    single = System(
        arrivals=system.arrivals, rates=system.nominal, availability=system.mean_availability
    )
    order = list(range(system.shape[1]))
    random.shuffle(order)
    shuffled = System(
        arrivals=system.arrivals,
        rates=system.nominal[:, order],
        availability=system.mean_availability[order],
    )
    expected = allocate(system).capacity
    assert allocate(single).capacity == pytest.approx(expected)
    assert allocate(shuffled).capacity == pytest.approx(expected)


@pytest.mark.slow
@given(systems())
@settings(deadline=None, max_examples=100)
def test_compiled_planners_are_bit_identical(system: System) -> None:
    now = situation(system)
    plans: list[Any] = []
    for solve, give in (
        (optimum, fill),
        (link(optimum), link(fill)),
        (link(optimum), link(spread)),
    ):
        room, plan = make_workspace(now), np.empty(now.rates.shape)
        solve(now, room)
        give(now, room, plan)
        plans.append(plan)
    assert np.array_equal(plans[0], plans[1])
    assert np.array_equal(vertex(now), plans[1])
    assert np.array_equal(grouped(now), plans[2])


@pytest.mark.parametrize("name", ["3.A:alpha1:1", "3.A:alpha2:3", "3.F:alpha:2", "2.C1"])
def test_a_vertex_has_exactly_one_non_zero_less_than_classes_and_machines(name: str) -> None:
    system = load(name)
    shares = allocate(system, "vertex").shares
    assert np.count_nonzero(shares) == sum(system.shape) - 1


def test_a_group_is_filled_in_order() -> None:
    now = Situation(
        rates=np.ones((2, 3)),
        arrivals=np.ones(2),
        availability=np.array([1.0, 0.5, 1.0]),
        group=np.zeros(3, np.int64),
    )
    room, plan = make_workspace(now), np.empty((2, 3))
    sum_up(now, room)
    room.time[:] = [[1.25], [1.25]]
    fill(now, room, plan)
    assert plan.tolist() == [[1, 0.25, 0], [0, 0.25, 1]]


def test_printed_zeros_and_non_zeros() -> None:
    grouped_c1, vertex_c1 = (allocate(load("2.C1"), method) for method in ("grouped", "vertex"))
    assert (grouped_c1.shares == 0).sum() == 44
    assert (vertex_c1.shares == 0).sum() == 58
    assert np.count_nonzero(allocate(load("2.C2")).shares) == 52


def test_state_information_as_printed() -> None:
    found = allocate(load("2.C2"))
    assert 100 * found.discount() == pytest.approx(57.5, abs=0.05)  # printed 58
    assert 100 * found.discount(at_most=2) == pytest.approx(100 * 28 / 30)  # printed 94
    assert found.machines_per_class == (19, 4, 4, 11, 14)


def test_capacity_per_machine_price() -> None:
    system = load("2.D")
    base = allocate(system)
    for machine in range(7):
        availability = np.ones(7)
        availability[machine] -= 1e-6
        slope = (
            base.capacity - allocate(system.replace(availability=availability)).capacity
        ) / 1e-6
        assert slope == pytest.approx(base.machine_prices[machine], rel=1e-4)


def test_a_failed_machine() -> None:
    system = load("3.LP-four-machines")
    before, after = allocate(system), allocate(system, down=["2"])
    assert (after.shares[:, 1] == 0).all()
    found = before.change(after)
    assert (round(found.before, 4), round(found.after, 4)) == (2.0513, 1.0306)
    assert found.gained == (("2", "4"), ("3", "3"))
    assert ("3", "2") in found.lost
    assert allocate(system, down=[2]).capacity == after.capacity


def test_a_class_that_nothing_up_can_run_is_left_out() -> None:
    system = System(arrivals=[1, 1], rates=[[2, 0], [0, 4]], classes=["a", "b"])
    found = allocate(system, down=[1])
    assert found.left_out == ("a",)
    assert found.capacity == pytest.approx(4)
    assert not found.verdict.stabilisable
    assert "Class 'a' cannot run on any machine that is up" in found.verdict.words
    assert found.information() == 0.5
    assert allocate(system).change(found).left_out == ("a",)
    assert found.change(found).left_out == ()


def test_no_machine_that_would_run_another_class_adds_to_the_capacity() -> None:
    found = allocate(System(arrivals=[1, 1], rates=[[2, 2], [0, 1]]), down=[2])
    assert found.verdict.stabilisable is False
    assert "so no policy can keep up with its tasks" in found.verdict.words
    assert found.gain(0) == pytest.approx(1.0)
    assert np.isnan(found.gain(1))


@pytest.mark.parametrize("method", METHODS)
def test_everything_down(method: str) -> None:
    found = allocate(load("2.B"), method, down=[1, 2])
    assert found.capacity == 0
    assert found.load == np.inf
    assert not found.shares.any()
    assert found.bottleneck_machines == ()
    assert "no machine that is up can run anything" in found.verdict.words


def test_equal_rates_listed_singly_are_a_group() -> None:
    system = System(arrivals=[3, 3], rates=[[4, 4, 1], [1, 1, 4]])
    shares = allocate(system).shares
    assert np.array_equal(shares[:, 0], shares[:, 1])


def test_a_part_off_the_bottleneck_has_no_price() -> None:
    system = System(arrivals=[1, 1], rates=[[1.1, 0], [0, 9]], classes=["tight", "loose"])
    found = allocate(system)
    assert found.bottleneck_classes == ("tight",)
    assert found.bottleneck_machines == ("1",)
    assert found.machine_prices.tolist() == pytest.approx([1.1, 0])


def test_interior_uses_every_pair_that_an_optimum_may_use() -> None:
    alike = System(arrivals=[1, 1], rates=[[2, 2], [2, 2]])
    assert (allocate(alike, "interior").shares > 0).all()
    assert interior(situation(alike)).tolist() == allocate(alike, "interior").shares.tolist()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e6, 1e9])
def test_the_time_unit_does_not_matter(method: str, factor: float) -> None:
    system = load("2.D")
    base = allocate(system, method)
    scaled = allocate(system.replace(arrivals=system.arrivals * factor), method)
    assert scaled.capacity * factor == pytest.approx(base.capacity, rel=1e-9)
    assert np.array_equal(scaled.shares > 0, base.shares > 0)


def test_a_system_spread_over_many_decades() -> None:
    system = System(
        arrivals=[10, 1e-4, 100, 100], rates=[[9e3, 4e-4], [2e3, 4e-4], [0, 2e-4], [4e3, 2e-4]]
    )
    assert allocate(system).capacity == pytest.approx(2e-6)
    tiny = System(arrivals=[1e-5, 100], rates=[[100, 100], [100, 100]])
    assert all(count > 0 for count in allocate(tiny, "interior").machines_per_class)


@pytest.mark.slow
def test_many_classes_on_few_machines() -> None:
    rates = np.random.default_rng(1).uniform(1, 10, (120, 7))
    found = allocate(System(arrivals=np.ones(120), rates=rates))
    assert found.capacity == pytest.approx(solve_highs(rates)[0], rel=1e-7)


def test_down_takes_names_numbers_and_groups() -> None:
    system = System(arrivals=[1], rates=[[3, 1]], groups=["2", "b"], counts=[1, 2])
    assert allocate(system, down=["2"]).capacity == pytest.approx(2)
    assert allocate(system, down=[2]).capacity == pytest.approx(4)
    assert allocate(system, down=["b"]).capacity == pytest.approx(3)
    assert allocate(system, down=["b", "b.1", 2, 2]).down == (1, 2)
    with pytest.raises(InputError, match="expected a list of machines"):
        allocate(system, down="12")


def test_a_verdict_with_machines_down_speaks_of_the_others() -> None:
    system = load("3.A:alpha1:5")
    assert "With the others up the load is" in allocate(system, down=["T.1"]).verdict.words


def test_large_systems_use_the_compiled_simplex() -> None:
    system = System(arrivals=np.ones(10), rates=np.random.default_rng(1).gamma(2, 1, (10, 200)))
    now = situation(system)
    assert allocate(system).capacity == optimum(now, make_workspace(now))


@pytest.mark.slow
def test_huge_systems_are_solved_by_highs() -> None:
    rates = np.random.default_rng(1).gamma(2, 1, (130, 130))
    system = System(arrivals=np.ones(130), rates=rates)
    assert steps(make_workspace(situation(system))) > HUGE
    found = allocate(system, "vertex")
    # a vertex that serves every class, on no machine for longer than there is time
    assert np.count_nonzero(found.shares) <= 130 + 130 - 1
    assert found.shares.sum(axis=0).max() <= 1 + 1e-9
    assert (found.shares * rates).sum(axis=1).min() == pytest.approx(found.capacity, rel=1e-9)
    # and the best one: no prices of classes can promise less than any allocation delivers
    assert found.class_prices @ system.arrival_rates == pytest.approx(1)
    promised = (found.class_prices[:, None] * rates).max(axis=0).sum()
    assert promised == pytest.approx(found.capacity, rel=1e-6)
    assert len(found.kinds) == 1


def test_an_allocation_ends_in_the_time_it_is_given() -> None:
    rates = np.random.default_rng(1).gamma(2, 1, (300, 300))
    system = System(arrivals=np.ones(300), rates=rates)
    with time_limit(0.05), pytest.raises(InputError, match="takes too long; try fewer classes"):
        allocate(system)
    with time_limit(0.0), pytest.raises(InputError, match="takes too long"):
        allocate(load("2.B"), "interior")


def test_more_classes_than_there_is_room_for() -> None:
    system = System(arrivals=np.ones(5001), rates=np.ones((5001, 1)))
    with pytest.raises(InputError, match="5,001 classes cannot be allocated; expected at most"):
        allocate(system)


def test_a_machine_is_down_with_its_slots() -> None:
    parts: dict[str, Any] = {"arrivals": [1], "rates": [[2, 3]], "groups": ["big", "small"]}
    system = System(**parts, counts=[2, 1], slots=[2, 1])
    assert allocate(system, down=["big.1"]).capacity == pytest.approx(7)
    assert allocate(system, down=["big.1/2"]).capacity == pytest.approx(9)
    assert allocate(system, down=["big"]).capacity == pytest.approx(3)


@pytest.mark.parametrize(
    ("system", "arguments", "message"),
    [
        ("2.B", {"method": "vertx"}, "no method 'vertx'; did you mean 'vertex'?"),
        ("2.B", {"down": [3]}, "no machine '3'; there are 1, 2"),
        ("2.B", {"down": [0]}, "no machine '0'"),
        ("3.A:alpha1:1", {"down": ["T.9"]}, "no machine 'T.9'; did you mean"),
    ],
)
def test_wrong_arguments(system: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        allocate(load(system), **arguments)
    assert message in str(error.value)


def test_the_old_functions_name_the_new_ones() -> None:
    before, after = allocate("2.B"), allocate("2.B", down=[2])
    with pytest.warns(DeprecationWarning, match=r"use before\.change\(after\)"):
        assert gridwright.change(before, after) == before.change(after)
    with pytest.warns(DeprecationWarning, match=r"use allocation\.verdict"):
        assert gridwright.verdict(before) == before.verdict


def test_an_allocation_is_a_table() -> None:
    found = allocate("2.B")
    assert [row["class"] for row in found.rows()] == ["1", "2"]
    assert [row["machine 1"] for row in found.rows()] == found.shares[:, 0].tolist()
    assert "<th>machine 2</th>" in found._repr_html_()


def test_a_system_is_also_found_by_its_name() -> None:
    assert allocate("2.B").capacity == allocate(load("2.B")).capacity
    assert allocate("3.LP-four-machines", down=["2"]).down == (1,)
    wrong: Any = 5
    with pytest.raises(InputError, match="5 is no system; expected its name or the path"):
        allocate(wrong)


@pytest.mark.parametrize(
    ("arrivals", "stabilisable", "words"),
    [
        ([1.0], True, "load 50.0 %. Arrivals could grow by 100.0 %"),
        ([2.0], False, "exactly at the edge"),
        ([4.0], False, "load 200.0 %. Arrivals would have to fall by more than 50.0 %"),
    ],
)
def test_verdicts(arrivals: list[float], stabilisable: bool, words: str) -> None:
    found = allocate(System(arrivals=arrivals, rates=[[1.5, 0.5]])).verdict
    assert found.stabilisable is stabilisable
    assert words in found.words


def test_failures_count_in_the_long_run() -> None:
    system = System(arrivals=[1.8], rates=[[2]], failures={"mean_uptime": 4, "mean_repair": 1})
    found = allocate(system)
    assert found.load == pytest.approx(0.9)
    assert 1 / found.long_run_capacity == pytest.approx(0.9 / 0.8)
    assert not found.verdict.stabilisable
    assert "they are up 80.0 % of the time" in found.verdict.words


def test_published_loads_with_failures() -> None:
    assert 1 / allocate(load("3.A:alpha1:5")).long_run_capacity == pytest.approx(0.798201, abs=1e-6)
    assert 1 / allocate(load("3.B:alpha2:2")).long_run_capacity == pytest.approx(0.966612, abs=1e-6)


def random_situation(shape: tuple[int, int]) -> Situation:
    rng = np.random.default_rng(2)
    rates: NDArray[np.float64] = rng.gamma(2, 1, shape)
    return Situation(rates, np.ones(shape[0]), np.ones(shape[1]), np.arange(shape[1]))


@given(systems(), st.data())
@settings(max_examples=50, deadline=None)
def test_a_plan_after_one_change_is_as_if_made_anew(system: System, data: st.DataObject) -> None:
    """A workspace that is told which machine has changed plans as one that looks at all."""
    one, times = situation(system), data.draw(st.sampled_from([1, 30]))  # a block has 32 machines
    now = Situation(
        rates=np.repeat(one.rates, times, axis=1),
        arrivals=one.arrivals,
        availability=np.repeat(one.availability, times),
        group=np.repeat(one.group, times),
    )
    up, machines = now.availability.copy(), len(now.availability)
    told, plan = make_workspace(now), np.empty(now.rates.shape)
    all_new, whole = make_workspace(now), np.empty(now.rates.shape)
    before = np.zeros_like(plan, bool)
    for turn in range(4):
        if turn:
            told.news[CHANGED] = j = data.draw(st.integers(0, machines - 1))
            now.availability[j] = data.draw(st.sampled_from([0.0, up[j], up[j] / 2]))
        for space, made in ((told, plan), (all_new, whole)):
            assert optimum(now, space) != FAILED
            fill(now, space, made)
        assert np.array_equal(plan, whole)
        if turn:
            moved = told.moved[: told.news[MOVED]].tolist()
            assert sorted(moved) == np.flatnonzero(((plan > 0) != before).any(axis=0)).tolist()
        before = plan > 0


def test_a_class_without_arrivals_has_no_part() -> None:
    now = random_situation((3, 4))._replace(arrivals=np.array([1.0, 0.0, 2.0]))
    plan = vertex(now)
    assert not plan[1].any()
    assert plan[[0, 2]].any(axis=1).all()


def test_a_class_with_few_arrivals_is_still_served() -> None:
    now = random_situation((3, 4))._replace(arrivals=np.array([1.0, 1e-11, 2.0]))
    assert vertex(now).any(axis=1).all()
    assert grouped(now).any(axis=1).all()


@pytest.mark.slow
def test_planners_survive_what_the_simplex_does_not() -> None:
    """Rates over very many decades: a planner answers as allocate does, by HiGHS if need be."""
    rng = np.random.default_rng(3)
    given_up = 0
    for _ in range(400):
        shape = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        rates = 10.0 ** rng.uniform(-7, 7, shape)
        now = Situation(rates, np.ones(shape[0]), np.ones(shape[1]), np.arange(shape[1]))
        given_up += optimum(now, make_workspace(now)) == FAILED
        system = System(arrivals=np.ones(shape[0]), rates=rates)
        for planner, method in ((vertex, "vertex"), (grouped, "grouped")):
            plan = planner(now)
            assert np.array_equal(plan, allocate(system, method).shares)
            assert (plan.sum(axis=0) <= 1 + 1e-6).all()
    assert given_up > 0, "no problem was hard enough to show anything"


def test_what_nobody_can_solve_is_told_in_one_line() -> None:
    system = System(arrivals=[1e-25, 1e25], rates=[[1e25, 1e-25], [1e-25, 1e-20]])
    with pytest.raises(InputError, match="spread over too many decades"):
        allocate(system, "interior")


def test_the_compiled_simplex_serves_small_problems_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planners, "_smallest", planners.LARGE)
    rng = np.random.default_rng(1)
    system = System(
        arrivals=rng.uniform(1, 9, 12).tolist(), rates=rng.uniform(1, 9, (12, 3)).tolist()
    )
    before = allocate(system)
    planners.compile_simplex()
    assert planners._smallest == 0
    after = allocate(system)
    assert after.capacity == pytest.approx(before.capacity, rel=1e-12)
    assert after.class_prices == pytest.approx(before.class_prices, rel=1e-9)
