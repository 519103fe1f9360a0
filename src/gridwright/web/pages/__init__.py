"""The pages: each a small module that shows what the Python API can do."""

from __future__ import annotations

__all__ = ["make_pages"]


def make_pages() -> None:
    """Make every page known to NiceGUI."""
