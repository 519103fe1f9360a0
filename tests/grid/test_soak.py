"""A short soak: every job ends exactly once, whatever is killed, and no process is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOAK = Path(__file__).parents[2] / "tools" / "soak.py"


@pytest.mark.parametrize("executor", ["local", "dask"])
def test_a_short_soak_finds_nothing_wrong(executor: str) -> None:
    options = ["--minutes", "0.25", "--jobs", "200", "--life", "4", "--machines", "2"]
    done = subprocess.run(
        [sys.executable, str(SOAK), "--json", "--executor", executor, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert done.returncode == 0
    assert sum(kind["acknowledged"] for kind in found["kinds"].values()) == 200
    assert found["done"]["worker killed"] > 0
    assert found["done"]["client killed"] > 0
