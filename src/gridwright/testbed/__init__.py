"""The testbed: a grid, and what makes an experiment of it."""

from .adjuster import Adjuster, Calibration, real_rates, warnings
from .calibrate import Calibrations, Measured, calibrate
from .machines import Credential, Listed, read_machines, read_rates, write_machines

__all__ = [
    "Adjuster",
    "Calibration",
    "Calibrations",
    "Credential",
    "Listed",
    "Measured",
    "calibrate",
    "read_machines",
    "read_rates",
    "real_rates",
    "warnings",
    "write_machines",
]
