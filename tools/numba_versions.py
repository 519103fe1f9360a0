"""Try Gridwright with several versions of Numba, each in a fresh environment.

usage: python tools/numba_versions.py [VERSION ...]
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("0.65.1", "0.66.0", "0.67.0", "0.68.1")
"""The last version of each minor version that may work."""
TESTS = ("tests/compiler/test_target.py", "tests/compiler/test_numba_types.py")
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")


def main() -> None:
    """Try every version; exit with 1 if a test fails."""
    versions = sys.argv[1:] or VERSIONS
    results = {version: _passes(version) for version in versions}
    for version, passes in results.items():
        print(f"Numba {version}: {'passes' if passes else 'FAILS'}")
    sys.exit(not all(results.values()))


def _passes(version: str) -> bool:
    """Install the package with a version of Numba, and run the tests of the compiler."""
    with tempfile.TemporaryDirectory(prefix="numba-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # one after the other: pip would refuse a version that pyproject.toml does not allow
        for packages in [str(ROOT), *TOOLS], [f"numba=={version}"]:
            if subprocess.run([*install, *packages], check=False).returncode:
                return False
        environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
        environment["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
        return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    main()
