"""The algebra of pmfs on a grid."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright.model import (
    Deterministic,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    GridPmf,
    Hyperexponential,
    InputError,
    Lognormal,
    Pmf,
    Uniform,
    Weibull,
    robustness,
)
from gridwright.model.pmf import cumulative, moved

weights = st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda w: sum(w) > 1e-3)
widths = st.sampled_from([0.1, 1.0, 5.0])


@st.composite
def pmfs(draw: st.DrawFn, width: float = 1.0) -> GridPmf:
    mass = np.array(draw(weights))
    start = draw(st.floats(-50, 50))
    return GridPmf(width, mass / mass.sum(), start)


def whole(pmf: GridPmf) -> GridPmf:
    assert pmf.mass.sum() == pytest.approx(1, abs=1e-12)
    assert (pmf.mass >= 0).all()
    assert pmf.cdf[-1] == 1
    return pmf


@given(pmfs(), pmfs(), st.floats(-20, 80), st.integers(1, 15), st.floats(0.2, 3))
def test_mass_is_1_after_every_operation(
    one: GridPmf, other: GridPmf, time: float, bins: int, factor: float
) -> None:
    both = whole(one.convolve(other))
    whole(both.shift(time))
    whole(both.gather(bins))
    whole(GridPmf(1, one.mass).scale(factor))
    whole(moved(GridPmf(1, one.mass), bins - 8))
    if both.by(time) > 1e-9:
        assert whole(both.truncate(time)).values[-1] <= time + 1e-6
    if both.by(time) < 1 - 1e-9:
        left = whole(both.after(time))
        assert left.values[left.mass > 0][0] > time - 1e-6


@given(pmfs(), pmfs())
def test_means_and_variances_add_up(one: GridPmf, other: GridPmf) -> None:
    both = one.convolve(other)
    assert both.mean == pytest.approx(one.mean + other.mean, abs=1e-9)
    assert both.variance == pytest.approx(one.variance + other.variance, abs=1e-8)
    assert one.shift(3).mean == pytest.approx(one.mean + 3, abs=1e-9)


@given(pmfs(), pmfs(), pmfs())
def test_the_order_of_convolution_is_irrelevant(a: GridPmf, b: GridPmf, c: GridPmf) -> None:
    first = a.convolve(b).convolve(c)
    for one, two, three in itertools.permutations((a, b, c)):
        other = one.convolve(two).convolve(three)
        assert other.mass == pytest.approx(first.mass, abs=1e-12)
        assert other.start == pytest.approx(first.start, abs=1e-12)


@given(pmfs(), st.integers(1, 15))
def test_gathering_never_loses_the_tail(pmf: GridPmf, bins: int) -> None:
    short = pmf.gather(bins)
    n = len(short.mass)
    assert n <= bins
    assert short.mass[:-1] == pytest.approx(pmf.mass[: n - 1])
    assert short.mass[-1] == pytest.approx(pmf.mass[n - 1 :].sum(), abs=1e-12)


@given(pmfs(), st.floats(0, 100))
def test_conditioning_splits_a_pmf_in_two(pmf: GridPmf, time: float) -> None:
    p = pmf.by(time)
    if 1e-6 < p < 1 - 1e-6:
        early, late = pmf.truncate(time), pmf.after(time)
        assert p * early.mean + (1 - p) * late.mean == pytest.approx(pmf.mean, abs=1e-6)


@given(pmfs(), st.floats(0.5, 3))
def test_scaling_keeps_the_mean(pmf: GridPmf, factor: float) -> None:
    times = GridPmf(1.0, np.concatenate([[0, 0, 0], pmf.mass]))
    assert times.scale(factor).mean == pytest.approx(times.mean * factor, rel=1e-9)


@given(pmfs(), st.floats(0, 1))
def test_a_quantile_is_the_least_time_with_its_share(pmf: GridPmf, share: float) -> None:
    time = pmf.quantile(share)
    assert pmf.by(time) >= share - 1e-9
    assert pmf.by(time - pmf.width) <= share + 1e-9


SHAPES: list[Distribution] = [
    Exponential(),
    Deterministic(),
    Hyperexponential(scv=3),
    Gamma(shape=2.5),
    Erlang(stages=3),
    Weibull(shape=1.5),
    Lognormal(scv=0.5),
    Uniform(low=1, high=3),
    Pmf(values=[4, 1, 2], probabilities=[0.25, 0.5, 0.25]),
]


class Own(Distribution):
    """A user's own: uniform between 0 and 2."""

    @property
    def variance(self) -> float:
        return 1 / 3

    def sample(self, rng: np.random.Generator, size: int | None = None) -> object:
        return rng.uniform(0, 2, size)


