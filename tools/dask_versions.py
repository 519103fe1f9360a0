"""Try Gridwright with several versions of Dask, each in a fresh environment.

usage: python tools/dask_versions.py [--source REPOSITORY] [VERSION ...]

Each version must pass our tests that use Dask, and Dask's own tests with our placement in every
scheduler. Packages of Dask do not contain its tests. They come from its git repository, an address
or a folder: those of the last tag that is not newer than the version. `tools/dask_tests.py` names
the tests that are left out, and why. Many of Dask's tests depend on the clock: one that fails is
run once more, and named if it passes then.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from fresh_environment import ROOT, Fresh, fresh_environment

SOURCE = "https://github.com/dask/distributed"
VERSIONS = ("2024.8.0", "2025.9.0", "newest")
"""The oldest that pyproject.toml allows, one of last year, and the newest."""
OURS = (
    "tests/dask",
    *(f"tests/grid/test_{name}.py" for name in ("dask", "dask_faults", "script_modules")),
)
DASKS = (
    *("actor", "as_completed", "cancelled_state", "client", "client_executor", "failed_workers"),
    *("priorities", "reschedule", "resources", "scheduler", "steal", "worker", "worker_client"),
)
"""Dask's own tests."""
TOOLS = ("hypothesis", "pytest", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist")


def main() -> None:
    """Try every version; exit with 1 if a test fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", default=SOURCE, help="the git repository of distributed")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="distributed-") as folder:
        clone = ["git", "clone", "--quiet", "--bare", options.source, folder]
        has_source = subprocess.run(clone, check=False).returncode == 0
        results = [_tried(each, Path(folder) if has_source else None) for each in options.versions]
    print(*(words for words, _ in results), sep="\n")
    sys.exit(not all(passed for _, passed in results))


def _tried(version: str, source: Path | None) -> tuple[str, bool]:
    """Install a version, and run our tests and Dask's; return the results in words, and as one."""
    which = "" if version == "newest" else f"=={version}"
    packages = ("--upgrade", f"distributed{which}", f"dask{which}")
    try:
        with fresh_environment("[grid]", TOOLS, packages) as fresh:
            found = _output(fresh, "import distributed; print(distributed.__version__)")
            ours = _passes(fresh, ROOT, "-k", "not browser", *OURS)
            theirs = source is not None and _dasks_pass(fresh, found, source)
    except subprocess.CalledProcessError:
        return f"Dask {version}: it CANNOT be installed", False
    dasks = "NOT RUN, no source" if source is None else "pass" if theirs else "FAIL"
    return f"Dask {found}: our tests {'pass' if ours else 'FAIL'}, its own {dasks}", ours and theirs


def _dasks_pass(fresh: Fresh, version: str, source: Path) -> bool:
    """Put Dask's tests where its package would have them, and run them."""
    tags = _git(source, "tag").split()
    tag = max((each for each in tags if _parts(each) <= _parts(version)), key=_parts)
    package = Path(_output(fresh, "import distributed; print(distributed.__path__[0])"))
    archive = subprocess.run(
        ["git", "-C", source, "archive", tag, "distributed/tests"], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "x", "-C", package.parent], check=True, input=archive)
    fresh.environment["PYTHONPATH"] = str(ROOT / "tools")
    options = ("-p", "dask_tests", "-c", "/dev/null", "--rootdir", ".", "-m", "not slow")
    files = [name for each in DASKS if (package / "tests" / (name := f"test_{each}.py")).exists()]
    quiet = ("-W", "ignore", "--tb", "short", "--show-capture", "no")
    limit = ("-o", "timeout=120", "-o", "timeout_method=signal")
    again = ("--reruns", "1", "-rR")
    return _passes(fresh, package / "tests", *options, *quiet, *limit, *again, *files)


def _passes(fresh: Fresh, folder: Path, *arguments: str) -> bool:
    words = [fresh.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(words, cwd=folder, env=fresh.environment, check=False).returncode == 0


def _output(fresh: Fresh, program: str) -> str:
    words = [fresh.python, "-c", program]
    return subprocess.run(
        words, env=fresh.environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def _git(source: Path, *words: str) -> str:
    command = ["git", "-C", str(source), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _parts(version: str) -> list[int]:
    return [int(each) for each in version.split(".") if each.isdecimal()]


if __name__ == "__main__":
    main()
