"""CPU availability: a constant share, or a Markov chain that moves between shares."""

from functools import cached_property
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Tag, model_validator

from .record import Fraction, Matrix, Positive, Record

__all__ = ["Availability", "MarkovChain"]


class MarkovChain(Record):
    """CPU availability that is drawn anew every ``step`` time units.

    ``states`` are shares of the CPU in (0, 1]; ``transition[k][l]`` is the probability that
    state k is followed by state l.

    >>> chain = MarkovChain(states=[1, 0.5], transition=[[0.9, 0.1], [0.3, 0.7]], step=10)
    >>> chain.stationary
    array([0.75, 0.25])
    >>> round(chain.mean, 6)
    0.875
    """

    states: tuple[Fraction, ...]
    transition: Matrix
    step: Positive

    @model_validator(mode="after")
    def _is_a_chain(self) -> Self:
        size = len(self.states)
        if not size:
            raise ValueError("states is empty; expected at least one")
        if self.transition.shape != (size, size):
            shape = "×".join(map(str, self.transition.shape))
            raise ValueError(f"transition is {shape}; expected {size}×{size}, a row per state")
        for row, total in enumerate(self.transition.sum(axis=1), start=1):
            if abs(total - 1) > 1e-9:
                raise ValueError(f"transition, row {row} sums to {total:.10g}; expected 1")
        singular = np.linalg.svd(self.transition - np.eye(size), compute_uv=False)
        if size > 1 and singular[-2] < 1e-12:
            raise ValueError("transition falls into parts that never meet, so it has no one mean")
        return self

    @cached_property
    def stationary(self) -> NDArray[np.float64]:
        """The long-run share of time in each state."""
        size = len(self.states)
        balance = np.vstack([self.transition.T - np.eye(size), np.ones(size)])
        shares = np.linalg.lstsq(balance, np.append(np.zeros(size), 1.0), rcond=None)[0]
        return np.clip(shares, 0, 1)

    @cached_property
    def mean(self) -> float:
        """The long-run mean availability."""
        return float(np.dot(self.stationary, self.states))


Availability = Annotated[
    Annotated[Fraction, Tag("\0number")] | Annotated[MarkovChain, Tag("\0chain")],
    Discriminator(lambda value: "\0chain" if isinstance(value, dict | MarkovChain) else "\0number"),
]
