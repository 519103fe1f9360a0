"""How each published table and figure is computed, and what comes of it."""

from .data import Explanation, Row, Section, explanations, read_page, section_of, shipped_page
from .laboratory import FULL, PUBLISHED, QUICK, Laboratory, Run, Scale
from .page import label, picture_of, shortened, write_page
from .reproduce import Outcome, Reproduction, reproduce, runs_of, summary
from .target import Target, choose, targets
from .verdict import Verdict, counted

__all__ = [
    "FULL",
    "PUBLISHED",
    "QUICK",
    "Explanation",
    "Laboratory",
    "Outcome",
    "Reproduction",
    "Row",
    "Run",
    "Scale",
    "Section",
    "Target",
    "Verdict",
    "choose",
    "counted",
    "explanations",
    "label",
    "picture_of",
    "read_page",
    "reproduce",
    "runs_of",
    "section_of",
    "shipped_page",
    "shortened",
    "summary",
    "targets",
    "write_page",
]
