"""Register functions as policies, and find policies by name or file."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from ..model import InputError, did_you_mean
from ..model.user_file import load_module
from .kind import BATCH, BY_PAIR, CHAIN, PEER, PULL, PUSH, Kind
from .policy import Policy, policy_of

DECORATORS = "with @push, @pull, @peer, @batch or @chain"

Memory = tuple[int | str, int | str]

_REGISTRY: dict[str, Policy] = {}


def push(
    decide: Any = None,
    *,
    plan: Callable[..., Any] | None = None,
    informed: int | None = -1,
    memory: Memory = BY_PAIR,
    on_timeout: str | Callable[..., str] | None = None,
) -> Any:
    """Make a push policy of a function (task_class, view, …) that answers a machine, or −1.

    ``memory`` says how many rows and columns ``view.memory`` has: whole numbers, the words
    "classes" and "machines", or multiples such as "2 classes".

    ``on_timeout`` says what a grid does with a job that takes too long: ``resubmit``, ``wait``,
    ``fail`` or ``duplicate``, or a function (task_class, machine, times, view) that answers one of
    them, where ``times`` is how often the job has timed out before.
    """
    options = {"informed": informed, "memory": memory, "on_timeout": on_timeout}
    return _decorate(PUSH, decide, plan=plan, **options)


def pull(
    decide: Any = None,
    *,
    plan: Callable[..., Any] | None = None,
    idle: str = "longest",
    preempt: bool | None = False,
    memory: Memory = BY_PAIR,
    on_timeout: str | Callable[..., str] | None = None,
) -> Any:
    """Make a pull policy of a function (machine, view, …) that answers a class, or −1.

    ``preempt`` says whether it is asked anew for all machines at every event, and interrupts tasks
    for others; None if it cannot be. ``memory`` and ``on_timeout`` are as for ``push``.
    """
    options = {"idle": idle, "preempt": preempt, "memory": memory, "on_timeout": on_timeout}
    return _decorate(PULL, decide, plan=plan, **options)


def peer(decide: Any = None, *, plan: Callable[..., Any] | None = None) -> Any:
    """Make a decentralised policy of a function (task_class, home, view, …) that answers a machine.

    The view holds what the home machine, where the task arrived, knows of the others. It asks the
    machines that its plan permits, and they learn its state in return.
    """
    return _decorate(PEER, decide, plan=plan)


def batch(decide: Any = None, *, immediate: bool = False) -> Any:
    """Make a batch policy of a function (waiting, view, …) that assigns tasks to free slots.

    It makes its assignments with ``assign`` and answers how many it made. With ``immediate``, the
    queues of the machines have no limit, and no task is discarded.
    """
    return _decorate(BATCH, decide, immediate=immediate)


def chain(decide: Any = None, *, order: str = "arrival") -> Any:
    """Make a policy for chains of a function (job, stage, view, …): it answers a machine, or −1."""
    return _decorate(CHAIN, decide, order=order)


def _decorate(kind: Kind, decide: Any, **options: Any) -> Any:
    if decide is None:
        return lambda function: _decorate(kind, function, **options)
    policy = policy_of(decide, kind, **options)
    register(policy)
    return policy


def register(policy: Policy) -> None:
    """Add a policy under its own name; a shipped name cannot be taken."""
    known = _REGISTRY.get(policy.name)
    if known is None or policy.is_shipped or not known.is_shipped:
        _REGISTRY[policy.name] = policy  # else a user's file may use the name, for itself alone


def policies() -> dict[str, Policy]:
    """Return every registered policy by its name."""
    return dict(sorted(_REGISTRY.items()))


def find(policy: str | PathLike[str] | Policy) -> Policy:
    """Find a policy by its name with parameters, or by a file that holds it; or return it.

    >>> find("kpb:k=3")
    <push policy kpb:k=3>
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, PathLike):
        return _in_file(Path(policy), None)
    if not isinstance(policy, str):
        raise InputError(f"{policy!r} is no policy; decorate the function, {DECORATORS}")
    name, *words = policy.strip().split(":")
    if "/" in name or "\\" in name or name.endswith(".py"):
        function = words.pop(0) if words and "=" not in words[0] else None
        found = _in_file(Path(name), function)
    elif name in _REGISTRY:
        found = _REGISTRY[name]
    else:
        hint = did_you_mean(name, _REGISTRY) or "; 'gridwright policies' lists them"
        raise InputError(f"no policy {name!r}{hint}")
    return found(**_values(policy, words)) if words else found


def _values(policy: str, words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not (key and value):
            raise InputError(f"policy {policy!r}: {word!r} is no parameter; expected key=value")
        if key in values:
            raise InputError(f"policy {policy!r}: {key} is given twice; expected it once")
        values[key] = value
    return values


def _in_file(path: Path, function: str | None) -> Policy:
    module = load_module(path)
    found = {
        value.name: value
        for value in vars(module).values()
        if isinstance(value, Policy) and value.decide.__module__ == module.__name__
    }
    if function is not None:
        if function not in found:
            raise InputError(f"{path} has no policy {function!r}{did_you_mean(function, found)}")
        return found[function]
    if not found:
        raise InputError(f"{path} has no policy; decorate its function, {DECORATORS}")
    if len(found) > 1:
        names = " or ".join(f"{path}:{name}" for name in found)
        raise InputError(f"{path} has {len(found)} policies; name one: {names}")
    return next(iter(found.values()))
