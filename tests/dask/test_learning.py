"""What is learnt of the tasks and workers of a Dask cluster."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.dask.learning import Arrivals, Memory, group_of
from gridwright.grid.beliefs import HALF_LIFE, Learner
from gridwright.grid.settings import Corrections


def learner(keep: float = math.inf) -> Learner:
    """Return a learner of one class on two workers, of which nothing is known."""
    return Learner(
        np.ones((1, 2)),
        np.ones(1),
        0.0,
        Corrections(),
        guessed=True,
        hosts=["a", "b"],
        keep=keep,
        hopeful=True,
    )


def rates(of: Learner) -> list[float]:
    found = of.rates(np.full((1, 2), 1e-9), np.ones(2), math.nan)
    assert found is not None
    return [float(rate) for rate in found[0]]


def test_an_untried_worker_counts_as_fast_as_the_fastest() -> None:
    one = learner()
    for _ in range(10):
        one.ran(0, 0, 0.1)
    assert rates(one) == pytest.approx([10.0, 10.0])
    one.ran(0, 1, 1.0)
    assert rates(one)[1] < 5.0


def test_the_first_measurement_counts_until_the_second() -> None:
    one = learner()
    one.ran(0, 0, 5.0)  # it imported something
    before = rates(one)[0]
    one.ran(0, 0, 0.1)
    assert before < 1.0
    assert rates(one)[0] == pytest.approx(10.0)


def test_a_worker_that_changes_is_noticed() -> None:
    one = learner(keep=20)
    for _ in range(500):
        one.ran(0, 0, 1.0)
    for _ in range(60):
        one.ran(0, 0, 0.1)
    assert rates(one)[0] > 5.0


def test_a_worker_that_was_slow_is_tried_again_if_its_class_runs_elsewhere() -> None:
    one = learner()
    for _ in range(3):
        one.ran(0, 1, 1.0)
    tried_again = []
    for minute in range(1, 60):
        one.ran(0, 0, 0.1)
        tried_again.append(one.forget(60.0 * minute))
    assert any(tried_again)
    assert rates(one)[1] == pytest.approx(rates(one)[0])


def test_what_does_not_run_is_not_forgotten() -> None:
    one = learner()
    one.ran(0, 1, 1.0)
    one.ran(0, 1, 1.0)
    one.forget(HALF_LIFE)  # it ran in this time
    before = one.count.copy()
    assert not one.forget(1000.0 * HALF_LIFE)
    assert (one.count == before).all()


@given(st.lists(st.floats(0.001, 100.0), min_size=1, max_size=50))
def test_a_constant_window_keeps_rates_between_the_extremes(times: list[float]) -> None:
    one = learner(keep=5)
    for time in times:
        one.ran(0, 0, time)
    assert one.count[0, 0] <= 5.0 + 1e-9
    mean = one.time[0, 0] / one.count[0, 0]
    assert min(times) * (1 - 1e-9) <= mean <= max(times) * (1 + 1e-9)


def test_arrival_rates_follow_a_change() -> None:
    arrivals = Arrivals(0.0)
    for k in range(2000):
        arrivals.came(0, k / 20)  # 20 a second for 100 s
    for k in range(100):
        arrivals.came(1, 100 + k)  # then 1 a second of another class
    assert arrivals.rates(2, 200.0) == pytest.approx([0.0, 1.0], abs=0.2)


def test_a_memory_is_kept(tmp_path: Path) -> None:
    path, one, two = tmp_path / "deep" / "memory.json", learner(), learner()
    for _ in range(4):
        one.ran(0, 1, 0.5)
    memory = Memory(path)
    memory.note(one, ["render"], {"a": 0, "b": 1})
    memory.write(memory.text())
    assert Memory(path).recall(two, "render", 0, "b", 1)
    assert not Memory(path).recall(two, "render", 0, "a", 0)
    assert two.duration(0, 1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"classes": 3}',
        '{"classes": {"a": {"b": [1]}}}',
        '{"classes": {"a": {"b": [-1, 2]}}}',
        '{"classes": {"a": {"b": [2, NaN]}}}',
    ],
)
def test_a_file_that_is_no_memory_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(InputError, match="no memory of durations"):
        Memory(path)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [("worker", "gpu-3"), ("prefix", "gpu"), ("host", "h"), (lambda name: name[:2], "gp")],
)
def test_groups(groups: str, expected: str) -> None:
    assert group_of(groups, "gpu-3", "h") == expected
