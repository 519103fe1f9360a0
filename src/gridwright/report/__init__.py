"""Reports: HTML files that hold everything they show, and the page of the leaderboard."""

from .demonstration import write_demonstration
from .leaderboard import Leaderboard, Recorded, leaderboard
from .reproduction import write_reproduction

__all__ = [
    "Leaderboard",
    "Recorded",
    "leaderboard",
    "write_demonstration",
    "write_reproduction",
]
