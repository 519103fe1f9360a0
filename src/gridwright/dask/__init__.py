"""Dask with unequal workers: a policy decides where the tasks of a Dask cluster run.

client.register_plugin(gridwright.dask.Placement("pas_dg"))

dask scheduler --preload gridwright.dask --gridwright-policy pas_dg

Names are loaded when they are first used, so that importing this package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .placement import Placement

_MODULES = {"Placement": "placement", "dask_setup": "preload"}

__all__ = ["Placement"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'gridwright.dask' has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
