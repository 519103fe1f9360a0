"""joblib and scikit-learn on a grid; skipped where they are not installed."""

import gc
from pathlib import Path
from typing import Any

import pytest

from gridwright.grid import Grid

joblib: Any = pytest.importorskip("joblib", reason="joblib is not installed")
import gridwright.joblib  # noqa: E402, F401  # registers the backend

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_process_stays_behind")]


def test_parallel_calls_are_jobs(tmp_path: Path) -> None:
    with Grid("fcfs", machines=2, journal=tmp_path / "j.sqlite") as grid:
        with joblib.parallel_config("gridwright", grid=grid):
            found = joblib.Parallel()(joblib.delayed(pow)(k, 2) for k in range(20))
            assert found == [k * k for k in range(20)]
            with pytest.raises(ZeroDivisionError):
                joblib.Parallel()(joblib.delayed(divmod)(1, k) for k in range(3))
        assert grid.status()["classes"]["pow"]["arrived"] == 20


def test_a_backend_without_a_grid_opens_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    with joblib.parallel_backend("gridwright"):
        assert joblib.Parallel()(joblib.delayed(abs)(-k) for k in range(5)) == [0, 1, 2, 3, 4]
    gc.collect()  # closes the backend, and the grid with it


def test_a_grid_search_of_scikit_learn(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    x, y = load_iris(return_X_y=True)
    plain = GridSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=3).fit(x, y)
    with (
        Grid("pas_dg", machines=2, journal=tmp_path / "j.sqlite") as grid,
        joblib.parallel_config("gridwright", grid=grid),
    ):
        ours = GridSearchCV(SVC(), {"C": [0.1, 1, 10]}, cv=3).fit(x, y)
    assert ours.best_params_ == plain.best_params_
    assert list(ours.cv_results_["mean_test_score"]) == list(plain.cv_results_["mean_test_score"])
