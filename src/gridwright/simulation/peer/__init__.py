"""Decentralised systems: every machine has a view of its own, and learns when it meets others."""

from .run import check, run

__all__ = ["check", "run"]
