"""How each published table and figure is computed, and what comes of it."""

from .account import PRIMARY, Account, accounts, adopted, by_reading, with_adopted
from .data import (
    Explanation,
    ReproductionData,
    Row,
    Section,
    data_of,
    explanations,
    label,
    lengths,
    read_data,
    section_of,
    shipped,
)
from .laboratory import FULL, FULL_ON_GPU, PUBLISHED, QUICK, Laboratory, Run, Scale
from .page import draw_page, write_page
from .reading import ADOPTED, FITTED, READINGS, Reading
from .reproduce import Outcome, Reproduction, judged, reproduce, runs_of, summary
from .target import Target, choose, targets
from .verdict import Verdict, counted

__all__ = [
    "ADOPTED",
    "FITTED",
    "FULL",
    "FULL_ON_GPU",
    "PRIMARY",
    "PUBLISHED",
    "QUICK",
    "READINGS",
    "Account",
    "Explanation",
    "Laboratory",
    "Outcome",
    "Reading",
    "Reproduction",
    "ReproductionData",
    "Row",
    "Run",
    "Scale",
    "Section",
    "Target",
    "Verdict",
    "accounts",
    "adopted",
    "by_reading",
    "choose",
    "counted",
    "data_of",
    "draw_page",
    "explanations",
    "judged",
    "label",
    "lengths",
    "read_data",
    "reproduce",
    "runs_of",
    "section_of",
    "shipped",
    "summary",
    "targets",
    "with_adopted",
    "write_page",
]
