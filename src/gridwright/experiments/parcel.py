"""Systems and policies as bytes that another process can unpack.

What comes from a user's file travels as its text, so that the other machine need not have the file;
what was typed into a session travels as code.
"""

from __future__ import annotations

import io
import pickle
import tempfile
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from ..model.source import load_module, text_of
from ..policies import Policy, find

__all__ = ["pack", "unpack"]

SHIPPED = "gridwright."


def pack(value: Any) -> bytes:
    """Turn a value into bytes."""
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Policy):
                return _restored, _policy_parts(thing)
            if isinstance(thing, MappingProxyType):
                return MappingProxyType, (dict(thing),)
            if isinstance(thing, type | FunctionType) and (file := text_of(thing.__module__)):
                return _named, (*file, thing.__qualname__)
            return super().reducer_override(thing)

    page = io.BytesIO()
    Packer(page).dump(value)
    return page.getvalue()


def unpack(parcel: bytes) -> Any:
    """Turn bytes back into the value."""
    return pickle.loads(parcel)


def _policy_parts(policy: Policy) -> tuple[Any, ...]:
    """Say where a policy's function is found, and what was changed of its parameters."""
    module = policy.decide.__module__
    where: Any = policy.decide
    if module.startswith(SHIPPED):
        where = policy.name
    elif file := text_of(module):
        where = (*file, policy.name)
    parts = {
        field: getattr(policy, field)
        for field in ("kind", "planner", "informed", "own", "planning", "use_availability")
    }
    return where, {**parts, "allocating": policy.allocating}


def _restored(where: Any, parts: dict[str, Any]) -> Policy:
    if isinstance(where, FunctionType):
        return Policy(where, **parts)
    found = find(where) if isinstance(where, str) else _named(*where)
    assert isinstance(found, Policy)
    return replace(found, **parts)


def _named(file: str, text: str, name: str) -> Any:
    """Return what a user's file calls by a name."""
    value: Any = _module(file, text)
    for part in name.split("."):
        value = getattr(value, part)
    return value


@cache
def _module(file: str, text: str) -> ModuleType:
    """Load a user's file that came as text; it needs a place, since compiled code is kept by it."""
    digest = blake2b(text.encode(), digest_size=12).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"gridwright-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / file
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return load_module(path)
