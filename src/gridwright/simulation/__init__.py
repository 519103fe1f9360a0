"""The simulator: compiled loops for every kind of policy, resumable and reproducible."""

from .replicate import check_system, line_of, replicate
from .replication import Replication, check_run
from .setup import Delays
from .trace import KINDS

__all__ = [
    "KINDS",
    "Delays",
    "Replication",
    "check_run",
    "check_system",
    "line_of",
    "replicate",
]
