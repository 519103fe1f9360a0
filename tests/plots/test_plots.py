"""Pictures show what they are given: panels, labels, bars, lines and their values."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gridwright import InputError, System, adversary, allocate, compare, contest, load, sweep
from gridwright import plots as typed_plots
from gridwright.experiments import Comparison, random_systems
from gridwright.reproduction import Outcome, Reproduction, targets
from gridwright.reproduction.verdict import Judgement, Verdict
from gridwright.statistics import Estimate
from gridwright.testbed import Experiment, Fault, JobList, conduct
from gridwright.testbed.calibration import Calibrations, Measured, Point
from gridwright.traces import replay

plots: Any = typed_plots
"""Untyped, as the stubs of Matplotlib leave open what a figure holds."""
SYSTEM = System(arrivals=[3, 4], rates=[[8, 3], [4, 10]], name="two $machines$")


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(SYSTEM, ["mct", "lpas"], 200, 3)


def heights(axes: Any) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def ticks(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_results(compared: Comparison) -> None:
    results = compared.results
    figure = plots.draw_results(results)
    means, classes, number = figure.axes
    assert figure.get_suptitle().startswith(r"two \$machines\$: 3 × ")
    assert [tick.partition("\n")[0] for tick in ticks(means)] == ["mct", "lpas"]
    metric = results[0].criteria[-1]
    assert_allclose(heights(means), [each.figure(metric).mean for each in results])
    by_class = [each.mean_response.mean for r in results for each in r.classes]
    assert_allclose(heights(classes), by_class)
    assert ticks(classes) == ["1", "2"]
    assert len(number.lines) == 2
    expected = np.mean([run.number for run in results[1].replications], axis=0)
    assert_allclose(number.lines[1].get_ydata(), expected)
    assert number.get_ylabel() == "tasks in system (mean and range)"


def test_an_unstable_policy_has_no_mean_and_the_others_a_scale_of_their_own() -> None:
    found = compare("2.MET-example", ["met", "mct"], 2000, 2)
    assert [each.stable for each in found.results] == [False, True]
    means, classes, number = plots.draw_results(found.results).axes
    expected = found.results[1].mean_response
    assert_allclose(heights(means), [np.nan, expected.mean])
    assert [text.get_text() for text in means.texts] == ["no mean"]
    assert ticks(means) == ["met\n(unstable)", "mct"]
    low, high = means.get_xlim()
    assert low < 0 < 1 < high
    assert np.isnan(heights(classes)[: len(found.results[0].classes)]).all()
    assert means.get_yscale() == classes.get_yscale() == "linear"
    assert len(number.lines) == 2, "what grows is drawn over time"


def test_results_of_machines_that_ask_each_other() -> None:
    found = compare("4.A", ["mct_dec", "lpas_dec"], 50, 2)
    figure = plots.draw_results(found.results)
    views = figure.axes[3]
    assert len(views.lines) == 2
    shares = 100 * np.array(found.results[0].replications[0].more["disagreements"])
    assert_allclose(views.lines[0].get_ydata(), shares)


def test_a_sweep_marks_what_is_unstable_and_where_the_load_is_one() -> None:
    found = sweep(SYSTEM, ["mct", "lpas"], "load", [0.5, 0.9, 1.2], 500, 2)
    figure = plots.draw_sweep(found)
    for axes, metric in zip(figure.axes, found.points[0].results[0].criteria[::-1], strict=True):
        assert axes.get_xlabel() == "load"
        assert legend(axes) == ["mct", "lpas"]
        rows = [row for row in found.rows() if row["policy"] == "mct"]
        assert_allclose(axes.lines[0].get_xdata(), [0.5, 0.9, 1.2])
        assert_allclose(axes.lines[0].get_ydata(), [row[metric].mean for row in rows])
        rings = axes.lines[1]
        unstable = [row["value"] for row in rows if row["stable"] is False]
        assert 1.2 in unstable
        assert_allclose(rings.get_xdata(), unstable)
        assert axes.lines[-1].get_xdata()[0] == pytest.approx(1.0)
    assert "rings unstable" in figure.get_suptitle()
    assert "dashed: long-run load 1" in figure.get_suptitle()


def test_a_contest() -> None:
    systems = random_systems(3, seed=2)
    found = contest(systems, ["fcfs", "gcmu"], 300, 2)
    profile, by_load = plots.draw_contest(found).axes
    assert legend(profile) == ["fcfs", "gcmu"]
    for k, (line, dots) in enumerate(zip(profile.lines, by_load.lines, strict=True)):
        stable = np.sort(found.ratios[~np.isnan(found.ratios[:, k]), k])
        assert_allclose(line.get_xdata()[:-1], [1, *stable])
        assert_allclose(line.get_ydata()[:-1], np.arange(len(stable) + 1) / 3)
        assert line.get_xdata()[-1] >= profile.get_xlim()[1]
        assert line.get_ydata()[-1] == len(stable) / 3
        assert_allclose(dots.get_ydata(), found.ratios[:, k])


@pytest.mark.slow
def test_an_adversary() -> None:
    found = adversary("fcfs", ["gcmu"], 2, 2, steps=3)
    rates, bars = plots.draw_adversary(found).axes
    shown = [text.get_text() for text in rates.texts]
    assert shown == [f"{rate:.3g}" for rate in found.system.nominal.ravel()]
    results = found.comparison.results
    assert_allclose(heights(bars), [each.mean_number.mean for each in results])
    assert bars.get_ylabel() == "mean number in system"


@pytest.mark.parametrize("name", ["2.B", "3.A:alpha1:5", "3.G1:alpha1:1"])
def test_an_allocation(name: str) -> None:
    found = allocate(load(name))
    shares, efficiencies = plots.draw_allocation(found).axes[:2]
    assert_allclose(np.ma.filled(shares.images[0].get_array(), 0), found.shares)
    assert_allclose(np.ma.filled(efficiencies.images[0].get_array(), 0), found.efficiencies)
    readable = len(found.system.machines) <= 40
    assert len(shares.texts) == (readable and np.count_nonzero(found.shares))
    for text in shares.texts:
        assert text.get_text() != ".00", "a share that is small but not 0 is not written as 0"
    assert f"λ* = {found.capacity:.4f}" in shares.get_title()
    assert ticks(shares)[0] == found.system.machines[0]


def test_replays() -> None:
    jobs = JobList([0.0, 60.0, 120.0], [0, 1, 0], [3600.0, 7200.0, 1800.0])
    system = SYSTEM.replace(rates=[[1, 0.5], [0.5, 1]])
    found = [replay(system, jobs, policy) for policy in ("fcfs", "gcmu")]
    means, classes, number = plots.draw_replays(found, 120.0).axes
    assert ticks(means) == ["fcfs", "gcmu"]
    assert_allclose(heights(means), [np.mean(each.responses) / 3600 for each in found])
    assert_allclose(heights(classes), np.concatenate([each.by_class for each in found]) / 3600)
    assert legend(number) == ["fcfs", "gcmu"]
    assert max(number.lines[0].get_ydata()) <= 3


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    plan = Experiment(system=SYSTEM, policy="mct", time_unit=0.05, duration=10)
    with conduct(plan, faults=(Fault(0, 2.0, 3.0),)) as run:
        (axes,) = plots.draw_run(run).axes
        first, second = plots.draw_runs([run, run]).axes
        assert first.get_ylim() == second.get_ylim() == axes.get_ylim(), "one scale for all runs"
        assert [len(each.lines) for each in (first, second)] == [2, 2]
        jobs = [kept.job for kept in run.journal.jobs(contents=False)]
        done = [job for job in jobs if job.stage == "finished"]
    assert sum(len(line.get_xdata()) for line in axes.lines) == len(done) > 5
    drawn = np.sort(np.concatenate([line.get_ydata() for line in axes.lines]))
    assert_allclose(drawn, np.sort([job.ended - job.submitted for job in done]))
    assert legend(axes) == ["class 1", "class 2"]
    (band,) = axes.patches
    assert band.get_bbox().x0 == 2.0
    assert axes.get_title(loc="left").endswith("under mct")


def test_a_calibration() -> None:
    lengths = tuple(Point(n, (0.01 + n / 1000,) * 2) for n in (100, 200, 300))
    shares = tuple(Point(a, (0.1 / a,) * 2) for a in (0.5, 1.0))
    found = Calibrations((Measured("m", lengths, shares, 10.0),), 2)
    times, rates = plots.draw_calibration(found).axes
    assert times.get_title(loc="left") == "machine m"
    assert legend(times) == ["0.01 + 0.001 x, R² = 1.0000"]
    assert_allclose(times.lines[-1].get_ydata(), [0.01, 0.31])
    assert_allclose(rates.lines[-1].get_ydata(), [0, 10])
    assert len(times.lines) == 2 * 3 + 1


def test_a_week_of_availability() -> None:
    week = np.full((7, 24), np.nan)
    week[0, :12] = 0.5
    axes = plots.draw_availability(week.tolist()).axes[0]
    drawn = axes.images[0].get_array()
    assert drawn[0, 0] == 0.5
    assert np.ma.count(drawn) == 12
    assert axes.get_yticklabels()[0].get_text() == "Mon"


def answered(name: str) -> Reproduction:
    """Answer every cell of a table with 1.5 (1, 2)."""
    ours = Estimate(1.5, 1.0, 2.0)
    judgement = Judgement(Verdict.differs)
    cells = targets()[name].cells
    return Reproduction(
        targets()[name], tuple(Outcome(cell, ours, True, judgement) for cell in cells)
    )


@pytest.mark.parametrize(
    ("name", "across", "up"),
    [
        ("A:Figure 3.4", "largest inaccuracy of the availabilities, %", "improvement over Gcmu, %"),
        ("A:Figure 4.1", "largest inaccuracy of arrival and execution rates, %", "mean response"),
        ("W:Figure 2", "nodes", "performance: OK / (OK + late)"),
    ],
)
def test_a_published_figure_of_lines(name: str, across: str, up: str) -> None:
    found = answered(name)
    assert found.picture.endswith(".svg")
    (axes,) = plots.draw_reproduction(found).axes
    assert axes.get_title() == name
    assert axes.get_xlabel() == across
    assert axes.get_ylabel().startswith(up)
    assert_allclose(axes.lines[0].get_ydata(), 1.5)
    assert len(legend(axes)) >= 2


def test_published_figures_of_bars() -> None:
    (axes,) = plots.draw_reproduction(answered("A:Figure 3.1")).axes
    assert ticks(axes) == ["FCFS", "LPAS_DG", "Gcmu"]
    assert_allclose(heights(axes), [1.5, 1.5, 1.0])
    (axes,) = plots.draw_reproduction(answered("A:Figure 4.2")).axes
    assert ticks(axes) == ["LPAS_dec\nresponse time", "LPAS_dec\nmessages", "MCT"]
    (axes,) = plots.draw_reproduction(answered("S:Figure 1")).axes
    published = [cell["value"] for cell in targets()["S:Figure 1"].cells if "variant" not in cell]
    assert legend(axes) == ["published", "ours, as the text has it", "ours, fitted"]
    assert_allclose(heights(axes), [*published, *[1.5] * 10])


def test_simulation_against_testbed() -> None:
    figure = plots.draw_testbed([answered(name) for name in targets() if name.startswith("K:7.")])
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [
        f"experiment {k + 1}" for k in range(len(shown))
    ]
    assert len(shown) >= 2
    ours = heights(shown[0])[6:]
    assert set(np.array(ours)[~np.isnan(ours)]) == {1.5}
    assert ticks(shown[0]) == ["LPAS_DG", "Gcmu", "FCFS"]


@pytest.mark.parametrize("kind", plots.FORMATS)
def test_a_picture_is_written_the_same_every_time(
    compared: Comparison, tmp_path: Path, kind: str
) -> None:
    for name in ("a", "b"):
        plots.draw_results(compared.results, tmp_path / f"{name}{kind}")
    first, second = ((tmp_path / f"{name}{kind}").read_bytes() for name in ("a", "b"))
    assert len(first) > 1000
    assert first == second


def test_a_picture_that_cannot_be_written(compared: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        plots.draw_results(compared.results, tmp_path / "none" / "a.png")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["gridwright.plots", "gridwright.report", "gridwright.web.api"])
def test_matplotlib_is_loaded_only_to_draw(module: str) -> None:
    code = f"import sys, {module}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
