"""The published tables of chains: ours beside them, verdicts computed, variants labelled."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from gridwright.plots import draw_reproduction
from gridwright.plots.reproduction import draw_perturbed
from gridwright.reproduction import (
    Laboratory,
    Outcome,
    Scale,
    Target,
    Verdict,
    reproduce,
    targets,
)
from gridwright.simulation.chain_loop import perturbed

SCALE = Scale(15, 1.0)


@pytest.fixture(scope="module")
def laboratory() -> Laboratory:
    return Laboratory(SCALE, threads=2)


def outcomes(laboratory: Laboratory, name: str, **wanted: object) -> dict[str, Outcome]:
    whole = targets()[name]
    cells = tuple(c for c in whole.cells if wanted.items() <= c.items())
    (found,) = reproduce(Target(whole.name, whole.about, cells), laboratory=laboratory)
    return {each.cell["metric"]: each for each in found.outcomes}


def test_a_run_is_the_sum_of_its_bodies(laboratory: Laboratory) -> None:
    row = outcomes(laboratory, "W:III", nodes=2)
    total = 0.0
    for metric in ("jobs_ok", "jobs_late", "jobs_in_progress"):
        assert row[metric].judgement.verdict == Verdict.agrees
        ours = row[metric].ours
        assert ours is not None
        total += ours.mean
    assert abs(total - 1824) < 50
    assert row["jobs_ok"].published == "25"


@pytest.mark.parametrize("table", ["W:III", "W:IV"])
@pytest.mark.parametrize("variant", ["", ":calibrated", ":entrywise"])
def test_rows_of_one_node_are_not_reproduced(
    laboratory: Laboratory, table: str, variant: str
) -> None:
    row = outcomes(laboratory, table + variant, nodes=1)
    assert row["jobs_late"].judgement.verdict == Verdict.differs
    assert row["jobs_ok"].judgement.verdict == Verdict.differs


def test_the_variants_come_nearer_to_mct_and_say_that_they_are_fitted(
    laboratory: Laboratory,
) -> None:
    found = {
        word: outcomes(laboratory, f"W:IV{word}", nodes=16)["jobs_ok"]
        for word in ("", ":calibrated", ":entrywise")
    }
    means = {word: each.ours.mean for word, each in found.items() if each.ours}
    assert means[""] < 900
    assert abs(means[":calibrated"] - 1471) < 100
    assert abs(means[":entrywise"] - 1471) < 150
    assert found[""].judgement.verdict == Verdict.differs
    assert "variant" not in found[""].cell
    for word in (":calibrated", ":entrywise"):
        assert found[word].cell["variant"].endswith("fitted")


def test_perturbation_makes_little_difference(laboratory: Laboratory) -> None:
    rows = [outcomes(laboratory, "W:V", nodes=20, etcvar=v)["perf_fraction"] for v in (0.0, 1.0)]
    least, most = sorted(each.ours.mean for each in rows if each.ours)
    assert most - least < 0.1


def test_every_target_about_chains_has_cells_that_can_be_labelled() -> None:
    names = [name for name in targets() if name.startswith("W:")]
    assert {f"W:Figure {n}" for n in range(2, 7)} < set(names)
    assert {f"W:{t}:text" for t in ("II", "III", "IV")} < set(names)


def test_the_spread_of_perturbed_times_is_as_computed(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    g = rng.standard_normal(400_000)
    g = g[np.abs(g) < 1]
    u = rng.uniform(-1, 1, len(g))
    for name in ("W:Figure 5", "W:Figure 6"):
        (found,) = reproduce(name, laboratory=laboratory)
        for number, outcome in enumerate(found.outcomes, start=1):
            drawn = perturbed(number, outcome.cell["etcvar"], g, u)  # type: ignore[arg-type]
            assert outcome.ours is not None
            assert outcome.ours.mean == pytest.approx(np.std(drawn), rel=0.01, abs=1e-9)
        draw_reproduction(found, tmp_path / "figure.svg")
        assert "<svg" in (tmp_path / "figure.svg").read_text()


@pytest.mark.parametrize(("number", "scale"), [(5, "linear"), (6, "symlog")])
def test_only_a_spike_bends_the_axis(laboratory: Laboratory, number: int, scale: str) -> None:
    (found,) = reproduce(f"W:Figure {number}", laboratory=laboratory)
    axes = Figure().subplots()
    draw_perturbed(axes, list(found.outcomes))
    assert axes.get_yscale() == scale
    low, high = axes.get_ylim()
    assert sum(low <= tick <= high for tick in axes.get_yticks()) > 2


def test_a_figure_by_nodes(tmp_path: Path) -> None:
    whole = targets()["W:Figure 4"]
    cells = tuple(c for c in whole.cells if c["nodes"] in (4, 16) and "setting" not in c)
    (found,) = reproduce(
        Target(whole.name, whole.about, cells), laboratory=Laboratory(Scale(2, 1.0))
    )
    draw_reproduction(found, tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
