"""Let Numba do the same with less Python code while a program is compiled.

These are private parts of Numba; only ``quick.py`` imports this file, which says with which
versions and how to switch it off. All of them are changed while the outermost function of a program
is compiled, and are as before afterwards. Numba compiles one program at a time, so this does not
change other programs.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event, ir
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

NEW_OBJECTS = 20_000
"""Objects that are made before Python looks for garbage. By default it does so far more often."""
WITHOUT_VARIABLES = frozenset({bool, float, int, str, type(None), ir.Loc})
"""Classes of most values in instructions."""
_KNOWN: dict[Any, Any] = {}
"""Types of calls, by the types of their arguments and the options of the caller."""


@contextmanager
def remembered_calls() -> Iterator[None]:
    """Remember the types of calls while a program is compiled, and from one to the next."""
    options: dict[int, tuple[Any, str]] = {}
    functions: Any = BaseFunction
    work_out = functions.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        flags = ConfigStack.top_or_none()
        if id(flags) not in options:
            options[id(flags)] = flags, repr(flags)
        key = self, context, args, tuple(kws.items()), options[id(flags)][1]
        if key not in _KNOWN:
            found = work_out(self, context, args, kws)
            _KNOWN[key] = found, self._impl_keys[found.args]
        found, implementation = _KNOWN[key]
        self._impl_keys[found.args] = implementation
        return found

    functions.get_call_type = get_call_type
    try:
        yield
    finally:
        functions.get_call_type = work_out


@contextmanager
def less_bookkeeping() -> Iterator[None]:
    """List variables in fewer steps, report no events, and look for garbage less often.

    Numba reports the start and the end of every step. If somebody other than Numba's own timers
    listens, it does so here, too.
    """
    instruction: Any = ir.Inst
    reports: Any = event
    listeners = [each for some in reports._registered.values() for each in some]
    is_heard = any(type(each) is not event.TimingListener for each in listeners)
    before = instruction._rec_list_vars, reports.start_event, reports.end_event
    often, *rest = gc.get_threshold()
    instruction._rec_list_vars = _variables
    if not is_heard:
        reports.start_event = reports.end_event = _report_nothing
    if often:  # 0: never
        gc.set_threshold(max(often, NEW_OBJECTS), *rest)
    try:
        yield
    finally:
        instruction._rec_list_vars, reports.start_event, reports.end_event = before
        gc.set_threshold(often, *rest)


def _variables(self: Any, value: Any) -> list[Any]:
    """List the variables in a value: most values are of a few classes that have none."""
    cls = type(value)
    if cls in WITHOUT_VARIABLES:
        return []
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        found: list[Any] = value.list_vars()
        return found
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    found = []
    for each in value:
        cls = type(each)
        if cls is ir.Var:
            found.append(each)
        elif cls not in WITHOUT_VARIABLES:
            found += _variables(self, each)
    return found


def _report_nothing(*_: Any, **__: Any) -> None:
    pass
