"""What a server has going on: its simulations, and the runs that it knows of."""

from __future__ import annotations

from dataclasses import dataclass, field

from .runs import Runs
from .simulations import Simulations
from .tasks import Calibrator, Reruns

__all__ = [
    "Services",
]


@dataclass
class Services:
    """What the API and the pages work on; both show the same."""

    simulations: Simulations = field(default_factory=Simulations)
    runs: Runs = field(default_factory=Runs)
    reruns: Reruns = field(default_factory=Reruns)
    calibrator: Calibrator = field(default_factory=Calibrator)

    def close(self) -> None:
        """Stop what goes on in this process; runs are processes of their own."""
        self.simulations.close()
        self.reruns.close()
        self.calibrator.close()
