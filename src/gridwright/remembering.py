"""Types of calls, worked out once.

Numba tries the implementations of an operator or a function one after the other, at every place
that calls it, and there are dozens of an operator. For the same types the answer is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

__all__ = ["remembered_calls"]

_KNOWN: dict[Any, Any] = {}


@contextmanager
def remembered_calls() -> Iterator[None]:
    """Remember the types of calls while a program is compiled, and from one to the next.

    Numba compiles one program at a time, so nobody else's is.
    """
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
