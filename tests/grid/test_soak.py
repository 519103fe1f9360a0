"""A short soak: every job ends exactly once, whatever is killed, and no process is left."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SOAK = Path(__file__).parents[2] / "tools" / "soak.py"


def test_every_job_of_a_night_in_virtual_time_ends_once() -> None:
    nights = run("--night", "--hours", "0.3")
    assert [each["wrong"] for each in nights] == [[]] * 8
    rows = [row for each in nights for row in each["kinds"].values() if row]
    assert sum(row["jobs"] for row in rows) > 1000
    assert all(sum(row[name] for row in rows) > 10 for name in ("lost", "timed_out", "deaths"))


def run(*options: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--json", *options], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0, found
    return found


def soaked(*options: str) -> Any:
    found = run("--machines", "2", "--life", "4", *options)
    assert found["wrong"] == []
    return found


@pytest.mark.parametrize("executor", ["local", "dask"])
def test_a_short_soak_finds_nothing_wrong(executor: str) -> None:
    found = soaked("--executor", executor, "--minutes", "0.25", "--jobs", "200")
    assert sum(kind["acknowledged"] for kind in found["kinds"].values()) == 200
    assert found["done"]["worker killed"] > 0
    assert found["done"]["client killed"] > 0


def test_a_short_soak_of_a_service_answers_for_every_key_once() -> None:
    found = soaked("--service", "--minutes", "0.15", "--jobs", "100")
    rows = found["kinds"].values()
    assert sum(row["keys"] for row in rows) == 100
    assert sum(row["jobs"] for row in rows) == 100
    assert sum(row["finished"] for row in rows if "finished" in row) > 80
    assert found["done"]["service killed"] > 0
    assert found["done"]["client killed"] > 0
