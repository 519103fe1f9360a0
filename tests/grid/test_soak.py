"""A short soak: every job ends exactly once, whatever is killed, and no process is left."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SOAK = Path(__file__).parents[2] / "tools" / "soak.py"


def soaked(*options: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--json", "--machines", "2", "--life", "4", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert done.returncode == 0
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
