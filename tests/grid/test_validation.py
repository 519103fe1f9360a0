"""What a grid is given: anything wrong is told before a process starts."""

from pathlib import Path
from typing import Any

import pytest

from gridwright import InputError
from gridwright.grid import Grid
from gridwright.grid.executors.local import LocalExecutor

NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machines": []}, "machines is []; expected a number, or a list of names"),
        ({"machines": "ab"}, "machines is 'ab'; expected a number, or a list of names"),
        ({"machines": ["a", "a"]}, "machines has 'a' twice"),
        ({"machines": ["a", 2]}, "machines[1] is 2; expected a name"),
        ({"machines": 1.5}, "machines is 1.5; expected a whole number, at least 1"),
        ({"machines": True}, "machines is True; expected a whole number, at least 1"),
        ({"classes": "ab"}, "classes is 'ab'; expected a list of names"),
        ({"classes": [1, 2]}, "classes[0] is 1; expected a name"),
        ({"classes": ["a", "a"]}, "classes has 'a' twice"),
        ({"classes": ["\udc80"]}, "classes[0] is '\\udc80', which is not valid Unicode"),
        ({"rates": [[1, -1]]}, "rates has a number that is negative or not finite"),
        ({"rates": [[1, NAN]]}, "rates has a number that is negative or not finite"),
        ({"rates": [[0, 0]]}, "no machine can run class '1': its rates are all 0"),
        ({"rates": [[1], [1, 2]]}, "rates is not a matrix of numbers"),
        ({"timeout": -1}, "timeout is -1; expected a number, 0 or more"),
        ({"timeout": "3"}, "timeout is '3'; expected a number, 0 or more"),
        ({"rates": [[1e-320, 1]]}, "rates has a number that is neither 0 nor 1e-100 to 1e+100"),
        ({"retries": -1}, "retries is -1; expected a whole number, 0 or more"),
        ({"retries": None}, "retries is None; expected a whole number, 0 or more"),
        ({"retries": 1.5}, "retries is 1.5; expected a whole number, 0 or more"),
        ({"classes": ["x" * 2000]}, "classes[0] has 2,000 characters; expected at most 1,000"),
        ({"resolution": NAN}, "resolution is nan; expected a number, 0 or more"),
        ({"executor": "slurm"}, "executor is 'slurm'; expected local or dask"),
        ({"executor": "dask"}, "the executor 'dask' needs the address of a scheduler"),
        ({"executor": "local", "address": "tcp://h:1"}, "address is for the executor 'dask'"),
        ({"on": "slurm"}, "'slurm' is not the address of a cluster"),
        ({"on": "tcp://h:1", "address": "tcp://h:1"}, "deprecated names for on; give on alone"),
        ({"on": LocalExecutor(1), "machines": 2}, "on is an executor, which has its machines"),
    ],
)
def test_what_does_not_suit_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        Grid("fcfs", journal=tmp_path / "j.sqlite", **options)
    assert message in str(error.value)
    assert not (tmp_path / "j.sqlite").exists()


def test_a_class_without_a_proper_name_is_refused(tmp_path: Path) -> None:
    with (
        Grid("fcfs", machines=1, journal=tmp_path / "j.sqlite") as grid,
        pytest.raises(InputError, match=r"task_class is '.udc80', which is not valid Unicode"),
    ):
        grid.options(task_class="\udc80").submit(abs, -1)


@pytest.mark.parametrize("old", [{"executor": "local"}, {"executor": LocalExecutor(1)}])
def test_the_old_names_of_a_place_still_work(old: dict[str, Any], tmp_path: Path) -> None:
    with (
        pytest.warns(FutureWarning, match="use on='tcp://HOST:PORT' for a cluster"),
        Grid("fcfs", journal=tmp_path / "j.sqlite", **old) as grid,
    ):
        assert grid.submit(abs, -1).result(60) == 1
