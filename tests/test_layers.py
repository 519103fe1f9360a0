"""Imports point down only: a package imports the packages below it, never beside or above."""

import ast
from pathlib import Path

import pytest

import gridwright
from gridwright.policies import KINDS

ROOT = Path(gridwright.__file__).parent
LAYERS = [  # from the bottom up
    {"compiler", "model", "statistics", "tabular"},
    {"catalogue"},
    {"allocation"},
    {"policies"},
    {"simulation", "grid"},
    {"env", "experiments", "joblib", "testbed"},
    {"dask", "reproduction", "traces"},
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
    assert imported_packages(ROOT / "cli" / "packages.py") >= {"allocation", "catalogue"}
    assert imported_packages(ROOT / "allocation" / "workspace.py") == {"compiler"}
    assert imported_packages(ROOT / "allocation" / "planner.py") == {"compiler"}


def test_files_do_not_import_each_other_in_circles() -> None:
    files = {file: imported_files(file) for file in FILES}
    while free := {file for file, needed in files.items() if not needed & files.keys()}:
        files = {file: needed for file, needed in files.items() if file not in free}
    circles = {str(file.relative_to(ROOT)) for file in files}  # and what imports them
    assert circles == set()


def test_the_check_of_circles_sees_imports() -> None:
    web = ROOT / "web"
    found = imported_files(web / "services.py")
    assert found == {web / "queue.py", web / "runs.py"}
    assert ROOT / "model" / "__init__.py" in imported_files(web / "queue.py")


def imported_files(file: Path) -> set[Path]:
    """Return the files of ours that a file imports, inside of functions too, but not for types."""
    tree = ast.parse(file.read_text("utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found |= {file_of(base / alias.name) or file_of(base) for alias in node.names}
    return {each for each in found if each is not None} - {file}


def file_of(module: Path) -> Path | None:
    places = (module.with_suffix(".py"), module / "__init__.py")
    return next((place for place in places if place.is_file()), None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_kind_is_compared_with_a_string(file: Path) -> None:
    assert compared_kinds(file.read_text("utf-8")) == []


def test_the_check_sees_comparisons() -> None:
    assert compared_kinds('policy.kind == "push"') == [1]
    assert compared_kinds('\nif each.policy.kind not in ("push", "pull"): pass') == [2]
    assert compared_kinds('{"pull": 1}[policy.kind]') == [1]
    assert compared_kinds('entry.kind == "up"') == []


def compared_kinds(code: str) -> list[int]:
    """Return the lines where a kind meets the name of a kind."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Compare | ast.Subscript)
        and any(getattr(part, "attr", None) == "kind" for part in ast.walk(node))
        and any(getattr(part, "value", None) in KINDS for part in ast.walk(node))
    ]
