"""A system of chains as one of tasks: every application of a template is a class of its own."""

import numpy as np

from .error import InputError
from .system import System

__all__ = ["by_application"]


def by_application(system: System) -> System:
    """Return the system with a class for each application, at its template's rate.

    Its capacity is that of the chains: which node serves an application does not matter to the
    next one.

    >>> scan = {"name": "scan", "rate": 0.05, "times": [[4, 8], [10, 5]], "latency": 30}
    >>> by_application(System(templates=[scan]))
    System('': 2 classes, 2 machines, arrivals [0.05, 0.05])
    """
    if system.random_templates is not None:
        raise InputError(
            f"{system.name or 'the system'} draws its templates anew for every replication, "
            "so that it has no one capacity"
        )
    if not system.templates:
        return system
    parts = ("name", "groups", "counts", "availability", "failures")
    return System(
        classes=[
            f"{each.name}.{number}"
            for each in system.templates
            for number in range(1, each.applications + 1)
        ],
        arrivals=[each.rate for each in system.templates for _ in each.times],
        rates=1 / np.concatenate([each.times for each in system.templates]),
        **{key: getattr(system, key) for key in parts},
    )
