"""The figures of a run's statistics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright.grid import Interruptions
from gridwright.grid.event import Entry
from gridwright.grid.timeline import Attempt
from gridwright.testbed import Run
from gridwright.web.dashboard import FAILED, Span
from gridwright.web.pages.run_charts import compared_chart, waterfall_chart
from gridwright.web.run_figures import (
    READ,
    compared,
    figures_of,
    interval,
    printed_number,
    thinned,
    utilisation,
    waterfall,
)
from gridwright.web.tasks import keep_report, kept_report, mark_of

from .long_run import write_long_run

REPORT: dict[str, Any] = {
    "mean_response": 2.0,
    "classes": [{"name": "1", "mean_response": 2.0}],
    "simulated": {"mean_response": 1.5, "classes": [{"name": "1", "mean_response": 1.5}]},
    "gap": {"shares": {"overhead": 0.75, "operators": -0.5, "unexplained": 0.25}},
    "published": {"1": {"testbed": "1 to 2"}, "overall": {"testbed": "unstable"}},
}


def test_a_long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    with Run.find(write_long_run(2000)) as run:
        parts: list[str] = []
        found = figures_of(run, parts.append)
        assert parts == list(READ[:5])
        keep_report(run.number, {"until": 1}, ["another version", 1, 2.0])
        assert kept_report(run.number) is None, "it is about another state of the run"
        keep_report(run.number, {"until": 1}, mark_of(run.number))
        assert kept_report(run.number) == {"until": 1}
        run.journal.write([Entry(run.until + 1, "paused", machine="1")])
        assert kept_report(run.number) is None, "the run has gone on"
    assert len(found.timeline.rows) == 2000
    assert 1900 < len(found.spans) <= 2000, "the last jobs end after the run"
    assert not found.coarse
    *_, overall = found.responses.rows
    assert overall[:3] == ["all", 2000, pytest.approx(0.6)]
    assert overall[3] == pytest.approx(0.6)
    for row in found.utilisation.rows:
        assert sum(row[1:]) == pytest.approx(1.0, abs=1e-4)
        assert 0.5 < row[1] < 1
    assert not found.grows
    assert found.actions == []
    assert found.operated == ""


def test_a_run_whose_jobs_pile_up_has_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path))
    with Run.find(write_long_run(4000, piling=0.5)) as run:
        found = figures_of(run)
    assert found.grows
    *_, overall = found.responses.rows
    assert overall[1] == 4000
    assert overall[3:5] == [None, None]
    mean, half, most, nearly_all = overall[2], *overall[5:]
    assert half == pytest.approx(mean, rel=0.05), "responses rise evenly"
    assert 0 < half < most < nearly_all
    assert nearly_all - half == pytest.approx((most - half) * 0.49 / 0.45, rel=0.05)
    assert found.responses.heads[5:] == ["median", "95th percentile", "99th percentile"]


def test_every_moment_of_a_machine_is_counted_once() -> None:
    ran = [Attempt("1", 1, "1", 0.0, 3.0, "finished"), Attempt("1", 2, "1", 5.0, 6.0, "lost")]
    seen = Interruptions(
        failed={"1": [(6.0, 8.0)]},
        taken={"1": [(10.0, 12.0)]},
        paused={"1": [(2.0, 5.0), (7.0, 11.0)]},
        slowed={"1": [(0.0, 20.0)]},
    )
    found = utilisation(["1", "2"], ran, seen, 20.0)
    assert found.heads[1:] == ["finished", "lost", "failed", "taken away", "paused", "idle"]
    assert found.rows == [
        ["1", 0.15, 0.05, 0.1, 0.1, 0.2, 0.4],
        ["2", 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]


def test_an_interval_needs_jobs_and_covers_the_mean() -> None:
    values = np.random.default_rng(1).exponential(2.0, 5000).tolist()
    assert interval(values[:99]) is None
    low, high = interval(values) or (0.0, 0.0)
    assert 1.5 < low < sum(values) / 5000 < high < 2.5
    assert (interval([100.0] + [0.0] * 99) or (-1.0,))[0] == 0.0, "no mean response is negative"


def test_short_stretches_show_what_was_done_for_most_of_them() -> None:
    busy = [Span(0, k / 1000, k / 1000 + 0.0009, k % 2) for k in range(0, 500_000, 100)]
    spans = [*busy, Span(1, 100.0, 200.0, FAILED), Span(1, 200.0, 300.0, 3)]
    found = thinned(spans, 2, 600.0)
    assert [each for each in found if each.machine == 1] == [
        Span(1, 100.0, 200.0, FAILED),
        Span(1, 200.0, 300.0, 3),
    ]
    assert not [each for each in found if each.machine == 0], "it was idle for most of the time"


def test_steps_from_the_twin_to_the_run() -> None:
    steps = waterfall(REPORT, "1 pause")
    assert steps.rows == [
        ["twin", None, 1.5],
        ["overhead", 0.75, 2.25],
        ["operators (1 pause)", -0.5, 1.75],
        ["unexplained", 0.25, 2.0],
        ["run", None, 2.0],
    ]
    hidden, shown = waterfall_chart(steps)["series"]
    assert hidden["data"] == [0.0, 1.5, 1.75, 1.75, 0.0]
    assert [each["value"] for each in shown["data"]] == [1.5, 0.75, 0.5, 0.25, 2.0]


def test_run_twin_and_published() -> None:
    beside = compared(REPORT)
    assert beside.heads == ["class", "run", "twin", "published, testbed"]
    assert beside.rows == [["1", 2.0, 1.5, "1 to 2"], ["overall", 2.0, 1.5, "unstable"]]
    assert beside.records()[0]["twin"] == 1.5
    *_, published = compared_chart(beside)["series"]
    assert published["data"] == [1.5, None]
    assert printed_number("0.25") == 0.25
