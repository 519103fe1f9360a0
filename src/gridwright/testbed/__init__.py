"""The testbed: experiments on a grid with drawn jobs, imposed speeds and injected failures."""

from .adjuster import Adjuster, Calibration, real_rates, warnings
from .calibration import Calibrations, Measured, calibrate
from .conduct import conduct
from .evaluation import Report, actual_rates, export, job_lengths, report
from .experiment import Experiment
from .load import Load
from .loop_conduct import LoopConduct
from .machine_list import (
    Credential,
    Listed,
    parse_machines,
    parse_rates,
    read_machines,
    read_rates,
    write_machines,
)
from .peer_conduct import PeerConduct
from .runs import Overview, Run, new_run, overview, runs
from .twin import Gap, gap, twin, virtually
from .workload import (
    Fault,
    JobList,
    check_faults,
    draw_faults,
    read_faults,
    redraw_faults,
    rows_of,
    spells,
    write_faults,
)

__all__ = [
    "Adjuster",
    "Calibration",
    "Calibrations",
    "Credential",
    "Experiment",
    "Fault",
    "Gap",
    "JobList",
    "Listed",
    "Load",
    "LoopConduct",
    "Measured",
    "Overview",
    "PeerConduct",
    "Report",
    "Run",
    "actual_rates",
    "calibrate",
    "check_faults",
    "conduct",
    "draw_faults",
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
    "redraw_faults",
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
