from math import gamma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from gridwright.model import (
    Deterministic,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    InputError,
    Lognormal,
    Pmf,
    Uniform,
    Weibull,
)
from gridwright.model.distribution import DISTRIBUTIONS, describe, parse

EXAMPLES = [
    Exponential(),
    Deterministic(),
    Hyperexponential(scv=2),
    Hyperexponential(scv=1),
    Hyperexponential(probabilities=[0.2, 0.5, 0.3], means=[0.5, 1, 4]),
    Gamma(shape=0.7),
    Erlang(stages=4),
    Weibull(shape=0.6),
    Weibull(shape=3),
    Lognormal(scv=0.5),
    Uniform(low=1, high=3),
    Pmf(values=[1, 2, 6], probabilities=[0.5, 0.25, 0.25]),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_log_transforms(example: Distribution) -> None:
    """Near 0 they begin with the mean and the variance; elsewhere draws agree (6 errors)."""
    assert example.has_transform
    step = 1e-4
    near = example.log_transform(step)
    assert near is not None
    expected = -step * example.mean + step**2 / 2 * example.variance
    assert near == pytest.approx(expected, rel=1e-6)
    draws = example.sample(np.random.default_rng(3), 100_000)
    for s in (0.3, 3.0):
        found, powers = example.log_transform(s), np.exp(-s * draws)
        error = powers.std() / np.sqrt(len(powers))
        assert found is not None
        assert np.exp(found) == pytest.approx(powers.mean(), abs=6 * error + 1e-12)


@pytest.mark.parametrize(
    ("example", "last"),
    [
        (Exponential(), 1.0),
        (Gamma(shape=0.7), 0.7),
        (Erlang(stages=4), 4.0),
        (Hyperexponential(probabilities=[0.2, 0.8, 0], means=[2, 0.5, 9]), 0.5),
        (Weibull(shape=0.9), 0.0),
        (Lognormal(scv=1), 0.0),
    ],
    ids=repr,
)
def test_where_a_transform_is_infinite(example: Distribution, last: float) -> None:
    assert example.log_transform(-last - 1e-9) == np.inf
    inside = example.log_transform(-last + 1e-9 * (last > 0))
    assert inside is not None
    assert -1e-12 <= inside < np.inf


@given(st.floats(1.01, 20), st.floats(0.01, 1.5))
def test_transforms_of_weibull_times_that_vary_less(shape: float, s: float) -> None:
    """By Jensen's and the Cauchy–Schwarz inequality."""
    up, down = (Weibull(shape=shape).log_transform(each) for each in (-s, s))
    assert up >= s * (1 - 1e-9)
    assert down >= -s * (1 + 1e-9)
    assert up + down >= 0


@pytest.mark.parametrize(("shape", "s"), [(1.0005, -1.0), (1.001, -0.999), (1.05, -1.0), (2.5, -4)])
def test_transforms_of_weibull_times_near_exponential_ones(shape: float, s: float) -> None:
    """Against the sum of all moments."""
    n = np.arange(200_000.0)
    terms = n * np.log(-s / gamma(1 + 1 / shape)) + gammaln(1 + n / shape) - gammaln(1 + n)
    assert terms[-1] < terms.max() - 40
    assert Weibull(shape=shape).log_transform(s) == pytest.approx(logsumexp(terms), rel=1e-9)


def test_a_mean_beyond_all_numbers_is_not_infinite() -> None:
    found = Weibull(shape=1.0001).log_transform(-2)
    assert found is not None
    assert 700 < found < np.inf


def test_every_kind_has_an_example() -> None:
    assert {type(example) for example in EXAMPLES} == set(DISTRIBUTIONS.values())


@pytest.mark.parametrize("distribution", EXAMPLES, ids=str)
def test_samples_have_the_stated_mean_and_variance(distribution: Distribution) -> None:
    draws = distribution.sample(np.random.default_rng(1), 400_000)
    assert draws.shape == (400_000,)
    assert (draws >= 0).all()
    error = 4.5 * draws.std() / np.sqrt(draws.size)
    assert draws.mean() == pytest.approx(distribution.mean, abs=error + 1e-12)
    squares = (draws - distribution.mean) ** 2
    error = 4.5 * squares.std() / np.sqrt(draws.size)
    assert squares.mean() == pytest.approx(distribution.variance, abs=error + 1e-12)


@pytest.mark.parametrize("distribution", EXAMPLES, ids=str)
def test_one_draw_is_one_number_and_seeds_repeat(distribution: Distribution) -> None:
    one = distribution.sample(np.random.default_rng(7))
    assert np.ndim(one) == 0
    again = distribution.sample(np.random.default_rng(7))
    assert float(one) == float(again)


@pytest.mark.parametrize("distribution", EXAMPLES, ids=str)
def test_a_description_reads_back(distribution: Distribution) -> None:
    assert parse(describe(distribution)) == distribution


@given(st.floats(1, 100))
def test_balanced_hyperexponential(scv: float) -> None:
    h2 = Hyperexponential(scv=scv)
    (p1, p2), (m1, m2) = h2.phases
    assert p1 * m1 == pytest.approx(p2 * m2)
    assert h2.mean == pytest.approx(1)
    assert 2 * (p1 * m1**2 + p2 * m2**2) - 1 == pytest.approx(scv)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"kind": "hyperexponential"}, "give either scv, or probabilities and means"),
        ({"kind": "hyperexponential", "scv": 0.5}, "scv is 0.5; expected a number ≥ 1"),
        (
            {"kind": "hyperexponential", "probabilities": [0.5, 0.4], "means": [1, 2]},
            "the probabilities sum to 0.9; expected 1",
        ),
        (
            {"kind": "hyperexponential", "probabilities": [1], "means": [1, 2]},
            "1 probabilities for 2 means",
        ),
        ({"kind": "pmf", "values": [0], "probabilities": [1]}, "the mean is 0"),
        ({"kind": "pmf", "values": [1, -1], "probabilities": [0.5, 0.5]}, "values, entry 2 is -1"),
        ({"kind": "uniform", "low": 3, "high": 2}, "low is 3; expected less than high"),
        ({"kind": "weibull", "shape": 0}, "shape is 0; expected a number ≥ 0.1"),
        ({"kind": "erlang", "stages": 1.5}, "stages is 1.5; expected a whole number"),
        ({"kind": "gamma", "shap": 2}, "unknown key shap; did you mean 'shape'?"),
        ({"kind": "lognormal", "scv": float("inf")}, "scv is inf; expected a finite number"),
        ("expnential", "no distribution 'expnential'; did you mean 'exponential' or"),
        ("zipf", "there are deterministic, erlang"),
        ({"shape": 2}, "is not a distribution; expected a name"),
        (3, "3 is not a distribution"),
        ("./mine.py", "'./mine.py' names no class; expected 'FILE.py:CLASS'"),
        ("./mine.py:Mine", "mine.py cannot be read: No such file"),
    ],
)
def test_wrong_descriptions(given_: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        parse(given_, tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


OWN = """
from gridwright import Distribution

class Triangular(Distribution):
    "Between 0 and 1."

    mode: float = 0.5

    @property
    def mean(self):
        return (1 + self.mode) / 3

    @property
    def variance(self):
        return (1 - self.mode + self.mode**2) / 18

    def sample(self, rng, size=None):
        return rng.triangular(0, self.mode, 1, size)
"""


def test_a_distribution_from_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    found = parse({"kind": "./mine.py:Triangular", "mode": 0.2}, tmp_path)
    assert found.mean == pytest.approx(0.4)
    assert describe(found, tmp_path) == {"kind": "mine.py:Triangular", "mode": 0.2}
    (tmp_path / "below").mkdir()
    assert describe(found, tmp_path / "below") == {"kind": "../mine.py:Triangular", "mode": 0.2}
    again = parse(describe(found, tmp_path / "below"), tmp_path / "below")
    assert again.variance == found.variance


def test_an_edited_file_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    parse("./mine.py:Triangular", tmp_path)
    (tmp_path / "mine.py").write_text(OWN.replace("(1 + self.mode) / 3", "0.7"))
    assert parse("./mine.py:Triangular", tmp_path).mean == 0.7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:", "mine.py, line 1: "),
        ("\n1 / 0", "mine.py, line 2: ZeroDivisionError"),
        ("raise SystemExit(3)", "mine.py, line 1: SystemExit: 3"),
        ("Triangular = 3", "has no distribution 'Triangular'"),
        (OWN.replace("Triangular", "Triangle"), "did you mean 'Triangle'?"),
        (OWN.replace("def sample", "def simple"), "sample"),
        (OWN.replace("return rng", "return -rng"), "must return as many finite numbers ≥ 0"),
        (OWN.replace(", size)", ")"), "must return as many finite numbers"),
        (OWN.replace("/ 18", "/ 0"), "ZeroDivisionError"),
        (OWN.replace("/ 3", "* -3"), "has mean -4.5"),
    ],
)
def test_a_wrong_users_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError) as error:
        parse("./mine.py:Triangular", tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_class_typed_at_a_prompt_cannot_be_named() -> None:
    space: dict[str, type[Distribution]] = {}
    exec(OWN, {"__name__": "nowhere"}, space)
    with pytest.raises(InputError, match="is not defined in a file"):
        describe(space["Triangular"]())
