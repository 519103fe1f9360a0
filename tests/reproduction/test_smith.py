"""Every reading of the batches' rules is shown beside the printed figures."""

from collections import Counter
from pathlib import Path

import pytest

from gridwright.plots import draw_reproduction
from gridwright.reproduction import Laboratory, reproduce, runs_of, targets
from gridwright.reproduction.data import label
from gridwright.reproduction.laboratory import Scale
from gridwright.reproduction.reproduce import ask
from gridwright.reproduction.target import Target, best_reading


def test_the_whole_grid() -> None:
    target = targets()["S:Figure 1"]
    text = [cell for cell in target.cells if "variant" not in cell]
    assert [ask(cell).runs[0].policy for cell in text] == [
        "moc", "mm", "mmu", "msd", "mect",
    ]  # fmt: skip
    rules = [run.changed().deadlines for cell in text for run in ask(cell).runs]
    assert all(rule is not None and rule.factor == 1 for rule in rules)
    fitted = [cell for cell in target.cells if "variant" in cell]
    assert all(label(cell)[1].endswith("(fitted)") for cell in fitted)
    counts = Counter(cell["policy"] for cell in target.cells)
    assert counts == {"MM": 12, "MMU": 12, "MSD": 12, "MOC": 12, "MECT": 2}
    assert len(runs_of([target])) == len(target.cells)


@pytest.mark.slow
def test_verdicts_are_computed(tmp_path: Path) -> None:
    cells = [
        cell
        for cell in targets()["S:Figure 1"].cells
        if cell["policy"] == "MM" and cell.get("settings", {}).get("full") != "leaves"
    ]
    target = Target("S:Figure 1", "some of it", tuple(cells))
    (found,) = reproduce(target, laboratory=Laboratory(Scale(12, 1.0)))
    verdicts = {o.cell.get("variant"): str(o.judgement.verdict) for o in found.outcomes}
    assert verdicts[None] == "differs"
    assert verdicts["discard both, factor 2, full: load counts (fitted)"] == "agrees"
    assert found.picture == "s-figure-1.svg"
    draw_reproduction(found, tmp_path / "figure.svg")
    (text,) = reproduce("S:text", laboratory=Laboratory(Scale(4, 1.0)))
    assert text.outcomes[0].ours is not None
    assert text.outcomes[0].ours.mean > 400


def test_the_reading_that_fits_best_is_one_for_all() -> None:
    cells = targets()["S:Figure 1"].cells
    fits = "discard both, factor 2, "
    off = [0.0 if cell.get("variant", "").startswith(fits) else 1.0 for cell in cells]
    chosen = [cells[k] for k in best_reading(cells, off)]
    assert sorted(cell["policy"] for cell in chosen) == ["MECT", "MM", "MMU", "MOC", "MSD"]
    own = {cell["policy"]: cell["variant"] for cell in chosen}
    assert own["MECT"] == "discard never, factor 2 (fitted)"
    assert own["MM"].startswith(fits)
    assert own["MM"] == own["MSD"]
