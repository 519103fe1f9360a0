import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright.model import Failures, InputError, MarkovChain, System

TWO: dict[str, Any] = {"arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}
CHAIN = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 10}


def test_what_is_not_given_goes_without_saying() -> None:
    system = System(**TWO)
    assert system.classes == system.machines == system.groups == ("1", "2")
    assert system.counts == (1, 1)
    assert system.availability == (1, 1)
    assert system.failures is None
    assert system.believed is system
    assert (system.up_fraction == 1).all()


def test_it_is_immutable() -> None:
    system = System(**TWO)
    with pytest.raises(ValueError, match="frozen"):
        system.name = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        system.rates[0, 0] = 1


def test_arrays_are_copied_not_kept() -> None:
    rates = np.array([[8.0, 3.0], [4.0, 10.0]])
    system = System(arrivals=np.array([5, 8]), rates=rates)
    rates[0, 0] = 99
    assert system.rates[0, 0] == 8


def test_groups_spread_over_machines() -> None:
    system = System(
        **TWO, groups=["fast", "slow"], counts=[1, 3], availability=[0.5, 1], failures=None
    )
    assert system.shape == (2, 4)
    assert system.machines == ("fast", "slow.1", "slow.2", "slow.3")
    assert system.nominal.tolist() == [[8, 3, 3, 3], [4, 10, 10, 10]]
    assert system.effective.tolist() == [[4, 3, 3, 3], [2, 10, 10, 10]]


