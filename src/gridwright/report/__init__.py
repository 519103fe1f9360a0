"""Reports: one HTML file that holds everything it shows."""

from .demonstration import write_demonstration
from .reproduction import write_reproduction

__all__ = ["write_demonstration", "write_reproduction"]
