"""The simulator: compiled loops for every kind of policy, resumable and reproducible."""

from .central_setup import Delays
from .driver import Replication, check_run
from .event_log import KINDS
from .replicate import check_system, line_of, replicate

__all__ = [
    "KINDS",
    "Delays",
    "Replication",
    "check_run",
    "check_system",
    "line_of",
    "replicate",
]