def test_slots_spread_over_machines(tmp_path: Path) -> None:
    system = System(**TWO, groups=["big", "small"], counts=[2, 1], slots=[2, 1])
    assert system.machines == ("big.1/1", "big.1/2", "big.2/1", "big.2/2", "small")
    assert system.nominal.tolist() == [[8, 8, 8, 8, 3], [4, 4, 4, 4, 10]]
    assert System(**TWO, slots=2).machines == ("1/1", "1/2", "2/1", "2/2")
    assert System(**TWO, slots=1) == System(**TWO)
    system.to_file(tmp_path / "slots.toml")
    assert System.from_file(tmp_path / "slots.toml") == system


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        (0, "slots"),
        ([1], "slots has 1 entries; expected 2, one per column of rates"),
        (100_000, "slots add up to 200,000 machines; expected at most 100,000"),
    ],
)
def test_wrong_slots(slots: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        System(**TWO, slots=slots)


def test_availability_per_machine() -> None:
    system = System(**TWO, counts=[1, 2], availability=[1, 0.5, MarkovChain(**CHAIN)])
    assert system.machines == ("1", "2", "3")
    assert system.mean_availability.tolist() == pytest.approx([1, 0.5, 0.875])


def test_failures_per_column() -> None:
    failures = Failures(mean_uptime=[20, float("inf")], mean_repair=5)
    system = System(**TWO, counts=[1, 2], failures=failures)
    assert system.up_fraction.tolist() == pytest.approx([0.8, 1, 1])


def test_arrivals_at_machines() -> None:
    system = System(arrivals=[[1, 1.5], [2, 0]], rates=[[8, 3], [4, 10]])
    assert system.arrival_rates.tolist() == [2.5, 2]


def test_what_is_believed() -> None:
    system = System(**TWO, assumed={"rates": [[1, 2], [3, 4]], "arrivals": [6, 7]})
    assert system.nominal.tolist() == [[8, 3], [4, 10]]
    assert system.believed.nominal.tolist() == [[1, 2], [3, 4]]
    assert system.believed.arrival_rates.tolist() == [6, 7]
    assert system.believed.assumed is None


def test_replace_validates() -> None:
    system = System(**TWO, name="two")
    assert system.replace(arrivals=[1, 2]).name == "two"
    with pytest.raises(InputError, match="expected a number > 0"):
        system.replace(arrivals=[1, -2])


def test_equality_is_by_value() -> None:
    assert System(**TWO) == System(**TWO, counts=[1, 1], execution="exponential")
    assert hash(System(**TWO)) == hash(System(**TWO))
    assert System(**TWO) != System(**TWO, name="two")
    assert System(**TWO) != System(**TWO, execution={"kind": "gamma", "shape": 2})
    assert System(**TWO) != 3


def test_it_travels() -> None:
    system = System(**TWO, availability=[1, CHAIN], failures={"mean_uptime": 9, "mean_repair": 1})
    assert system.shape  # something computed and kept
    assert pickle.loads(pickle.dumps(system)) == system
    assert copy.deepcopy(system) == system


def test_nothing_computed_from_it_can_be_changed() -> None:
    system = pickle.loads(pickle.dumps(System(**{**TWO, "arrivals": [[1, 2], [3, 4]]})))
    for name in ("arrivals", "rates", "nominal", "effective", "mean_availability", "up_fraction"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(system, name)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        system.arrival_rates[0] = 1


def test_replace_does_not_keep_what_was_never_given() -> None:
    wider = System(arrivals=[5], rates=[[8, 3]]).replace(rates=[[8, 3, 1]])
    assert wider.shape == (1, 3)


def test_a_distribution_that_stands_in_no_file_compares() -> None:
    space: dict[str, Any] = {}
    exec("from gridwright import Exponential\nclass Mem(Exponential):\n    ''", {}, space)
    system = System(**TWO, execution=space["Mem"]())
    assert system == system.replace(name="")
    assert system != System(**TWO)
    assert hash(system) == hash(system.replace(name=""))


def test_repr_is_readable() -> None:
    one = System(arrivals=[1.5], rates=[[2]], name="one")
    assert repr(one) == str(one) == "System('one': 1 class, 1 machine, arrivals [1.5])"


def test_python_errors_are_one_line_too() -> None:
    with pytest.raises(InputError, match=r"^System: rates, row 2, column 1 is -4; expected") as e:
        System(arrivals=[5, 8], rates=[[8, 3], [-4, 10]])
    assert "\n" not in str(e.value)


letters = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])
names = st.text(letters, min_size=1, max_size=8)
rates = st.floats(1e-6, 1e6) | st.integers(1, 100)
distributions = st.sampled_from(
    [
        "exponential",
        "deterministic",
        {"kind": "hyperexponential", "scv": 2.5},
        {"kind": "hyperexponential", "probabilities": [0.25, 0.75], "means": [1, 2]},
        {"kind": "weibull", "shape": 0.6},
        {"kind": "pmf", "values": [1, 2.5], "probabilities": [0.1, 0.9]},
    ]
)


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Draw a system with any of the parts a system may have."""
    classes, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(1, 3), min_size=columns, max_size=columns))
    each: Any = {"min_size": columns, "max_size": columns}
    row = st.lists(rates, **each)
    matrix = st.lists(row, min_size=classes, max_size=classes)
    share = st.floats(0.01, 1) | st.just(CHAIN)
    machines = sum(counts)
    availability = st.lists(share, **each) | st.lists(share, min_size=machines, max_size=machines)
    by_class = st.lists(rates, min_size=classes, max_size=classes)
    by_machine = st.lists(
        st.lists(rates, min_size=machines, max_size=machines), min_size=classes, max_size=classes
    )
    failures: Any = st.fixed_dictionaries(
        {
            "mean_uptime": rates | st.lists(rates | st.just(np.inf), **each),
            "mean_repair": rates,
        },
        optional={"uptime": distributions, "repair": st.lists(distributions, **each)},
    )
    assumed: Any = st.fixed_dictionaries(
        {},
        optional={
            "arrivals": by_class,
            "rates": matrix,
            "availability": availability,
            "inaccuracy": st.fixed_dictionaries({}, optional={"rates": st.floats(0, 1)}),
        },
    )
    parts: Any = st.fixed_dictionaries(
        {"arrivals": by_class | by_machine, "rates": matrix, "counts": st.just(counts)},
        optional={
            "name": st.text(letters, max_size=12),
            "classes": st.lists(names, min_size=classes, max_size=classes, unique=True),
            "groups": st.lists(names, **each, unique=True),
            "availability": availability,
            "execution": distributions,
            "interarrival": st.lists(distributions, min_size=classes, max_size=classes),
            "failures": failures,
            "assumed": assumed,
        },
    )
    return System(**draw(parts))


@given(systems())
@settings(deadline=None, max_examples=150)
def test_files_round_trip_exactly(system: System) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.toml"
        system.to_file(path)
        again = System.from_file(path)
        assert again == system
        assert again.to_toml() == system.to_toml()


def test_a_file_with_a_users_distribution(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from gridwright import Exponential\n\nclass Mine(Exponential):\n    'As good as any.'\n"
    )
    (tmp_path / "system.toml").write_text(
        'arrivals = [1]\nrates = [[2]]\nexecution = "./mine.py:Mine"\n'
    )
    system = System.from_file(tmp_path / "system.toml")
    assert pickle.loads(pickle.dumps(system)) == system
    (tmp_path / "elsewhere").mkdir()
    system.to_file(tmp_path / "elsewhere" / "copy.toml")
    assert System.from_file(tmp_path / "elsewhere" / "copy.toml") == system
