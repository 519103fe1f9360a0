"""Imports point down only: a package imports the packages below it, never beside or above."""

import ast
from pathlib import Path

import pytest

import gridwright

ROOT = Path(gridwright.__file__).parent
LAYERS = [  # from the bottom up
    {"compiler", "model", "statistics", "tabular"},
    {"catalogue"},
    {"allocation"},
    {"policies"},
    {"simulation", "grid"},
    {"experiments", "testbed"},
    {"reproduction", "traces"},
    {"plots"},
    {"report"},
    {"web"},
    {"cli"},  # its ``ui`` starts the web page; nothing else imports either
]
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}
OUTSIDE = {"__init__", "__main__"}  # the front door opens onto everything
FILES = sorted(ROOT.rglob("*.py"))


def package_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_packages(file: Path) -> set[str]:
    """Name the packages of ours that a file imports, type-checking imports included."""
    depth = len(file.relative_to(ROOT).parts)
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth and node.level > 0:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {name.split(".")[0] for name in names}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            assert not any(name.split(".")[0] == "gridwright" for name in modules), (
                f"{file}: imports within the package are relative"
            )
    return found & set(HEIGHT)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_down(file: Path) -> None:
    package = package_of(file)
    if package in OUTSIDE:
        return
    assert package in HEIGHT, f"{package} has no place among the layers"
    for imported in imported_packages(file) - {package}:
        assert HEIGHT[imported] < HEIGHT[package], f"{package} must not import {imported}"


def test_the_check_sees_imports() -> None:
    assert imported_packages(ROOT / "cli" / "allocate.py") >= {"allocation", "catalogue"}
    assert imported_packages(ROOT / "allocation" / "allocation.py") == {"model"}
    assert imported_packages(ROOT / "allocation" / "planner.py") == {"compiler"}
