from typing import Any, NamedTuple

import numpy as np
import pytest

from gridwright.compiler.link import link, shared


@shared
class Inside(NamedTuple):
    numbers: Any


@shared
class Outside(NamedTuple):
    count: Any
    inside: Inside


def fill(outside: Outside, value: float) -> int:
    """Write through both addresses, and say how often that was done."""
    outside.inside.numbers[:] = value
    outside.count[0] += 1
    return outside.count[0]


def fill_twice(outside: Outside, value: float) -> int:
    fill(outside, value)
    return fill(outside, value + outside.inside.numbers[0])


def test_fields_are_read_and_written_through() -> None:
    outside = Outside(np.zeros(1, np.int64), Inside(np.zeros(3)))
    linked = link(fill_twice)
    assert [linked(outside, 2.0), linked(outside, 3.0)] == [2, 4]
    assert outside.inside.numbers.tolist() == [6.0] * 3


def test_the_tuple_of_each_call_is_the_one_that_counts() -> None:
    first, second = (Outside(np.zeros(1, np.int64), Inside(np.zeros(2))) for _ in range(2))
    linked = link(fill_twice)
    linked(first, 1.0)
    linked(second, 5.0)
    linked(first._replace(inside=Inside(second.inside.numbers)), 7.0)
    assert first.inside.numbers.tolist() == [2.0, 2.0]
    assert second.inside.numbers.tolist() == [14.0, 14.0]
    assert (first.count[0], second.count[0]) == (4, 2)


def add_up(outside: Outside) -> float:
    return outside.inside.nowhere[0]  # type: ignore[attr-defined]


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(Exception, match="nowhere"):
        link(add_up)(Outside(np.zeros(1), Inside(np.zeros(1))))
