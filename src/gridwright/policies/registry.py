"""The policies by name, and how a policy is named: by name, by callable, by file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from ..model import InputError, did_you_mean
from ..model.user_file import load_module
from .policy import REGISTRY, Policy

__all__ = ["find", "policies"]

KINDS = "with @push, @pull, @peer, @batch or @chain"


def policies() -> dict[str, Policy]:
    """Return every registered policy by its name."""
    return dict(sorted(REGISTRY.items()))


def find(policy: str | PathLike[str] | Policy) -> Policy:
    """Find a policy: itself, its name with parameters, or a file that holds one.

    >>> find("kpb:k=3")
    <push policy kpb:k=3>
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, PathLike):
        return _in_file(Path(policy), None)
    if not isinstance(policy, str):
        raise InputError(f"{policy!r} is no policy; decorate the function, {KINDS}")
    name, *words = policy.strip().split(":")
    if "/" in name or "\\" in name or name.endswith(".py"):
        function = words.pop(0) if words and "=" not in words[0] else None
        found = _in_file(Path(name), function)
    elif name in REGISTRY:
        found = REGISTRY[name]
    else:
        hint = did_you_mean(name, REGISTRY) or "; 'gridwright policies' lists them"
        raise InputError(f"no policy {name!r}{hint}")
    return found(**_values(policy, words)) if words else found


def _values(policy: str, words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in (_pair(policy, word) for word in words):
        if key in values:
            raise InputError(f"policy {policy!r}: {key} is given twice; expected it once")
        values[key] = value
    return values


def _pair(policy: str, word: str) -> tuple[str, Any]:
    key, equals, value = word.partition("=")
    if not (key and equals and value):
        raise InputError(f"policy {policy!r}: {word!r} is no parameter; expected key=value")
    return key, value


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
        raise InputError(f"{path} has no policy; decorate its function, {KINDS}")
    if len(found) > 1:
        names = " or ".join(f"{path}:{name}" for name in found)
        raise InputError(f"{path} has {len(found)} policies; name one: {names}")
    return next(iter(found.values()))
