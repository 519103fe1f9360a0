import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright.model import InputError, MarkovChain


@given(st.integers(2, 5), st.integers(0, 1000))
def test_the_stationary_shares_stay(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(size), size)
    chain = MarkovChain(states=rng.uniform(0.1, 1, size), transition=rows, step=10)
    assert chain.stationary.sum() == pytest.approx(1)
    assert chain.stationary @ rows == pytest.approx(chain.stationary)
    assert min(chain.states) <= chain.mean <= max(chain.states)


def test_one_state_is_a_constant() -> None:
    assert MarkovChain(states=[0.5], transition=[[1]], step=1).mean == 0.5


def test_a_state_that_is_left_for_good_does_not_count() -> None:
    chain = MarkovChain(states=[1, 0.5], transition=[[0.5, 0.5], [0, 1]], step=1)
    assert chain.mean == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": [1, 0]}, "states, entry 2 is 0; expected a number > 0"),
        ({"transition": [[0.9, 0.1]]}, "transition is 1×2; expected 2×2"),
        ({"transition": [[0.9, 0.2], [0.3, 0.7]]}, "transition, row 1 sums to 1.1; expected 1"),
        ({"transition": [[1, 0], [0, 1]]}, "parts that never reach each other"),
        ({"step": 0}, "step is 0; expected a number > 0"),
        ({"states": []}, "states is empty"),
    ],
)
def test_wrong_chains(changes: dict[str, object], message: str) -> None:
    right = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 10}
    with pytest.raises(InputError) as error:
        MarkovChain(**{**right, **changes})
    assert message in str(error.value)