@pytest.mark.parametrize("shape", [*SHAPES, Own()], ids=lambda s: type(s).__name__)
def test_any_distribution_becomes_a_pmf_of_its_mean_and_variance(shape: Distribution) -> None:
    pmf = GridPmf.of(shape, mean=100, width=1)
    assert pmf.mean == pytest.approx(100, rel=0.01)
    assert pmf.variance == pytest.approx(shape.variance * (100 / shape.mean) ** 2, rel=0.03, abs=1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: type(s).__name__)
def test_the_cumulative_function_is_that_of_the_draws(shape: Distribution) -> None:
    draws = np.asarray(shape.sample(np.random.default_rng(5), 40_000))
    for at in (0.3, 0.9, 1.0, 1.7, 2.5):
        seen = float((draws <= at).mean())
        assert float(cumulative(shape, at)) == pytest.approx(seen, abs=0.011)  # 4.4 σ


def test_a_histogram_of_samples() -> None:
    rng = np.random.default_rng(1)
    samples = rng.gamma(8, 10, 500)
    pmf = GridPmf.from_samples(samples, width=5)
    assert pmf.mean == pytest.approx(samples.mean(), abs=2.5)
    assert pmf.mass[0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GridPmf(1, [0.5, 0.4]), "the probabilities sum to 0.9; expected 1"),
        (lambda: GridPmf(1, [1.5, -0.5]), "none of them negative"),
        (lambda: GridPmf(1, []), "a pmf needs a list of probabilities"),
        (lambda: GridPmf(0, [1]), "the width of a pmf is 0"),
        (lambda: GridPmf(1, [1]).convolve(GridPmf(2, [1])), "pmfs of widths 1 and 2"),
        (lambda: GridPmf(1, [0, 1]).truncate(0), "it cannot finish by 0"),
        (lambda: GridPmf(1, [0, 1]).after(2), "it must finish by 2"),
        (lambda: GridPmf(1, [1]).gather(0), "bins is 0"),
        (lambda: GridPmf(1, [1]).scale(0), "the factor is 0"),
        (lambda: GridPmf.from_samples([], 1), "a pmf needs measured times"),
        (lambda: GridPmf.from_samples([1e9], 1), "choose it wider"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def brute_force(tasks: list[tuple[GridPmf, float]]) -> tuple[float, float]:
    """Return P(all on time) and the expected number on time by trying every outcome."""
    rho = expected = 0.0
    for outcome in itertools.product(*(range(len(pmf.mass)) for pmf, _ in tasks)):
        p, time, on_time = 1.0, 0.0, []
        for (pmf, deadline), k in zip(tasks, outcome, strict=True):
            p *= float(pmf.mass[k])
            time += float(pmf.values[k])
            on_time.append(time <= deadline + 1e-9)
        rho += p * all(on_time)
        expected += p * sum(on_time)
    return rho, expected


small = st.lists(st.floats(0.01, 1), min_size=1, max_size=4)


@settings(max_examples=60)
@given(st.lists(st.tuples(small, st.integers(0, 12)), min_size=1, max_size=4))
def test_robustness_against_every_outcome(drawn: list[tuple[list[float], int]]) -> None:
    tasks = [
        (GridPmf(1, np.array([0.0, *mass]) / sum(mass)), float(deadline))
        for mass, deadline in drawn
    ]
    found = robustness(tasks)
    rho, expected = brute_force(tasks)
    assert found.rho == pytest.approx(rho, abs=1e-12)
    assert found.expected == pytest.approx(expected, abs=1e-12)


def test_robustness_of_several_machines() -> None:
    run = GridPmf(1, [0, 0.5, 0.5])
    one, other = [(run.shift(10), 11.0), (run, 13.0)], [(run, 2.0)]
    assert robustness(one, other) == (0.5, 2.0, 2.25)
    assert robustness() == (1, 0, 0)
    hopeless = robustness([(run, 0.5), (run, 2.0)])
    assert hopeless == (0, 0.25, 0.25)  # the published count leaves the first task out
