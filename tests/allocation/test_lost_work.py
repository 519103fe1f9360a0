"""Tasks that keep their work when they are lost: what the LP can and cannot say of them."""

from typing import Any

import pytest

from gridwright import System, allocate, simulate
from gridwright.allocation.lost_work import never_done

FAILURES = {"mean_uptime": 2.0, "mean_repair": 0.5, "same_work": True}
CHAIN = {"states": [1, 0.25], "transition": [[0.5, 0.5], [0.5, 0.5]], "step": 1}
MIXED = {"kind": "hyperexponential", "probabilities": [0.5, 0.5], "means": [0.5, 1.5]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"rates": [[0.51]]}, False),  # a task fails with rate 0.5
        ({"rates": [[0.5]]}, True),
        ({"rates": [[1.0]], "availability": [0.5]}, True),
        ({"rates": [[0.6]], "availability": [CHAIN]}, False),  # while its whole CPU is there
        ({"rates": [[0.4, 0.6]]}, False),
        ({"rates": [[0.4, 0.4]], "failures": {**FAILURES, "mean_uptime": [2, 9]}}, False),
        ({"rates": [[0.4]], "failures": {**FAILURES, "same_work": False}}, False),
        ({"rates": [[0.4]], "failures": None}, False),
        ({"rates": [[0.4]], "execution": "deterministic"}, False),
        ({"rates": [[0.4]], "execution": {"kind": "erlang", "stages": 2}}, False),
        ({"rates": [[0.25]], "execution": {"kind": "erlang", "stages": 2}}, True),
        ({"rates": [[0.74]], "execution": MIXED}, True),
        ({"rates": [[0.76]], "execution": MIXED}, False),
        ({"rates": [[90.0]], "execution": {"kind": "lognormal", "scv": 1}}, True),
        ({"rates": [[90.0]], "execution": {"kind": "weibull", "shape": 0.9}}, True),
        ({"rates": [[0.1]], "execution": {"kind": "weibull", "shape": 1.1}}, False),
        ({"rates": [[0.4]], "failures": {**FAILURES, "uptime": "deterministic"}}, False),
        ({"rates": [[0.4]], "failures": {**FAILURES, "uptime": MIXED}}, False),
        ({"rates": [[0.3]], "failures": {**FAILURES, "uptime": MIXED}}, True),
    ],
)
def test_where_the_mean_is_infinite(parts: dict[str, Any], expected: bool) -> None:
    system = System(**{"arrivals": [0.01], "failures": FAILURES, **parts})
    assert never_done(system) == (("1",) if expected else ())


def test_no_policy_keeps_up_with_tasks_that_take_infinitely_long() -> None:
    system = System(arrivals=[0.01, 0.01], rates=[[0.4], [4]], failures=FAILURES)
    found = allocate(system)
    assert found.long_run_capacity > 20
    assert found.verdict.stabilisable is False
    said = "tasks of class '1' that are lost keep their work, and take infinitely long on average"
    assert f"No policy can keep up: {said}." in found.verdict.words
    short = simulate(system, "fcfs", 100, 2)
    assert short.stable is False
    assert short.verdict == f"unstable: {said}"


def test_the_lp_does_not_say_that_a_policy_can_keep_up() -> None:
    """A policy may send tasks that are lost to the machine that fails seldom, or not."""
    failures = {**FAILURES, "mean_uptime": [2.0, 8.0]}
    system = System(arrivals=[1.2], rates=[[1.0, 1.0]], failures=failures)
    found = allocate(system).verdict
    assert found.stabilisable is None
    load = 120 / (2 / 2.5 + 8 / 8.5)
    assert f"The load is more than {load:.1f} %: tasks that are lost keep their work" in found.words
    assert "because it depends on the policy" in found.words
    assert found.words.endswith(f"If arrivals grow by {100 * (100 / load - 1):.1f} %, none can.")
    assert allocate(system.replace(arrivals=[1.8])).verdict.stabilisable is False
    result = simulate(system, "fcfs", 100, 2)
    assert result.load_words == f"more than {load:.1f} %"
    constant = system.replace(execution="deterministic")  # here it does not depend on it
    assert allocate(constant).verdict.stabilisable is True


def test_lost_applications_of_chains_keep_their_work() -> None:
    scan = {"name": "scan", "rate": 0.05, "times": [[4, 8], [10, 5]], "latency": 30}
    assert allocate(System(templates=[scan])).verdict.stabilisable is True
    failing = System(templates=[scan], failures={"mean_uptime": 50, "mean_repair": 1})
    found = allocate(failing).verdict
    assert found.stabilisable is None
    assert "which the LP leaves out, because the system has chains." in found.words


def test_the_same_work_on_machines_that_are_alike() -> None:
    """Without lost work the load is 0.75; a task takes (1 / (1 − 0.5) − 1) / 0.5 = 2."""
    system = System(arrivals=[0.6], rates=[[1.0]], failures=FAILURES)
    found = allocate(system).verdict
    assert found.stabilisable is False
    assert "Without lost work the load would be 75.0 %." in found.words
    assert "No policy can keep up: load 150.0 %." in found.words
    result = simulate(system, "fcfs", 100, 2)
    assert (result.stable, result.load_words) == (False, "150.0 %")
    assert allocate(system.replace(arrivals=[0.39])).verdict.stabilisable is True


def test_a_run_must_be_long_enough_for_the_load_that_is_measured() -> None:
    """The LP has a load of 0.61, which 300 time units are enough for; in truth it is 0.89."""
    system = System(
        arrivals=[0.55],
        rates=[[1.0]],
        execution={"kind": "pmf", "values": [0.5, 3], "probabilities": [0.8, 0.2]},
        failures={"mean_uptime": 3.0, "mean_repair": 0.3, "same_work": True},
    )
    short = simulate(system, "fcfs", 300, 10)
    assert short.stable is None
    assert short.stability.needed is not None
    assert simulate(system.replace(arrivals=[0.1]), "fcfs", 5_000, 4).stable is True
