"""The live grid: real jobs on real machines, placed by the policies of the simulator."""

from .book import Book
from .job import Cancel, Job, Send, Stage

__all__ = ["Book", "Cancel", "Job", "Send", "Stage"]
