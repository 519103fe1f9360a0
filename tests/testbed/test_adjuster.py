"""The adjuster: what a machine runs lasts as long as the system has it."""

import subprocess
import sys
import time
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError, System
from gridwright.testbed import Adjuster, Calibration, real_rates, warnings
from gridwright.testbed.adjuster import carry_along, spin, wait

pytestmark = pytest.mark.slow

TWO = System(
    arrivals=[1, 1], rates=[[8, 2, 2], [4, 0, 0]], classes=["a", "b"], groups=["x", "y", "z"]
)
CALIBRATIONS = [
    Calibration(iterations=1000, seconds=0.02),
    Calibration(iterations=3000, seconds=0.1),
    Calibration(iterations=500, seconds=0.01),
]
FAST, SLOW, CALIBRATED = 50_000.0, 30_000.0, ("spin", CALIBRATIONS)


def test_waiting_sleeps() -> None:
    function, arguments, keywords = Adjuster(TWO, 0.5).call(0, 1, work=0.1)
    assert (arguments, keywords) == ((0.1 / 2 * 0.5,), {})
    began = time.monotonic()
    function(*arguments)
    assert time.monotonic() - began >= 0.025


@given(work=st.floats(0, 1e3), time_unit=st.floats(1e-3, 1e2), machine=st.sampled_from([0, 1, 2]))
def test_spinning_is_waiting_in_iterations(work: float, time_unit: float, machine: int) -> None:
    seconds = Adjuster(TWO, time_unit).call(0, machine, work)[1][0]
    assert seconds == pytest.approx(work / TWO.nominal[0, machine] * time_unit)
    function, (rounds,), _ = Adjuster(TWO, time_unit, *CALIBRATED).call(0, machine, work)
    assert function is spin
    assert isinstance(rounds, int)
    assert abs(rounds - seconds * CALIBRATIONS[machine].per_second) <= 0.5 + 1e-9 * rounds


def test_machines_of_a_group_are_each_their_own() -> None:
    grouped = System(arrivals=[1], rates=[[8, 2]], counts=[1, 2])
    adjuster = Adjuster(grouped, 1.0, *CALIBRATED)
    rounds = [adjuster.call(0, j, work=1.0)[1][0] for j in range(3)]
    assert rounds == [round(FAST / 8), round(SLOW / 2), round(FAST / 2)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Adjuster(TWO, 1).call(1, 2, 1.0), "class b never runs on machine z"),
        (lambda: Adjuster(TWO, 1).call(2, 0, 1.0), "there are 2 classes and 3 machines"),
        (lambda: Adjuster(TWO, 1).call(0, -1, 1.0), "there are 2 classes and 3 machines"),
        (lambda: Adjuster(TWO, 1).call(0, 0, -1.0), "work is -1"),
        (lambda: Adjuster(TWO, 1).call(0, 0, float("nan")), "work is nan"),
        (lambda: Adjuster(TWO, 0), "the time unit is 0 seconds"),
        (lambda: Adjuster(TWO, 1, "sing"), "'sing'; expected wait or spin"),
        (lambda: Adjuster(TWO, 1, "spin"), "0 calibrations for 3 machines"),
        (lambda: Calibration(iterations=0, seconds=1), "iterations"),
        (lambda: real_rates(CALIBRATIONS, [0], 1), "above 0 for each class"),
        (lambda: warnings(TWO, [[1, 2]]), "expected (2, 3)"),
    ],
)
def test_wrong_input(call: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_real_rates_and_what_is_too_fast() -> None:
    real = real_rates(CALIBRATIONS, [25_000, 100_000], time_unit=2.0)
    assert real == pytest.approx(np.array([[4.0, 2.4, 4.0], [1.0, 0.6, 1.0]]))
    assert warnings(TWO, real) == []  # b on x is imposed at exactly four times
    assert warnings(TWO, real * 0.99) == [
        "class b on machine x: the imposed rate 4 is 4.04 times the real rate 0.99; at most 4 is "
        "advised"
    ]


def test_jobs_need_nothing_of_the_package_where_they_run() -> None:
    carry_along()
    calls = cloudpickle.dumps([(wait, (0.001,), {}), (spin, (3,), {})])
    code = (
        "import pickle, sys; sys.modules['gridwright'] = None; sys.modules['numpy'] = None;"
        f"print([f(*a, **k) for f, a, k in pickle.loads({calls!r})][1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == spin(3) != spin(2)
