"""Every notebook runs from its first cell to its last."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WORDS = {
    "compare-policies": "better: lpas_dg",
    "design-your-own-policy": "unstable: grows by",
    "lab-instability": "0 of 20 answers",
    "lab-instability-teacher": "20 of 20 answers",
    "simulation-against-real": "of the twin",
}
"""What each is about, as it prints it."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert WORDS[path.stem] in str([cell.outputs for cell in cells])


def test_there_are_five() -> None:
    assert len(NOTEBOOKS) == 5


def test_the_key_is_the_lab_with_answers() -> None:
    lab, key = (
        _code(FOLDER / f"{name}.ipynb") for name in ("lab-instability", "lab-instability-teacher")
    )
    assert list(lab) == list(key)
    changed = [name for name in lab if lab[name] != key[name]]
    assert changed == [name for name in lab if name.startswith("answer-")]


def _code(path: Path) -> dict[str, str]:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_found(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    shown = str([cell.outputs for cell in notebook.cells if cell.cell_type == "code"])
    assert "Traceback" not in shown
    assert WORDS[path.stem] in shown
