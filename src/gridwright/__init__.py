"""Gridwright: manage work on unequal machines.

The stub beside this file lists the names that users import. Each is loaded when it is first used,
so that importing the package is quick.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from .tabular import register_painter

__version__ = "0.1.0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_PACKAGES = {
    alias.name: node.module
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__all__ = ["__version__", *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES:
        raise AttributeError(f"module 'gridwright' has no attribute {name!r}")
    package = _PACKAGES[name]
    if package is None:
        return import_module(f".{name}", __name__)
    return getattr(import_module(f".{package}", __name__), name)


def __dir__() -> list[str]:
    return __all__


def _draw(found: Any) -> Any:
    """Draw a result; pictures are loaded when the first one is drawn."""
    return import_module(".plots", __name__).draw(found)


register_painter(_draw)
