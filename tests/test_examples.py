"""Every example prints what stands beside it."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NEEDS = {"learn_with_ppo": "stable_baselines3"}
"""Packages that neither Gridwright nor its tests need."""


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_stands_beside_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == path.with_suffix(".txt").read_text("utf-8")


def test_the_list_of_examples_is_whole() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert [path.name for path in EXAMPLES if f"`{path.name}`" not in text] == []
    assert len(EXAMPLES) == text.count("| `")
