"""Which kind of result a policy of each kind gives."""

from __future__ import annotations

from typing import Any

from ..model import System
from ..policies import Policy
from .chain_result import ChainResult
from .result import Result

__all__ = ["result_of"]

RESULTS: dict[str, type[Result]] = {"push": Result, "pull": Result, "chain": ChainResult}


def result_of(system: System, policy: Policy, *rest: Any) -> Result:
    """Make the result of a simulation; the rest are the further fields of ``Result``."""
    return RESULTS[policy.kind](system, policy, *rest)
