"""What a policy is shown cannot be changed, neither in plain Python nor in compiled code."""

from pathlib import Path

import numpy as np
import pytest

from gridwright.compiler.checks import readonly
from gridwright.compiler.link import bind, link
from gridwright.model.user_file import load_module
from gridwright.policies.view import MACHINE, records

PROGRAM = """
import numpy as np
from numba import objmode
from gridwright.compiler.checks import readonly

# Only this package may use readonly, and cached code imports its module.
__name__ = "gridwright.compiler.checks"

def show(machines, rate):
    change(readonly(machines, len(machines)), readonly(rate, len(rate), rate.shape[1]))
    return machines[0].backlog + rate[0, 1]

__name__ = "users"

def change(machines, rate):
    {statement}
"""
STATEMENTS = [
    "machines[0].backlog = 5",
    "first = machines[0]\n    first.backlog += 1",
    "machines[0]['backlog'] = 5",
    "machines.backlog[0] = 5",
    "machines[0] = machines[1]",
    "for each in machines:\n        each.backlog = 5",
    "rate[0, 1] = 5.0",
    "rate[:] = 5.0",
    "rate *= 2.0",
    "rate[0].sort()",
    "rate.fill(5.0)",
    "rate.T[1, 0] = 5.0",
    "rate.reshape(4)[1] = 5.0",
    "row = rate[0]\n    row[1] = 5.0",
]
REFUSED = r"(?i)cannot modify|no implementation|resolution failure|'NoneType' object has no"
"""The last is how Numba refuses to change an array in place that is read-only."""


@pytest.mark.parametrize("statement", STATEMENTS)
def test_writing_is_refused(statement: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(statement=statement))
    show = load_module(file).show
    machines, rate = records(2, MACHINE), np.array([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="read-only"):
        bind(show)(machines, rate)
    with pytest.raises(Exception, match=REFUSED):
        link(show)(machines, rate)
    assert (machines[0].backlog, rate[0, 1]) == (0, 0.0)


LEADING_AROUND = [
    "np.ascontiguousarray(rate)[0, 1] = 5.0",
    "np.fill_diagonal(rate[:, 1:], 5.0)",
    "np.dot(np.ones((2, 2)), np.ones(2), rate[0])",
    "np.dot(np.ones((2, 2)), np.ones(2), out=rate[0])",
    "np.add(np.ones(2), np.ones(2), rate[0])",
    "np.nan_to_num(rate, False)[0, 1] = 5.0",
    "readonly(rate, 2, 2)",
    "with objmode():\n        rate.setflags(write=True)",
]


@pytest.mark.parametrize("statement", LEADING_AROUND)
def test_functions_that_lead_around_it_are_refused(statement: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(statement=statement))
    machines, rate = records(2, MACHINE), np.array([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(Exception, match=f"{REFUSED}|which is not checked"):
        link(load_module(file).show)(machines, rate)
    assert rate[0, 1] == 0.0


def read(machines: np.recarray, rate: np.ndarray) -> float:
    seen, rates = readonly(machines, len(machines)), readonly(rate, len(rate), rate.shape[1])
    total = 0.0
    for j in range(len(seen)):
        total += seen[j].work * rates[1, j] + seen.backlog[j]
    machines[0].work += 1.0
    return total + seen[0].work


read.__module__ = (
    "gridwright.compiler.checks"  # only this package may use it; cached code imports its module
)


def test_reading_sees_what_the_owner_writes() -> None:
    for function in (link(read), bind(read)):
        machines, rate = records(3, MACHINE), np.arange(6.0).reshape(2, 3)
        machines["work"], machines["backlog"] = [1, 2, 3], [4, 5, 6]
        assert function(machines, rate) == 3 + 8 + 15 + 15 + 2
