"""The simulator: compiled loops for every kind of policy, resumable and reproducible."""

from .device_arrays import Device
from .driver import PCG64, PHILOX, Replication, check_run
from .event_log import KINDS
from .launch import launch
from .on_device import Job
from .pieces import Pieces, in_pieces, joined
from .planning import is_planned_in_python
from .replicate import check_rng, check_system, line_of, replicate

__all__ = [
    "KINDS",
    "PCG64",
    "PHILOX",
    "Device",
    "Job",
    "Pieces",
    "Replication",
    "check_rng",
    "check_run",
    "check_system",
    "in_pieces",
    "is_planned_in_python",
    "joined",
    "launch",
    "line_of",
    "replicate",
]
