"""The testbed: a grid, and what makes an experiment of it."""

from .adjuster import Adjuster, Calibration, real_rates, warnings
from .calibrate import calibrate
from .experiment import Experiment
from .export import export
from .faults import (
    Fault,
    Spells,
    check_faults,
    draw_faults,
    read_faults,
    rows_of,
    spells,
    write_faults,
)
from .generator import JobList
from .load import Load
from .machines import (
    Credential,
    Listed,
    parse_machines,
    parse_rates,
    read_machines,
    read_rates,
    write_machines,
)
from .measured import Calibrations, Measured
from .overview import Overview, overview
from .report import Expectation, Report, actual_rates, expect, job_lengths, report
from .run import Run, conduct, new_run, runs
from .twin import Gap, gap, twin, virtually

__all__ = [
    "Adjuster",
    "Calibration",
    "Calibrations",
    "Credential",
    "Expectation",
    "Experiment",
    "Fault",
    "Gap",
    "JobList",
    "Listed",
    "Load",
    "Measured",
    "Overview",
    "Report",
    "Run",
    "Spells",
    "actual_rates",
    "calibrate",
    "check_faults",
    "conduct",
    "draw_faults",
    "expect",
    "export",
    "gap",
    "job_lengths",
    "new_run",
    "overview",
    "parse_machines",
    "parse_rates",
    "read_faults",
    "read_machines",
    "read_rates",
    "real_rates",
    "report",
    "rows_of",
    "runs",
    "spells",
    "twin",
    "virtually",
    "warnings",
    "write_faults",
    "write_machines",
]
