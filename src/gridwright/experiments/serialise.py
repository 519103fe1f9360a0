"""Turn systems and policies into bytes that another process can unpack.

Code from a user's file is sent as that file, so that the other machine need not have it; code typed
into a session is sent as it is.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from ..model import InputError
from ..model.user_file import contents_of, load_module
from ..policies import Policy, find

SETTINGS = ("kind", "planner", "own", "planning", "options", "use_availability", "allocating")
"""The fields of a policy that are sent with its function."""


def pack(value: Any) -> bytes:
    """Turn a value into bytes."""
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Policy):
                return _restored, _policy_parts(thing)
            if isinstance(thing, MappingProxyType):
                return MappingProxyType, (dict(thing),)
            if isinstance(thing, type | FunctionType) and "<" not in thing.__qualname__:
                file = contents_of(thing.__module__)
                if file is not None:
                    return _named, (*file, thing.__qualname__)
            return super().reducer_override(thing)

    page = io.BytesIO()
    Packer(page).dump(value)
    return page.getvalue()


def unpack(parcel: bytes) -> Any:
    """Turn bytes back into the value."""
    return pickle.loads(parcel)


def _policy_parts(policy: Policy) -> tuple[Any, ...]:
    """Return where a policy's function is found, and its settings."""
    where: Any = policy.decide
    if policy.original.is_shipped:
        where = policy.name
    elif file := contents_of(policy.decide.__module__):
        where = (*file, policy.name)
    return where, {field: getattr(policy, field) for field in SETTINGS}


def _restored(where: Any, parts: dict[str, Any]) -> Policy:
    if isinstance(where, FunctionType):
        return Policy(where, **parts)
    if isinstance(where, str):
        return replace(find(where), **parts)
    file, contents, name = where
    found = vars(_module(file, contents)).values()
    policy = next(each for each in found if isinstance(each, Policy) and each.name == name)
    return replace(policy, **parts)


def _named(file: str, contents: bytes, name: str) -> Any:
    """Return an object of a user's file by its name."""
    return attrgetter(name)(_module(file, contents))


@cache
def _module(file: str, contents: bytes) -> ModuleType:
    """Load a user's file from bytes. It is written to disk: compiled code is cached by its path."""
    digest = blake2b(contents, digest_size=12).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"gridwright-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder} belongs to somebody else")
    path = folder / file
    if not path.exists() or path.read_bytes() != contents:
        part = folder / f"{file}.{os.getpid()}"
        part.write_bytes(contents)
        part.replace(path)  # atomic: other processes may write it too
    return load_module(path)
