"""Which kind of result a policy of each kind gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..model import InputError, System
from ..policies import BATCH, CHAIN, PEER, PULL, PUSH, Kind, Policy
from .batch_result import batch_result
from .chain_result import ChainResult
from .peer_result import PeerResult
from .result import Result

__all__ = ["check_alike", "result_of"]

RESULTS: dict[Kind, Callable[..., Result]] = {
    PUSH: Result,
    PULL: Result,
    PEER: PeerResult,
    BATCH: batch_result,
    CHAIN: ChainResult,
}


def result_of(system: System, policy: Policy, *rest: Any) -> Result:
    """Make the result of a simulation; the rest are the further fields of ``Result``."""
    return RESULTS[policy.kind](system, policy, *rest)


def check_alike(policies: Sequence[Policy]) -> None:
    """Refuse policies of kinds that are measured by different things, on arrivals of their own."""
    first, *others = policies
    for other in others:
        if RESULTS.get(first.kind) is not RESULTS.get(other.kind):
            raise InputError(
                f"{first.name} is a {first.kind} policy and {other.name} a {other.kind} policy; "
                "they are measured by different things"
            )
