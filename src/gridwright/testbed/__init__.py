"""The testbed: a grid, and what makes an experiment of it."""

from .adjuster import Adjuster, Calibration, real_rates, warnings
from .calibrate import calibrate
from .experiment import Experiment
from .faults import Fault, draw_faults, read_faults, write_faults
from .generator import JobList
from .load import Load
from .machines import Credential, Listed, read_machines, read_rates, write_machines
from .measured import Calibrations, Measured
from .run import Run, conduct, runs
from .twin import Gap, gap, twin, virtually

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
    "Measured",
    "Run",
    "calibrate",
    "conduct",
    "draw_faults",
    "gap",
    "read_faults",
    "read_machines",
    "read_rates",
    "real_rates",
    "runs",
    "twin",
    "virtually",
    "warnings",
    "write_faults",
    "write_machines",
]
