"""Tables reproduced: right numbers agree, wrong ones differ, and nothing is simulated twice."""

from pathlib import Path

import pytest

from gridwright.experiments import Store
from gridwright.reproduction import (
    FULL,
    FULL_ON_GPU,
    PUBLISHED,
    Laboratory,
    Run,
    Scale,
    Target,
    Verdict,
    choose,
    data_of,
    lengths,
    reproduce,
    summary,
    testbed_runs,
)
from gridwright.reproduction.page import write_page

NOWHERE = "tcp://127.0.0.1:9"
"""Nothing listens there: what needs no simulation needs no cluster either."""


def part(table: str, **wanted: object) -> Target:
    """Return some of the cells of a table."""
    (target,) = choose([table])
    cells = tuple(cell for cell in target.cells if wanted.items() <= cell.items())
    assert cells
    return target._replace(cells=cells)


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(Scale(10, 1 / 20), store=Store(tmp_path / "results.sqlite"))


def test_worked_examples_of_the_lp_agree() -> None:
    (found,) = reproduce("LP")
    assert summary([found])["agrees"] == len(found.outcomes) > 250


def test_numbers_agree_and_wrong_ones_differ(laboratory: Laboratory) -> None:
    target = part("2.1", system="2.D", policy="LPAS").stated
    (right,) = reproduce(target, laboratory=laboratory)
    assert right.outcomes[0].judgement.verdict == Verdict.agrees
    (cell,) = target.cells
    wrong = target._replace(cells=({**cell, "lo": cell["lo"] + 2, "hi": cell["hi"] + 2},))
    (found,) = reproduce(wrong, laboratory=laboratory)
    assert found.outcomes[0].judgement.verdict == Verdict.differs
    assert found.outcomes[0].judgement.reason.startswith("by -1")


def test_a_reading_of_a_share_of_the_length_is_the_stated_answer_and_a_difference(
    laboratory: Laboratory,
) -> None:
    """The single machine of KPB with k = 1 has no ties, so that both runs are the same."""
    for policy, same in (("KPB", True), ("MCT", False)):
        target = part("2.1", system="2.B", policy=policy)
        stated, other = reproduce(target, laboratory=laboratory)[0].outcomes
        assert other.reading == "ties at random"
        assert stated.ours is not None
        assert other.ours is not None
        assert (other.ours.mean == stated.ours.mean) == same
        assert (other.ours.half_width > stated.ours.half_width) != same
    short = [run for run in laboratory.results if run.share < 1]
    assert {laboratory.scale.length(run) for run in short} == {20_000 / 20 / 10}
    assert len(short) == 4


def test_words_agree_and_wrong_ones_differ(laboratory: Laboratory) -> None:
    target = part("A:text", system="2.Sharifnia", metric="Q_mean")
    (right,) = reproduce(target, laboratory=laboratory)
    assert {o.judgement.verdict for o in right.outcomes} == {Verdict.agrees}
    turned = {"stable": "unstable", "unstable": "stable"}
    cells = tuple({**cell, "status": turned[cell["status"]]} for cell in target.cells)
    (wrong,) = reproduce(target._replace(cells=cells), laboratory=laboratory)
    assert {o.judgement.verdict for o in wrong.outcomes} == {Verdict.differs}


@pytest.mark.slow
def test_a_blank_stands_for_much_worse(laboratory: Laboratory) -> None:
    blank = part("3.2", status="blank", arrival="alpha1", case=3)
    (found,) = reproduce(blank, laboratory=laboratory)
    assert found.outcomes[0].judgement.verdict == Verdict.agrees
    (cell,) = blank.cells
    wrong = blank._replace(cells=({**cell, "policy": "LPAS_DG"},))
    (found,) = reproduce(wrong, laboratory=laboratory)
    assert found.outcomes[0].judgement.verdict == Verdict.differs


