"""The live grid: real jobs on real machines, placed by the policies of the simulator."""

from ..model import JobFailedError
from .book import Book
from .corrections import Corrections, corrections_of
from .future import JobFuture
from .grid import Grid
from .job import Cancel, Job, Send, Stage
from .journal import Journal
from .mapper import Mapper
from .paging import JobPage, Queues, event_page, job_page, queues
from .settings import Settings
from .statistics import Statistics, statistics
from .watching import MachineState, away_times, find_running, machine_states, request

__all__ = [
    "Book",
    "Cancel",
    "Corrections",
    "Grid",
    "Job",
    "JobFailedError",
    "JobFuture",
    "JobPage",
    "Journal",
    "MachineState",
    "Mapper",
    "Queues",
    "Send",
    "Settings",
    "Stage",
    "Statistics",
    "away_times",
    "corrections_of",
    "event_page",
    "find_running",
    "job_page",
    "machine_states",
    "queues",
    "request",
    "statistics",
]
