"""What Numba finds in fewer steps is the same, and who listens to it hears everything."""

import gc
from typing import Any

from numba.core import event, ir
from numba.core.compiler import run_frontend

from gridwright.compiler.numba_shortcuts import NEW_OBJECTS, less_bookkeeping

KIND = "numba:run_pass"


def of_many_kinds(numbers: Any, start: int = 1, *more: Any) -> Any:
    """Have expressions, statements, tuples, keywords and slices among the instructions."""
    found = {"first": numbers[0], "rest": [each + start for each in numbers[1:start]]}
    first, others = numbers
    for k, each in enumerate(more):
        if each is None:
            raise ValueError("none", k)
        numbers[k] = max(first, each, key=abs) if k % 2 else -each
    del first
    return found, others, (start, f"{start}{more}")


def variables() -> list[list[str]]:
    blocks = run_frontend(of_many_kinds).blocks.values()
    statements = [each for block in blocks for each in block.body]
    values = [each.value for each in statements if isinstance(each, ir.Assign)]
    instructions = [each for each in [*statements, *values] if isinstance(each, ir.Inst)]
    return [[variable.name for variable in each.list_vars()] for each in instructions]


def test_the_variables_of_instructions_are_those_of_numba() -> None:
    usual = variables()
    with less_bookkeeping():
        found = variables()
    assert found == usual
    assert {0, 1, 2, 3} <= {len(each) for each in usual}


def test_who_listens_hears_the_events() -> None:
    with event.install_recorder(KIND) as heard, less_bookkeeping(), event.trigger_event(KIND):
        pass
    assert len(heard.buffer) == 2


def test_timers_of_numba_are_not_needed() -> None:
    timer: Any = event.TimingListener()
    with event.install_listener(KIND, timer):
        with less_bookkeeping(), event.trigger_event(KIND):
            pass
        assert not timer.done
        with event.trigger_event(KIND):
            pass
        assert timer.done


def test_garbage_is_looked_for_as_before() -> None:
    before = gc.get_threshold()
    try:
        for often, meanwhile in ((700, NEW_OBJECTS), (0, 0), (10**6, 10**6)):
            gc.set_threshold(often, 7, 9)
            with less_bookkeeping():
                assert gc.get_threshold() == (meanwhile, 7, 9)
            assert gc.get_threshold() == (often, 7, 9)
    finally:
        gc.set_threshold(*before)
