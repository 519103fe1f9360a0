"""Batches: tasks wait centrally, and mapping events send them to the machines' short queues."""

from .run import check, run

__all__ = ["check", "run"]
