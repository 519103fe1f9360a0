"""The pages: each a small module that shows what the Python API can do."""

from __future__ import annotations

from ..desk import Desk

__all__ = ["make_pages"]


def make_pages(desk: Desk) -> None:
    """Make every page known to NiceGUI."""
