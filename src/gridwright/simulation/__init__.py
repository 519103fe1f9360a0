"""The simulator: compiled loops for every kind of policy, resumable and reproducible."""

from .driver import Replication, check_run
from .event_log import KINDS
from .replicate import check_system, line_of, replicate

__all__ = ["KINDS", "Replication", "check_run", "check_system", "line_of", "replicate"]
