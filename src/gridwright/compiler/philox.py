"""Philox4×32-10: random numbers from a counter, the same ones on every processor.

The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
3" (2011). A key and a counter of 128 bits give four words of 32 bits. Here the key comes from the
seed, and the counter contains the number of the replication, that of its stream and a position. So
no two streams of a seed ever overlap, and a generator is six numbers in an array.

The functions are plain, and every target compiles them as they are. They count in whole numbers of
32 bits within numbers of 64: products wrap around in compiled code and grow in plain Python, and
the masks give the same bits in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import cos, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MASK = 0xFFFFFFFF
ROUNDS = 10
FACTORS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
"""The constants of the published generator: factors of a round, and what is added to the key."""
SCALE = 2.0**-53

KEY, KEY_2, REPLICATION, STREAM, DRAWN, SPARE = range(6)
WORDS = 6
"""The words of a generator. Each block gives two numbers of 53 bits, so one of them is spared."""


class Philox(NamedTuple):
    """A generator with those methods of NumPy's that loops and policies use.

    >>> rng = Philox.of(np.random.SeedSequence(1, spawn_key=(0,)), stream=2)
    >>> 0 <= rng.random() < 1
    True
    """

    words: NDArray[np.int64]

    @classmethod
    def of(cls, seed: np.random.SeedSequence, stream: int) -> Philox:
        """Make a stream of a replication; the last part of the spawn key is its number."""
        return cls(np.array([*_words(seed), stream, 0, 0], np.int64))

    def random(self, size: int | None = None) -> Any:
        """Draw a number from 0 to 1, or an array of them."""
        if size is None:
            return uniform(self.words)
        return np.array([uniform(self.words) for _ in range(size)])

    def uniform(self, low: float, high: float, size: int | None = None) -> Any:
        """Draw between two numbers; only plain Python has this method."""
        return low + (high - low) * self.random(size)

    def standard_exponential(self) -> float:
        """Draw from the exponential distribution with mean 1."""
        return exponential(self.words)

    def standard_normal(self) -> float:
        """Draw from the normal distribution with mean 0 and variance 1."""
        return normal(self.words)

    def standard_gamma(self, shape: float) -> float:
        """Draw from the gamma distribution with this shape and scale 1."""
        return gamma(self.words, shape)

    def numpy(self) -> np.random.Generator:
        """Return a generator of NumPy that is different at each call, for users' distributions."""
        self.words[DRAWN] += 2  # the same position is never used twice
        return np.random.default_rng(self.words[: DRAWN + 1].tolist())


def block(x0: int, x1: int, x2: int, x3: int, key0: int, key1: int) -> tuple[int, int, int, int]:
    """Return the four words that belong to a counter and a key, all of 32 bits.

    >>> [f"{word:08x}" for word in block(0, 0, 0, 0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    for _ in range(ROUNDS):
        one, two = FACTORS[0] * x0, FACTORS[1] * x2
        x0, x1 = ((two >> 32) & MASK) ^ x1 ^ key0, two & MASK
        x2, x3 = ((one >> 32) & MASK) ^ x3 ^ key1, one & MASK
        key0, key1 = (key0 + STEPS[0]) & MASK, (key1 + STEPS[1]) & MASK
    return x0, x1, x2, x3


def uniform(words: NDArray[np.int64]) -> float:
    """Draw a number from 0 to 1, without 1, of 53 bits."""
    drawn = int(words[DRAWN])
    words[DRAWN] = drawn + 1
    if drawn & 1:
        return float(words[SPARE]) * SCALE
    one, two, three, four = block(
        (drawn >> 1) & MASK,
        drawn >> 33,
        int(words[REPLICATION]),
        int(words[STREAM]),
        int(words[KEY]),
        int(words[KEY_2]),
    )
    words[SPARE] = ((three >> 5) << 26) | (four >> 6)
    return float(((one >> 5) << 26) | (two >> 6)) * SCALE


def exponential(words: NDArray[np.int64]) -> float:
    """Draw from the exponential distribution with mean 1, by inversion."""
    return -log(1.0 - uniform(words))


def normal(words: NDArray[np.int64]) -> float:
    """Draw from the standard normal distribution, by the method of Box and Muller."""
    radius = sqrt(-2.0 * log(1.0 - uniform(words)))
    return radius * cos(2.0 * pi * uniform(words))


def gamma(words: NDArray[np.int64], shape: float) -> float:
    """Draw from the gamma distribution with scale 1, by the method of Marsaglia and Tsang."""
    factor = 1.0
    if shape < 1.0:
        factor = (1.0 - uniform(words)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    while True:
        x = normal(words)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if log(1.0 - uniform(words)) < 0.5 * x * x + d - d * v + d * log(v):
                return factor * d * v


def words_of(seeds: Sequence[np.random.SeedSequence], streams: int) -> NDArray[np.int64]:
    """Return the first streams of many replications: the words of generators, [seed, stream, 6]."""
    words = np.zeros((len(seeds), streams, WORDS), np.int64)
    words[:, :, : REPLICATION + 1] = np.array([_words(seed) for seed in seeds])[:, None]
    words[:, :, STREAM] = np.arange(streams)
    return words


METHODS = {"random": uniform, "standard_exponential": exponential, "standard_normal": normal}
"""What the methods without arguments are, in compiled code."""


def _words(seed: np.random.SeedSequence) -> tuple[int, int, int]:
    """Return the words of a generator that belong to a replication."""
    *above, replication = seed.spawn_key or (0,)
    entropy = seed.entropy if isinstance(seed.entropy, int) else tuple(seed.entropy or ())
    return *_key(entropy, tuple(above)), replication


@lru_cache(maxsize=64)
def _key(entropy: Any, above: tuple[int, ...]) -> tuple[int, int]:
    words = np.random.SeedSequence(entropy, spawn_key=above).generate_state(2)
    return int(words[0]), int(words[1])
