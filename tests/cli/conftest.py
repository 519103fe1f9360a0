import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def gridwright(tmp_path: Path) -> Run:
    """Run the command as a user would, in an empty folder."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "gridwright", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120
        )

    return run
