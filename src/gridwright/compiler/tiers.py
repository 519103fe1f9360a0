"""Start a new policy soon: call it by its address until it pays to link it with the loop.

A loop that is linked with a policy is the fastest code, and takes seconds to compile. A loop that
calls the policy by its address is compiled once for all policies of a kind. A new policy is then
compiled by itself, in a tenth of a second. Such a loop takes up to 1.4 times as long to run,
because the policy is not inlined. When it has run for ``ENOUGH`` seconds, the two are linked, and
the linked loop continues where the other one stopped. Both give the same results to the last bit.
Loops that are slow to compile run ``PATIENCE`` times as long before they are linked: that takes
longer, and gains less, since less of their time is the policy's.

The loop gets an array of words in place of the policy's parameters: the address, a number that
stands for the types of what the policy is shown, and the parameters.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import thread_time
from typing import Any

import numpy as np

from .checks import unpacked

ENOUGH = 5.0
"""CPU seconds that a loop runs with a policy before they are linked, in one process."""
PATIENCE = 6.0
"""How many times longer a loop runs by address if it is slow to compile."""
POLICY = "decide"
"""The hook of a loop that is the policy."""
PARAMETERS = "arguments"
"""The parameter of a loop that has the parameters of the policy, in a tuple."""

Function = Callable[..., Any]


def answer_two(first: Any, view: Any, words: Any) -> int:
    """Call a policy that is asked about one thing."""
    answer: int = decide(first, view, *unpacked(words))
    return answer


def answer_three(first: Any, second: Any, view: Any, words: Any) -> int:
    """Call a policy that is asked about two things."""
    answer: int = decide(first, second, view, *unpacked(words))
    return answer


def decide(*_: Any) -> int:
    """Stand in for the policy."""
    return -1


decide.is_hook = True  # type: ignore[attr-defined]
ANSWERS: dict[int, Any] = {2: answer_two, 3: answer_three}
"""What compiles a policy by itself, by the number of arguments before its parameters."""
for each in ANSWERS.values():
    each.allocates_nothing = True


class Tier:
    """How long a loop has run with a policy in this process, and the two linked."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.linked: Any = None
        self.linking = Lock()
        self.compiled: dict[Any, Any] = {}
        """The loop and its first words, by ``kind_of`` its arguments."""


class Starting:
    """A loop with a policy that is not linked with it yet.

    ``prepared`` compiles both for arguments of some types. It returns the loop and its first words,
    or None if this policy can only be linked. If the arguments have a ``kind_of``, the loop takes
    those types only: to look at all types in every slice would take Numba up to 0.1 ms. ``link``
    links the two, when the loop has run for ``patience`` times ``ENOUGH``.
    """

    def __init__(
        self,
        tier: Tier,
        at: int,
        prepared: Callable[[tuple[Any, ...], bool], Any],
        link: Function,
        patience: float,
    ) -> None:
        self.tier, self.at, self.prepared, self.link = tier, at, prepared, link
        self.patience = patience
        self.loop: Any = None
        self.words: Any = None
        self.given: tuple[Any, ...] = ()

    def __call__(self, *given: Any) -> Any:
        """Run the loop."""
        if self.tier.linked is None and not self._is_as_before(given):
            self._prepare(given)
        if self.tier.linked is not None:
            return self.tier.linked(*given)
        before = thread_time()
        reason = self.loop(*given[: self.at], (self.words,), *given[self.at + 1 :])
        self.tier.spent += thread_time() - before
        is_enough = self.tier.spent > self.patience * ENOUGH
        if is_enough and self.tier.linking.acquire(blocking=False):
            with ThreadPoolExecutor(1) as other:  # its time does not count as that of the loop
                other.submit(self._link, given).result()
        return reason

    def _is_as_before(self, given: tuple[Any, ...]) -> bool:
        """Tell whether the arguments are those of the last slice, but for other times."""
        if len(given) != len(self.given):
            return False
        both = zip(given, self.given, strict=True)
        return all(a is b or (type(a) is type(b) is float) for a, b in both)

    def _prepare(self, given: tuple[Any, ...]) -> None:
        kind = kind_of(given)
        found = self.tier.compiled.get(kind) or self.prepared(given, kind is not None)
        if found is None:
            self.tier.linked = self.link()
            return
        if kind is not None:
            self.tier.compiled[kind] = found
        self.loop, first = found
        self.given = given  # parameters live as long as the words that have their addresses
        self.words = np.array([*first, *words_of(given[self.at])], np.int64)

    def _link(self, given: tuple[Any, ...]) -> None:
        """Link the policy with the loop; other threads run on meanwhile."""
        from numba import typeof

        linked = self.link()
        linked.compile(tuple(map(typeof, given)))
        self.tier.linked = linked


PLAIN = {bool, float, np.bool_, np.float64, np.int64, np.random.Generator, type(None)}
"""Classes whose objects all have one type in compiled code."""


def kind_of(value: Any) -> Any:
    """Return something that differs if the type of a value in compiled code does.

    None: only Numba can tell. It takes milliseconds for the arguments of a loop, which would be
    most of the time of a short replication.
    """
    cls = type(value)
    if isinstance(value, tuple):
        kinds = tuple(map(kind_of, value))
        return None if None in kinds else (cls, kinds)
    if isinstance(value, np.ndarray):
        flags, dtype = value.flags, value.dtype
        layout = flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable
        return cls, dtype, dtype.type, dtype.isalignedstruct, value.ndim, layout
    if cls is int:
        return cls, -(2**63) <= value < 2**63
    if hasattr(cls, "__wrapper_address__"):  # see ``point`` in link.py
        return "pointer", value.signature()
    return cls if cls in PLAIN else None


def words_of(arguments: tuple[Any, ...]) -> list[int]:
    """Return the parameters of a policy as words of eight bytes, as ``unpacked`` reads them."""
    found: list[int] = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            found += [each.ctypes.data, *each.shape]
        else:
            kind = np.float64 if isinstance(each, float | np.floating) else np.int64
            found.append(int(np.array([each], kind).view(np.int64)[0]))
    return found
