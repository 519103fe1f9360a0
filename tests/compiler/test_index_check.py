"""An index out of range in compiled code is an error that names the line."""

from collections.abc import Callable
from traceback import extract_tb
from typing import Any

import numpy as np
import pytest
from numba import cfunc, guvectorize, njit

from gridwright.compiler.checks import readonly
from gridwright.compiler.link import _hows, _program, bind, link, target
from gridwright.compiler.target import CPU
from gridwright.policies.choice import least_completion
from gridwright.policies.view import View
from gridwright.simulation.push import retire

TABLE = np.arange(3.0)
RECORDS = np.rec.array([(1.0, 2), (3.0, 4)], [("rate", "f8"), ("n", "i8")])


def read(a: Any, k: int) -> float:
    return a[k, 0]


def write(a: Any, k: int) -> float:
    a[0, k] = 9.0
    return 9.0


def look_up(a: Any, k: int) -> float:
    return TABLE[k]


def take_a_record(a: Any, k: int) -> float:
    return RECORDS[k].rate


def take_a_field(a: Any, k: int) -> float:
    return RECORDS.rate[k]


def in_a_helper(a: Any, k: int) -> float:
    return 1.0 + look_up(a, k)


def of_a_row(a: Any, k: int) -> float:
    return a[0][1:][k]


def assert_raised_at(function: Any, line: int, error: Exception) -> None:
    """Check the last line of a traceback; by public means Numba gives none to a wrong index."""
    if type(target()) is not CPU:
        frame = extract_tb(error.__traceback__)[-1]
        first = function.__code__.co_firstlineno
        assert (frame.filename, frame.lineno) == (__file__, first + line)


@pytest.fixture(autouse=True, params=["1", "0"], ids=["quick", "public"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", request.param)


@pytest.mark.parametrize(
    "function", [read, write, look_up, take_a_record, take_a_field, in_a_helper, of_a_row]
)
def test_an_index_out_of_range_names_its_line(function: Callable[[Any, int], float]) -> None:
    compiled = link(function)
    array = np.arange(9.0).reshape(3, 3)
    for k in (0, 1, -1, -2):
        assert compiled(array.copy(), k) == bind(function)(array.copy(), k)
    for k in (3, -4, 10**15):
        with pytest.raises(IndexError, match="out of bounds") as error:
            compiled(array, k)
        at_fault = look_up if function is in_a_helper else function
        assert_raised_at(at_fault, 1, error.value)
    assert (array == np.arange(9.0).reshape(3, 3)).all()


def ask(task_class: int, view: View) -> int:
    task_class += 1
    return least_completion(task_class, view, 0)


def test_a_wrong_index_given_to_a_function_of_the_package_is_the_callers() -> None:
    from gridwright.policies.view import CLASS, MACHINE, records

    pairs = np.ones((2, 2))
    view = View(
        0.0, records(2, MACHINE), records(2, CLASS), pairs, pairs, pairs, np.ones((2, 2), np.int64),
        pairs, pairs, np.zeros(8), np.random.default_rng(1),
    )  # fmt: skip
    assert link(ask)(0, view) == 0
    with pytest.raises(IndexError) as error:
        link(ask)(1, view)
    assert_raised_at(ask, 2, error.value)


def test_the_loops_of_the_package_are_not_checked() -> None:
    own, asked = (_program(each, {}) for each in (retire, ask))
    assert not any(how.checked for how in _hows(own, [], True).values())
    assert _hows(asked, [], True)[least_completion].checked  # type: ignore[index]


def flat(a: Any, k: int) -> float:
    return a.flat[k]


def flat_table(a: Any, k: int) -> float:
    return TABLE.flat[k]


def iterated(a: Any, k: int) -> float:
    for x in np.nditer(a):
        x[...] = k  # type: ignore[index]
    return 0.0


def by_name(a: Any, k: int) -> float:
    return getattr(a, "flat")[k]  # noqa: B009


@njit
def quick(a: Any, k: int) -> float:
    return a[0, k]


@guvectorize("(n),()->()")  # compiled when it is called
def generalised(a: Any, k: int, out: Any) -> None:
    out[0] = a[k]


@cfunc("f8(i8)")
def pointed(k: int) -> float:
    return TABLE[k]


PAIR = (1.0, (quick,))


def in_a_tuple(a: Any, k: int) -> float:
    return PAIR[1][0](a, k)


def by_default(a: Any, k: int, f: Any = quick) -> float:
    return f(a, k)


def by_guvectorize(a: Any, k: int) -> float:
    return generalised(a[0], k)


def by_pointer(a: Any, k: int) -> float:
    return pointed(k)


def of_any_shape(a: Any, k: int) -> float:
    return readonly(a, 1, k + 1)[0, k]


def deleted(a: Any, k: int) -> float:
    return np.delete(a[0], np.array([k])).sum()


def along_an_axis(a: Any, k: int) -> float:
    return np.take_along_axis(a, np.array([[k]]), 0).sum()


def strided(a: Any, k: int) -> float:
    return np.lib.stride_tricks.as_strided(a[0], (k + 1,), (8,))[k]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (flat, ".flat"),
        (flat_table, ".flat"),
        (iterated, "np.nditer"),
        (by_name, "getattr"),
        (in_a_tuple, "PAIR"),
        (by_default, "a compiled function as a default"),
        (by_guvectorize, "generalised"),
        (by_pointer, "pointed"),
        (of_any_shape, "readonly"),
        (deleted, "np.delete"),
        (along_an_axis, "np.take_along_axis"),
        (strided, "np.lib.stride_tricks.as_strided"),
    ],
)
def test_what_numba_does_not_check_is_refused(function: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"uses {name}, which is not checked"):
        link(function)


def too_long(a: Any, k: int) -> float:
    return np.add(a[0], a[0], np.zeros(k)).sum()


def test_an_array_for_a_result_is_refused() -> None:
    with pytest.raises(Exception, match=r"np\.add is given an array for its result"):
        link(too_long)(np.ones((3, 3)), 30)


def with_numpy(a: Any, k: int) -> float:
    return np.dot(a[k], np.add(a[0], 1.0)) + np.round(np.sqrt(a), 2).sum() + float(np.argmin(a))


def by_name_again(a: Any, k: int) -> float:
    return quick(a, k)


@pytest.mark.parametrize("function", [with_numpy, by_name_again])
def test_safe_functions_are_allowed(function: Any) -> None:
    array = np.arange(9.0).reshape(3, 3)
    assert link(function)(array, 1) == pytest.approx(function(array, 1))


def fails(k: int) -> int:
    if k > 5:
        raise ValueError("too large")
    return int(TABLE[k])


fails.__module__ = "gridwright.compiler.checks"


def calls(k: int) -> int:
    return fails(k)


def test_only_a_wrong_index_is_shown_at_the_call() -> None:
    with pytest.raises(ValueError, match="too large"):
        link(calls)(6)
    with pytest.raises(IndexError, match="out of bounds") as error:
        link(calls)(3)
    assert_raised_at(calls, 1, error.value)
