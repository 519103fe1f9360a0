"""The live grid: real jobs on real machines, placed by the policies of the simulator."""

from .book import Book
from .corrections import Corrections, corrections_of
from .grid import Grid, JobFuture
from .job import Cancel, Job, Send, Stage
from .journal import Journal
from .mapper import JobFailedError, Mapper, Settings
from .statistics import Statistics, statistics
from .watching import MachineState, find_running, machine_states

__all__ = [
    "Book",
    "Cancel",
    "Corrections",
    "Grid",
    "Job",
    "JobFailedError",
    "JobFuture",
    "Journal",
    "MachineState",
    "Mapper",
    "Send",
    "Settings",
    "Stage",
    "Statistics",
    "corrections_of",
    "find_running",
    "machine_states",
    "statistics",
]