def test_kept_results_are_not_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridwright.experiments.cluster.PATIENCE", 0.5)
    target = part("3.3", arrival="alpha1", case=1)
    store = Store(tmp_path / "results.sqlite")
    (first,) = reproduce(target, laboratory=Laboratory(Scale(3, 1 / 200), store=store))
    again = Laboratory(Scale(3, 1 / 200), store=store, on=NOWHERE)
    (second,) = reproduce(target, laboratory=again)
    assert first.as_json() == second.as_json()
    more = Laboratory(Scale(4, 1 / 200), store=store, on=NOWHERE)
    with pytest.raises(ValueError, match="no Dask scheduler answers"):
        reproduce(target, laboratory=more)


def test_targets_and_names_may_be_mixed() -> None:
    found = reproduce(choose(["LP"])[0], "K:7.7", "K:7.6")  # without a simulation
    assert [each.target.name for each in found] == ["LP", "K:7.7", "K:7.6"]


def test_errata_of_what_is_not_run_are_told() -> None:
    (found,) = reproduce(
        part("K:text", section="7.2.1", metric="max_testbed_minus_simulation_stated")
    )
    (outcome,) = found.outcomes
    assert outcome.judgement.verdict == Verdict.not_run
    assert "known erratum: class 1 under Gcmu differs by 0.11" in outcome.judgement.reason


@pytest.fixture(autouse=True)
def no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    testbed_runs._known.cache_clear()


def test_a_difference_of_the_model_is_no_erratum_of_a_testbed_run() -> None:
    (found,) = reproduce(part("3.16", case=6, platform="testbed", metric="W_mean").stated)
    (outcome,) = found.outcomes
    assert outcome.judgement == (
        Verdict.not_run,
        "no run of it yet: 'gridwright run MGST-6 --policy lpas_dg' makes one",
    )


def test_improvements_come_with_intervals(laboratory: Laboratory) -> None:
    (found,) = reproduce(part("3.3", arrival="alpha1", case=1).stated, laboratory=laboratory)
    (outcome,) = (o for o in found.outcomes if o.cell["metric"] == "Delta_pct")
    assert outcome.ours is not None
    assert 0 < outcome.ours.half_width < 5
    assert outcome.judgement.verdict == Verdict.agrees


@pytest.mark.slow
def test_the_page(tmp_path: Path, laboratory: Laboratory) -> None:
    found = reproduce(part("2.1", system="2.D"), "LP", laboratory=laboratory)[:1]
    found += reproduce("K:7.6", laboratory=laboratory)
    write_page(data_of(found, laboratory), tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "## A:2.1" in page
    assert "| 2.D | LPAS | mean number | (10.55, 10.59) | 10." in page
    assert "10 replications of 1/20 of the published length" in page
    assert "Not run: no run of it yet: 'gridwright run MGST-2 --policy lpas_dg' makes one" in page


def test_some_tables_of_a_page_are_replaced(laboratory: Laboratory) -> None:
    older = data_of(reproduce("LP", "K:7.6", laboratory=laboratory), laboratory)
    laboratory.scale = FULL_ON_GPU
    newer = data_of(reproduce("LP", laboratory=laboratory), laboratory)
    both = older.updated(newer)
    assert [each.name for each in both.sections] == [each.name for each in older.sections]
    assert both.sections[1] == older.sections[1]
    assert both.made == f"{older.made}; LP: {newer.made}"


def test_long_runs_say_how_long_they_are() -> None:
    (found,) = reproduce(part("3.12", system="3.F"), laboratory=Laboratory(Scale(2, 1e-4)))
    assert "Runs of 3.F are 1/10 of the published length" in lengths(found, Laboratory(PUBLISHED))
    words = "have the published length, put together from 128 pieces, each after a warm-up of 20"
    there = Laboratory(FULL_ON_GPU, on="gpu")
    assert words in lengths(found, there)
    assert lengths(found, Laboratory(FULL)).startswith("Runs of 3.F have the published length;")
    assert not lengths(found, Laboratory(Scale(2, 1e-4)))
    there.whole.add(Run("3.F:alpha:1", "gcmu"))
    said = lengths(found, there)
    assert "Runs of 3.F:alpha:1 under Gcmu have the published length; half widths" in said
    assert "Runs of 3.F:alpha:1 under LPAS_DG, 3.F:alpha:2 under Gcmu, 3.F:alpha:2 under" in said
    assert said.count(words) == 1
