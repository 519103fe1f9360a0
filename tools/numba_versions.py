"""Try Gridwright with several versions of Numba, each in a fresh environment.

usage: python tools/numba_versions.py [VERSION ...]

Each version must pass the tests of the compiler, and must give the same results, to the last bit,
as the last version of the list. Give that one last if you try others.
"""

import subprocess
import sys

from fresh_environment import ROOT, fresh_environment

VERSIONS = ("0.65.1", "0.66.0", "0.67.0", "0.68.0", "0.68.1")
"""The versions that pyproject.toml allows: the last of each minor version, and 0.68.0."""
TESTS = (
    *(f"tests/compiler/test_{name}.py" for name in ("digest", "numba_types", "readonly", "target")),
    *("-k", "not bit_for_bit"),
)
"""Without the test that compares the two compilers: the quick one is not used everywhere."""
SIMULATIONS = "tools/numba_simulations.py"
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")


def main() -> None:
    """Try every version; exit with 1 if a test fails or a result differs."""
    versions = sys.argv[1:] or VERSIONS
    found = {version: _tried(version) for version in versions}
    passed = []
    for version, (passes, digests) in found.items():
        same = bool(digests) and digests == found[versions[-1]][1]
        print(
            f"Numba {version}: tests {'pass' if passes else 'FAIL'}, "
            f"results {'equal' if same else 'DIFFER from'} those of {versions[-1]}"
        )
        passed.append(passes and same)
    sys.exit(not all(passed))


def _tried(version: str) -> tuple[bool, str]:
    """Install the package with a version of Numba, run the tests, and digest simulations."""
    try:
        with fresh_environment("", TOOLS, [f"numba=={version}"]) as (python, environment):
            tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
            passes = subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0
            environment["GRIDWRIGHT_QUICK_COMPILER"] = "0"
            simulations = [python, str(ROOT / SIMULATIONS)]
            done = subprocess.run(
                simulations, env=environment, stdout=subprocess.PIPE, text=True, check=False
            )
            return passes, done.stdout
    except subprocess.CalledProcessError:
        return False, ""


if __name__ == "__main__":
    main()
