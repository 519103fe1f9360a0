"""The testbed: a grid, and what makes an experiment of it."""

from .adjuster import Adjuster, Calibration, real_rates, warnings
from .calibrate import calibrate
from .machines import Credential, Listed, read_machines, read_rates, write_machines
from .measured import Calibrations, Measured

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
