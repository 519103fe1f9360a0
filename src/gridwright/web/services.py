"""What the API and the pages of a server share."""

from dataclasses import dataclass, field

from .queue import Queue
from .runs import Runs


@dataclass
class Services:
    """The background tasks of a server, and the runs that it knows."""

    queue: Queue = field(default_factory=Queue)
    runs: Runs = field(default_factory=Runs)
