"""The simulator: compiled loops for push and pull systems, resumable and reproducible."""

from .replication import Replication, check_run, replicate
from .setup import Delays
from .trace import KINDS

__all__ = ["KINDS", "Delays", "Replication", "check_run", "replicate"]
