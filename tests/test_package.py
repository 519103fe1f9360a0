import subprocess
import sys
from importlib import import_module

import pytest

import gridwright

HEAVY = ["highspy", "matplotlib", "numba", "numpy", "pydantic", "scipy"]


@pytest.mark.parametrize("name", gridwright.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(gridwright, name) is not None


@pytest.mark.parametrize(
    "package",
    [
        "model",
        "statistics",
        "allocation",
        "catalogue",
        "policies",
        "simulation",
        "experiments",
        "grid",
        "plots",
    ],
)
def test_packages_export_what_they_say(package: str) -> None:
    module = import_module(f"gridwright.{package}")
    assert all(hasattr(module, name) for name in module.__all__)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        gridwright.simulat  # noqa: B018


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
        ("import gridwright as g; g.allocate(g.load('2.B'))", ["numba", "highspy", "matplotlib"]),
    ],
)
def test_heavy_parts_are_loaded_only_when_needed(code: str, unloaded: list[str]) -> None:
    code += f"\nimport sys\nprint(sorted(set({unloaded!r}) & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
