"""A short walk: no task is lost and no client hangs while workers come, go, die and pause."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

WALK = Path(__file__).parents[2] / "tools" / "dask_walk.py"


def test_a_walk_of_sixteen_events_finds_nothing_wrong() -> None:
    """Everything that happens to workers happens twice."""
    options = ["--events", "16", "--tasks", "100", "--pause", "0.4", "--minutes", "3"]
    done = subprocess.run(
        [sys.executable, str(WALK), "--json", "--seed", "3", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=420,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert not found["wrong"], "\n".join(found["wrong"])
    assert sum(found["checked"].values()) >= 100
    assert sum(found["done"].values()) >= 10  # on a busy computer, not every event happens
