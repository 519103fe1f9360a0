"""How each published table and figure is computed, and what comes of it."""

from .data import (
    Explanation,
    ReproductionData,
    Row,
    Section,
    data_of,
    explanations,
    label,
    read_data,
    section_of,
    shortened,
)
from .laboratory import FULL, PUBLISHED, QUICK, Laboratory, Run, Scale
from .page import draw_page, write_page
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
    "ReproductionData",
    "Row",
    "Run",
    "Scale",
    "Section",
    "Target",
    "Verdict",
    "choose",
    "counted",
    "data_of",
    "draw_page",
    "explanations",
    "label",
    "read_data",
    "reproduce",
    "runs_of",
    "section_of",
    "shortened",
    "summary",
    "targets",
    "write_page",
]
