"""The quick compiler and the public one give the same results, and leave Numba as it was."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event, ir
from numba.core.errors import NumbaError
from numba.core.types.functions import BaseFunction

from gridwright.compiler import tiers
from gridwright.compiler.link import _LINKED, allocates_nothing, hook, link, point, target
from gridwright.compiler.target import CPU
from gridwright.simulation import Replication

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from numba_simulations import SIMULATIONS, digests

BOTH = pytest.mark.parametrize("switch", ["1", "0"], ids=["quick", "public"])


def add(x: float, y: float) -> float:
    return max(x, y) + x


def no_sum(x: object) -> object:
    return x + "never"  # type: ignore[operator]


def doubled(x: float) -> float:
    return add(x, x)


@hook
def chosen(x: float) -> float:
    return x


def logistic(x: float, n: int) -> float:
    for k in range(n):
        x = 3.7 * x * (1.0 - x) + chosen(x) / (k + 1.0)
        if x > 1.0:
            x -= np.floor(x)
    return x


def bend(x: float) -> float:
    return 0.01 * np.sin(x)


@allocates_nothing
def total(numbers: Any) -> float:
    found = 0.0
    for k in range(len(numbers)):
        found += logistic(numbers[k], 3 + k)
    return found


def normal(rng: Any, n: int) -> float:
    found = 0.0
    for _ in range(n):
        found += rng.standard_normal() * rng.exponential(2.0)
    return found


PROGRAMS: list[Callable[[], Any]] = [
    lambda: link(doubled)(2.0),
    lambda: link(doubled, inlined=True)(3),
    lambda: link(logistic, chosen=bend)(0.3, 50),
    lambda: link(total, inlined=True)(np.linspace(0.1, 0.9, 7)),
    lambda: link(total, chosen=bend, allocating=True)(np.linspace(0.1, 0.9, 7)),
    lambda: link(normal)(np.random.default_rng(3), 40),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_compilers_give_the_same(
    program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", switch)
        found.append(program())
    assert found[0] == found[1]


def test_the_quick_compiler_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", "0")
    assert type(target()) is CPU
    public = link(doubled)
    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", "1")
    assert (type(target()) is CPU) == (link(doubled) is public)


@BOTH
def test_numba_is_left_as_it_was(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", switch)
    before = private_parts()
    assert link(add)(1.0, 2.0) == 3.0
    with pytest.raises(NumbaError):
        link(no_sum)(np.zeros(1))
    assert private_parts() == before


def private_parts() -> list[Any]:
    listing: Any = ir.Inst
    return [BaseFunction.get_call_type, listing._rec_list_vars, event.start_event, event.end_event]


@BOTH
def test_each_type_has_its_own_answer(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", switch)
    linked = link(add)
    answers = [linked(1, 2), linked(1.0, 2.5), linked(3, 2.5)]
    assert [(type(each), each) for each in answers] == [(int, 3), (float, 3.5), (float, 6.0)]


@BOTH
def test_a_pointer_has_an_address(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", switch)
    pointer = point(doubled, numba.float64, numba.float64)
    assert pointer.__wrapper_address__() != 0


OF_EVERY_KIND = [each for each in SIMULATIONS if each[1] != "mct"]
"""``mine`` is pushed, too, on the same system, and its code is checked."""


@pytest.mark.slow
@pytest.mark.parametrize(("system", "policy", "horizon"), OF_EVERY_KIND)
def test_simulations_are_the_same_bit_for_bit(
    system: str, policy: str, horizon: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "ENOUGH", 0.0)  # the quick compiler calls by address, then links
    found, programs = [], []
    for switch in ("1", "0"):
        monkeypatch.setenv("GRIDWRIGHT_QUICK_COMPILER", switch)
        linked = set(_LINKED)
        found.append(digests(system, policy, horizon))
        programs.append(set(_LINKED) - linked)
    assert programs[1], "the public compiler has nothing of the quick one"
    assert set(found[0]) == set(Replication._fields) - {"seconds"}
    assert found[0] == found[1]
