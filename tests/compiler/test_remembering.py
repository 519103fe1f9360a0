import numpy as np
import pytest
from numba.core.errors import NumbaError
from numba.core.types.functions import BaseFunction

from gridwright.compiler.link import link, point
from gridwright.compiler.quick import remembered_calls


def add(x: float, y: float) -> float:
    return max(x, y) + x


def no_sum(x: object) -> object:
    return x + "never"  # type: ignore[operator]


def test_numba_is_left_as_it_was() -> None:
    before = BaseFunction.get_call_type
    assert link(add)(1.0, 2.0) == 3.0
    with pytest.raises(NumbaError):
        link(no_sum)(np.zeros(1))
    with remembered_calls(), remembered_calls():
        assert BaseFunction.get_call_type is not before
    assert BaseFunction.get_call_type is before


def test_each_type_has_its_own_answer() -> None:
    linked = link(add)
    answers = [linked(1, 2), linked(1.0, 2.5), linked(True, 2)]
    assert [(type(each), each) for each in answers] == [(int, 3), (float, 3.5), (int, 3)]


def doubled(x: float) -> float:
    return add(x, x)


def test_programs_of_both_sorts_give_the_same() -> None:
    import numba

    pointer = point(doubled, numba.float64, numba.float64)
    assert pointer.__wrapper_address__() != 0
    assert link(doubled)(2.0) == link(doubled, inlined=True)(2.0) == 4.0
