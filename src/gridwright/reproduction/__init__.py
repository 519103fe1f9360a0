"""How each published table and figure is computed, and what comes of it."""

from .laboratory import FULL, PUBLISHED, QUICK, Laboratory, Run, Scale
from .page import label, picture_of, shortened, write_page
from .reproduce import Outcome, Reproduction, reproduce, runs_of, summary
from .target import Target, choose, targets
from .verdict import Verdict

__all__ = [
    "FULL",
    "PUBLISHED",
    "QUICK",
    "Laboratory",
    "Outcome",
    "Reproduction",
    "Run",
    "Scale",
    "Target",
    "Verdict",
    "choose",
    "label",
    "picture_of",
    "reproduce",
    "runs_of",
    "shortened",
    "summary",
    "targets",
    "write_page",
]
