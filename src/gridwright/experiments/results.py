"""Which kind of result a policy of each kind gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model import System
from ..policies import Policy
from .batch_result import batch_result
from .result import Result

__all__ = ["result_of"]

RESULTS: dict[str, Callable[..., Result]] = {
    "push": Result,
    "pull": Result,
    "batch": batch_result,
}


def result_of(system: System, policy: Policy, *rest: Any) -> Result:
    """Make the result of a simulation; the rest are the further fields of ``Result``."""
    return RESULTS[policy.kind](system, policy, *rest)
