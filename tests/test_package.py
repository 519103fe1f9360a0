import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gridwright

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = [file.relative_to(SOURCE).with_suffix("") for file in SOURCE.rglob("*.py")]
MODULES = sorted(
    ".".join(file.parts).removesuffix(".__init__")
    for file in FILES
    if file.name not in ("__main__", "conftest")
)
OPTIONAL = {"gridwright.compiler.cuda": "numba_cuda"}
"""Modules that an extra is for which the tests do not need."""
HEAVY = ["highspy", "matplotlib", "numba", "numpy", "pydantic", "scipy"]


@pytest.mark.parametrize("name", gridwright.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert hasattr(gridwright, name)


@pytest.mark.parametrize("name", MODULES)
def test_modules_export_what_they_say(name: str) -> None:
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name], reason=f"{OPTIONAL[name]} is not installed")
    module = import_module(name)
    said = getattr(module, "__all__", [])  # a policy's file has none, like those of users
    assert sorted(set(said)) == sorted(said)
    assert [word for word in said if not hasattr(module, word)] == []


@pytest.mark.parametrize("folder", ["src", "tests", "tools", "bench", "examples"])
def test_a_file_fits_in_a_head(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    lines = {file.relative_to(ROOT): len(file.read_text("utf-8").splitlines()) for file in files}
    assert len(lines) == len(files) > 0
    assert {file: count for file, count in lines.items() if count > 500} == {}


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        gridwright.simulat  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_the_exports() -> None:
    assert set(gridwright.__all__) == set(dir(gridwright))


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import gridwright", HEAVY),
        ("from gridwright.cli.main import run; run(['--help'])", ["numba", "numpy", "matplotlib"]),
        (
            "from gridwright.cli.main import run; run(['policies'])",
            ["numba", "matplotlib", "scipy"],
        ),
        (
            "from gridwright.cli.main import run; run(['allocate', '2.B'])",
            ["gridwright.plots", "gridwright.testbed", "matplotlib"],
        ),
        ("import gridwright as g; g.allocate(g.load('2.B'))", ["numba", "highspy", "matplotlib"]),
    ],
)
def test_heavy_parts_are_loaded_only_when_needed(code: str, unloaded: list[str]) -> None:
    code += f"\nimport sys\nprint(sorted(set({unloaded!r}) & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
