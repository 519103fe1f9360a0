"""The policies, one file each, and what they are made of.

Every module of this package is imported, and registers the policy that it holds.
"""

from importlib import import_module
from pkgutil import iter_modules

from .kind import BATCH, CHAIN, IDLE, KINDS, ORDER, PEER, PULL, PUSH, Kind
from .policy import PLANNERS, Policy, check_central, check_not_preemptive, policy_of
from .registry import batch, chain, find, peer, policies, pull, push
from .view import (
    EXCLUDED,
    INFORMED,
    BatchView,
    ChainView,
    Count,
    Pairs,
    PerClass,
    Table,
    View,
    assign,
)

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
globals().update(policies())

__all__ = [
    "BATCH",
    "CHAIN",
    "EXCLUDED",
    "IDLE",
    "INFORMED",
    "KINDS",
    "ORDER",
    "PEER",
    "PLANNERS",
    "PULL",
    "PUSH",
    "BatchView",
    "ChainView",
    "Count",
    "Kind",
    "Pairs",
    "PerClass",
    "Policy",
    "Table",
    "View",
    "assign",
    "batch",
    "chain",
    "check_central",
    "check_not_preemptive",
    "find",
    "peer",
    "policies",
    "policy_of",
    "pull",
    "push",
    *policies(),
]
