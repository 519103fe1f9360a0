"""Virtual environments with this package and chosen versions of others."""

import os
import subprocess
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Fresh(NamedTuple):
    """A virtual environment."""

    python: str
    environment: dict[str, str]
    """The environment variables of its programs."""


@contextmanager
def fresh_environment(extra: str, tools: Sequence[str], packages: Sequence[str]) -> Iterator[Fresh]:
    """Install this package with an extra, tools and other packages, in a folder that is removed.

    Raise ``subprocess.CalledProcessError`` if one of them cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="gridwright-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # one after the other: pip would refuse a version that pyproject.toml does not allow
        for each in [f"{ROOT}{extra}", *tools], packages:
            subprocess.run([*install, *each], check=True)
        environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
        environment["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        yield Fresh(python, environment)
