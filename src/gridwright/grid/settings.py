"""How a grid goes about its work."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..model import InputError
from .corrections import Corrections

__all__ = ["Settings"]

ALL = Corrections()
ON_TIMEOUT = ("resubmit", "wait", "fail", "duplicate")


@dataclass(frozen=True)
class Settings:
    """How a mapper goes about its work."""

    timeout: float = 0.0
    """A job that takes this many times what is expected is given up; 0: never."""
    on_timeout: str = "resubmit"
    corrections: Corrections = ALL
    guessed: bool = False
    """Whether the rates at the start are a mere guess."""
    resolution: float = 0.0
    """Time units between readings of CPU availability; 0: none."""
    retries: int | None = None
    """How often a job is tried again after its process died or it timed out; None: for ever.

    None is how the published experiments ran: the machine of a job that timed out then counts as
    down until it answers."""

    def __post_init__(self) -> None:
        if self.on_timeout not in ON_TIMEOUT:
            raise InputError(f"on_timeout is {self.on_timeout!r}; expected {', '.join(ON_TIMEOUT)}")
        for what, value in (("timeout", self.timeout), ("resolution", self.resolution)):
            if not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"{what} is {value!r}; expected a number, 0 or more")
