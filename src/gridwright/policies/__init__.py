"""Policies: one small file each, and what they are shown.

Every module of this package that is named like the policy it holds is found by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from .contract import PLANNERS, Policy, pull, push
from .registry import find, policies
from .view import EXCLUDED, INFORMED, Pairs, View

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
globals().update(policies())

__all__ = [
    "EXCLUDED",
    "INFORMED",
    "PLANNERS",
    "Pairs",
    "Policy",
    "View",
    "find",
    "policies",
    "pull",
    "push",
    *policies(),
]
