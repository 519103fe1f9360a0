"""Executors: what a grid runs jobs with. Another engine is one more file with the same calls."""

from .protocol import Ended, Event, Executor, MachineDown, MachineUp, Reading, Returned, Started

__all__ = [
    "Ended",
    "Event",
    "Executor",
    "MachineDown",
    "MachineUp",
    "Reading",
    "Returned",
    "Started",
]
