"""The live grid: real jobs on real machines, placed by the policies of the simulator."""

from .book import Book
from .grid import Grid, JobFuture
from .job import Cancel, Job, Send, Stage
from .journal import Journal
from .mapper import JobFailedError

__all__ = [
    "Book",
    "Cancel",
    "Grid",
    "Job",
    "JobFailedError",
    "JobFuture",
    "Journal",
    "Send",
    "Stage",
]
