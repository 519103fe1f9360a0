"""The reproduction as one HTML file."""

import re
from pathlib import Path

from gridwright.catalogue import errata
from gridwright.report import write_reproduction
from gridwright.reproduction import Laboratory, Outcome, Reproduction, reproduce, targets
from gridwright.reproduction.verdict import Judgement, Verdict
from gridwright.statistics import Estimate


def answered(name: str, reason: str = "") -> Reproduction:
    """Answer a table with its own numbers."""
    outcomes = []
    for cell in targets()[name].cells:
        value = float(cell.get("value") or cell.get("lo") or 1.0)
        ours = Estimate(value, value, value)
        outcomes.append(Outcome(cell, ours, True, Judgement(Verdict.differs, reason)))
    return Reproduction(targets()[name], tuple(outcomes))


def test_the_report_holds_everything(tmp_path: Path) -> None:
    (exact,) = reproduce("LP")
    found = [exact, answered("K:7.2", "<b>bold</b>"), answered("K:7.3"), answered("A:Figure 3.4")]
    path = tmp_path / "r.html"
    write_reproduction(found, Laboratory(), path, 12.0)
    text = path.read_text("utf-8")
    cells = sum(not outcome.reading for each in found for outcome in each.outcomes)
    assert f"of {cells} cells of 4 tables and figures" in text
    assert text.count("<tr>") > cells
    assert text.count('class="differs"') >= cells - len(exact.outcomes)
    assert f"<strong>{len(exact.outcomes)} agree, {cells - len(exact.outcomes)} differ, " in text
    assert "<strong>What was found.</strong> 290 of the " in text
    assert re.search(r"agree with ours \(\d\d\.\d %\)\. Those that differ are in .*K:7\.3 \(", text)
    assert '<img alt="A:Figure 3.4: 3.H, improvement over Gcmu against' in text
    assert not re.findall(r"<th[^>]*></th>", text)
    labels = re.findall(r'role="region" aria-label="([^"]*)"', text)
    assert len(labels) == len(set(labels)) == text.count("<table>")
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert text.count("<figure>") == 2  # the figure, and simulation against testbed
    assert all(each.source in "AKSDW" for each in errata())
    assert text.count("<tr>") >= cells + len(errata())
    anchors = set(re.findall(r'href="#([^"]+)"', text))
    assert anchors <= set(re.findall(r'id="([^"]+)"', text))
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)


def test_what_is_unstable_has_no_interval() -> None:
    cell = targets()["K:7.2"].cells[0]
    grows = Outcome(cell, Estimate(93.0, 60.0, 126.0), False, Judgement(Verdict.differs, ""))
    assert grows.found == "93 unstable"
    assert grows._replace(stable=True).found == "93 ± 33"


def test_without_runs_of_the_testbed_there_is_no_picture_of_it(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_reproduction(reproduce("LP"), Laboratory(), path, 1.0)
    text = path.read_text("utf-8")
    assert 'id="testbed"' not in text
    assert "0 runs, 0 tasks, 0 CPU seconds" in text


def test_what_has_no_verdict_says_why(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    found = reproduce("W:Figure 5", "K:Figure B.9")
    write_reproduction(found, Laboratory(), path, 1.0)
    text = path.read_text("utf-8")
    assert "</a> not printed: actual over estimated times, high perturbation<br>" in text
    assert f"</a> {len(found[1].outcomes)} not run<br>" in text
