"""The live grid: real jobs on real machines, placed by the policies of the simulator."""

from ..model import JobFailedError
from .book import Book
from .chain import ChainOptions
from .client import Client, connect
from .execution_times import BatchOptions
from .export_tables import export, find_journal
from .future import JobFuture
from .grid import Grid
from .job import Cancel, Send, Stage
from .journal import Journal
from .journal_queries import (
    JobPage,
    Queues,
    Statistics,
    event_page,
    job_page,
    latest_events,
    queues,
    statistics,
)
from .mapper import Mapper
from .progress import here
from .remote import (
    Interruptions,
    MachineState,
    find_running,
    interruptions,
    machine_states,
    request,
    request_all,
)
from .settings import Corrections, Settings, corrections_of, on_timeout_of

__all__ = [
    "BatchOptions",
    "Book",
    "Cancel",
    "ChainOptions",
    "Client",
    "Corrections",
    "Grid",
    "Interruptions",
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
    "connect",
    "corrections_of",
    "event_page",
    "export",
    "find_journal",
    "find_running",
    "here",
    "interruptions",
    "job_page",
    "latest_events",
    "machine_states",
    "on_timeout_of",
    "queues",
    "request",
    "request_all",
    "statistics",
]
