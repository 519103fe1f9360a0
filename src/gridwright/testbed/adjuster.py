"""The adjuster: imposes the rates of a system on machines that are really equal.

Availabilities are imposed on the machines themselves (`Executor.impose`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from ..model import InputError, System
from ..model.record import Positive, Record

KINDS = ("wait", "spin")
FASTEST = 4.0
"""The highest advised ratio of imposed to real rate: shorter jobs are mostly overhead."""

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function, its arguments and its keywords."""


class Calibration(Record):
    """How long a machine took for the loop of spin jobs.

    >>> Calibration(iterations=5000, seconds=0.1).per_second
    50000.0
    """

    iterations: Annotated[Positive, Field(title="Iterations", description="Of the test loop")]
    seconds: Annotated[Positive, Field(title="Seconds", description="For all iterations")]

    @property
    def per_second(self) -> float:
        """Iterations of the loop in a second."""
        return self.iterations / self.seconds


class Adjuster:
    """Chooses what a machine runs, so that a job takes as long there as the system says.

    Parameters
    ----------
    system
        The system whose rates are imposed.
    time_unit
        Seconds of a time unit.
    kind
        ``wait``, a sleep, for more machines than there are processors; or ``spin``, a loop that
        really takes the CPU. On a machine that is made slower both take longer.
    calibrations
        For ``spin``: the real speed of each machine, in the order of the system.

    Examples
    --------
    >>> system = System(arrivals=[1], rates=[[8, 2]])
    >>> adjuster = Adjuster(system, time_unit=0.5)
    >>> function, arguments, keywords = adjuster.call(0, machine=1, work=1.0)
    >>> function.__name__, arguments
    ('wait', (0.25,))
    """

    def __init__(
        self,
        system: System,
        time_unit: float,
        kind: str = "wait",
        calibrations: Sequence[Calibration] = (),
    ) -> None:
        if kind not in KINDS:
            raise InputError(f"the kind of jobs is {kind!r}; expected {' or '.join(KINDS)}")
        if not 0 < time_unit < inf:
            raise InputError(f"the time unit is {time_unit:g} seconds; expected more than 0")
        machines = len(system.machines)
        if kind == "spin" and len(calibrations) != machines:
            raise InputError(
                f"{len(calibrations)} calibrations for {machines} machines; spin jobs need one for "
                "each: 'gridwright machines calibrate' makes them"
            )
        self.system, self.time_unit, self.kind = system, float(time_unit), kind
        self.calibrations = tuple(calibrations)
        carry_along()

    def seconds(self, task_class: int, machine: int, work: float) -> float:
        """Return the seconds of a job with a machine's whole CPU: work ÷ rate time units."""
        classes, machines = self.system.shape
        if not (0 <= task_class < classes and 0 <= machine < machines):
            raise InputError(
                f"no class {task_class} on machine {machine}; there are {classes} classes and "
                f"{machines} machines, counted from 0"
            )
        if not 0 <= work < inf:
            raise InputError(f"work is {work:g}; expected a number that is not negative")
        rate = float(self.system.nominal[task_class, machine])
        if rate == 0:
            raise InputError(
                f"class {self.system.classes[task_class]} never runs on machine "
                f"{self.system.machines[machine]}: its rate there is 0"
            )
        return work / rate * self.time_unit

    def call(self, task_class: int, machine: int, work: float) -> Call:
        """Return the call to run: a function, its arguments and its keywords."""
        seconds = self.seconds(task_class, machine, work)
        return call_of(self.kind, seconds, self.per_second(machine))

    def per_second(self, machine: int) -> float:
        """Return the iterations of a machine in a second; 0 if jobs only wait."""
        return self.calibrations[machine].per_second if self.kind == "spin" else 0.0


def call_of(kind: str, seconds: float, per_second: float) -> Call:
    """Return a call that takes some seconds on a machine with a speed."""
    if kind == "wait":
        return wait, (seconds,), {}
    return spin, (round(seconds * per_second),), {}


def real_rates(
    calibrations: Sequence[Calibration], iterations: ArrayLike, time_unit: float
) -> NDArray[np.float64]:
    """Return the real rates [class, machine] of machines that run the loop.

    Parameters
    ----------
    calibrations
        One for each machine.
    iterations
        Mean number of iterations of a job, for each class.
    time_unit
        Seconds of a time unit.

    Examples
    --------
    >>> real_rates([Calibration(iterations=500, seconds=60)], [500, 250], time_unit=120)
    array([[2.],
           [4.]])
    """
    given = np.atleast_1d(np.asarray(iterations, dtype=float))
    if given.ndim != 1 or not (np.isfinite(given) & (given > 0)).all():
        raise InputError("iterations: expected a number above 0 for each class")
    per_second = np.array([each.per_second for each in calibrations])
    return per_second[None, :] * time_unit / given[:, None]


def warnings(system: System, real: ArrayLike) -> list[str]:
    """Describe the pairs whose imposed rate is more than four times the real rate.

    >>> warnings(System(arrivals=[1], rates=[[9, 8]]), [[2, 2]])
    ['class 1 on machine 1: the imposed rate 9 is 4.5 times the real rate 2; at most 4 is advised']
    """
    rates = np.asarray(real, dtype=float)
    if rates.shape != system.shape:
        raise InputError(
            f"real rates have shape {rates.shape}; expected {system.shape}: a row for each class "
            "with a number for each machine"
        )
    return [
        f"class {system.classes[i]} on machine {system.machines[j]}: the imposed rate "
        f"{imposed:g} is {imposed / rates[i, j]:.3g} times the real rate {rates[i, j]:.4g}; at "
        f"most {FASTEST:g} is advised"
        for (i, j), imposed in np.ndenumerate(system.nominal)
        if imposed > FASTEST * rates[i, j]
    ]


def wait(seconds: float) -> None:
    """Wait for so many seconds of the machine's own time: longer while it is made slower.

    A machine that cannot be made slower just sleeps.
    """
    machine = sys.modules.get("gridwright_machine")  # see ``grid/worker.py``
    (time.sleep if machine is None else machine.wait)(seconds)


def spin(iterations: int) -> int:
    """Keep a CPU busy: run a loop, each iteration of which takes some microseconds.

    >>> spin(0), spin(3)
    (1, 1640530793)
    """
    state = 1
    for _ in range(iterations):
        for _ in range(200):  # an iteration is short, so rounding to whole ones matters little
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state  # every step needs the one before, so that none can be skipped


def carry_along() -> None:
    """Pickle jobs by value from now on, so that workers need not import this package."""
    try:
        import cloudpickle
    except ImportError:
        return  # a grid refuses to work without it
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
