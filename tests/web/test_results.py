"""The results of simulations: documents, charts, exports, and the same elsewhere."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from gridwright.web import findings
from gridwright.web.elsewhere import as_command, as_python
from gridwright.web.findings import list_documents, load_document, spreadsheet
from gridwright.web.pages.result_charts import (
    class_chart,
    growth_chart,
    growth_words,
    means_chart,
    means_words,
    tail_chart,
    tail_words,
)
from gridwright.web.simulations import Simulation, Wanted, simulation_of

from .conftest import Server

SYSTEM = {"name": "mine", "arrivals": [9.0, 9.0], "rates": [[10.0, 5.0], [7.0, 12.0]]}
CODE = """from gridwright import push


@push
def first(task_class, view):
    return 0
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path


def simulated(**wanted: Any) -> Simulation:
    made = simulation_of(Wanted(**{"horizon": 400.0, "replications": 3, **wanted}))
    made.run()
    assert (made.state, made.error) == ("done", "")
    return made


@pytest.mark.parametrize(
    ("policies", "code"),
    [(("kpb:k=1", "mct"), ""), pytest.param(("kpb:k=1",), CODE, marks=pytest.mark.slow)],
)
def test_results_are_kept_and_elsewhere_the_same(
    home: Path, policies: tuple[str, ...], code: str
) -> None:
    """A system and perhaps a policy of one's own: the page, a script, a command, the same means."""
    made = simulated(system=SYSTEM, policies=policies, code=code, warmup=10.0, seed=7)
    found = load_document(made.address)
    assert found is not None
    assert found == made.findings()
    assert [each["address"] for each in list_documents()] == [made.address]
    assert found["conclusions"]
    results = found["result"]["results"]
    assert [each["policy"] for each in results] == [*policies, *(["first"] if code else [])]
    expected = [each["mean_response"]["mean"] for each in results]
    (home / "same.py").write_text(
        as_python(found) + "print([each.mean_response.mean for each in found.results])"
    )
    (home / "same.sh").write_text(as_command(found).rstrip() + " --json")
    folder = str(Path(sys.executable).parent)
    options: Any = {
        "cwd": home,
        "env": {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        "capture_output": True,
        "text": True,
        "check": True,
    }
    said = subprocess.run([sys.executable, "same.py"], **options).stdout.splitlines()[-1]
    assert json.loads(said) == pytest.approx(expected)
    answer = json.loads(subprocess.run(["sh", "same.sh"], **options).stdout)
    means = [each["mean_response"]["mean"] for each in answer["results"]]
    assert means == pytest.approx(expected)
    assert answer["results"][0]["p95"]["mean"] == pytest.approx(
        found["policies"][0]["figures"]["p95"]["mean"]
    )


def test_a_page_sees_results_only_when_they_are_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page reads from another thread; here it reads while the results are written to a file."""
    made = simulation_of(Wanted(system=SYSTEM, policies=("mct",), horizon=400.0, replications=2))
    seen = []

    def save(document: dict[str, Any]) -> None:
        seen.append(made.findings())
        findings.save_document(document)

    monkeypatch.setattr("gridwright.web.simulations.save_document", save)
    made.run()
    (early,) = seen
    assert early["state"] == "running"
    assert "rows" not in early
    assert made.findings()["state"] == "done"
    assert "rows" in made.findings()


def test_an_unstable_policy_is_drawn_over_time_alone(home: Path) -> None:
    """MET sends everything to the machine that is fastest, and that one cannot keep up."""
    found = simulated(system="2.MET-example", policies=("met", "mct"), horizon=2000.0).findings()
    met, mct = found["policies"]
    assert (met["stable"], met["has_mean"]) == (False, False)
    rows = means_chart(found)
    assert rows["yAxis"]["data"] == ["met", "mct"]
    assert [each["type"] for each in rows["series"]] == ["scatter", "line"]
    low, mean, high = (each["value"][0] for each in rows["series"][1]["data"])
    assert low < mean < high
    assert means_words(found).startswith("Lowest mean response time: mct, ")
    assert "met has no mean: unstable: grows by" in means_words(found)
    assert "No other policy is known to be stable." in means_words(found)
    half = {**found, "policies": [{"policy": "met"}, mct]}
    assert means_words(half).startswith(
        "Lowest mean response time so far (1 of 2 policies have no result yet): mct"
    )
    assert [each["name"] for each in class_chart(found)["series"]] == ["mct"]
    far = {**mct, "classes": [{"name": "a", "mean": 0.03}, {"name": "b", "mean": 2.0}]}
    axis = class_chart({**found, "policies": [met, far]})["yAxis"]
    assert (axis["type"], axis["min"], axis["startValue"]) == ("log", 0.01, 0.01)
    assert [each["name"] for each in tail_chart(found)["series"]] == ["mct"]
    assert [each["name"] for each in growth_chart(found)["series"]] == ["met (unstable)", "mct"]
    assert "met: unstable: grows by" in growth_words(found)
    within = "mct: 95 % of tasks respond within .*, 99 % within .*, 99.9 % within .* time units"
    assert re.search(within, tail_words(found))
    assert "Not drawn, since unstable: met." in tail_words(found)
    times, shares = zip(*mct["tail"], strict=True)
    assert sorted(times) == list(times)
    assert sorted(shares, reverse=True) == list(shares)
    within = mct["figures"]["p95"]["mean"]
    later = next(share for time, share in mct["tail"] if time >= within)
    assert later == pytest.approx(0.05, abs=0.01), "the curve goes through the percentile"


def test_the_page_says_whether_the_lowest_mean_is_certain(home: Path) -> None:
    """kpb is MCT if it takes all machines: neither can be better."""
    policies = ("mct", "kpb:k=2")
    busy = simulated(system=SYSTEM, policies=policies).findings()
    assert "Not certain: the stability of mct, kpb is undecided." in means_words(busy)
    assert {row[5] for row in spreadsheet(busy)[1:]} == {"undecided", ""}
    first, second = busy["policies"]
    half = means_chart({**busy, "policies": [{**first, "stable": True}, second]})
    assert [each["type"] for each in half["series"]] == ["line", "scatter"], "it may be far off"
    calm = {**SYSTEM, "arrivals": [5.0, 5.0]}
    same = simulated(system=calm, policies=policies).findings()
    assert "Not certain: against kpb the paired 95 % interval contains 0." in means_words(same)
    apart = simulated(system="2.B", policies=("mct", "lpas"), horizon=2000.0).findings()
    assert means_words(apart).startswith("Lowest mean response time: lpas, ")
    assert "This is certain: every paired 95 % interval" in means_words(apart)
    assert "Not compared yet." in means_words({k: v for k, v in apart.items() if k not in ENDED})


ENDED = ("result", "rows")
"""What only results have that are complete."""


def test_only_so_many_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_KEPT", 2)
    about = {"policies": [], "made": "", "system": "", "length": "", "state": "", "conclusions": []}
    for k in range(3):
        findings.save_document({"address": f"{k:08x}", **about})
        os.utime(home / "home" / "simulations" / f"{k:08x}.json", (k, k))
    assert [each["address"] for each in list_documents()] == ["00000002", "00000001"]
    findings.save_document({"address": "../../evil", **about})
    assert load_document("../../evil") is None
    (home / "home" / "simulations" / "00000002.json").write_text("{")
    assert load_document("00000002") is None


def test_drafts_and_results_outlive_the_server(browser: Any, tmp_path: Path) -> None:
    first = Server(tmp_path)
    port = first.url.rpartition(":")[2]
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    try:
        page.goto(f"{first.url}/define")
        rate = page.get_by_label("Rate of class 2 on machine 2", exact=True)
        rate.fill("20")
        expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
        page.goto(f"{first.url}/simulate")
        page.get_by_label("Time units", exact=True).fill("500")
        page.get_by_label("Replications").fill("4")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text("Best: lpas")).to_be_visible(timeout=60_000)
        page.wait_for_url("**/simulate/*")
        address = page.url.rpartition("/")[2]
        table = page.get_by_role("table").inner_text()
        page.goto("about:blank")  # else the page reloads itself when the server is back
    finally:
        first.stop()
    second = Server(tmp_path, "--port", port)
    other = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page.goto(f"{second.url}/define")
        expect(rate).to_have_value("20")
        expect(page.get_by_text("λ* = 1.7742")).to_be_visible()
        page = other.new_page()  # somebody else, with no draft
        page.goto(f"{second.url}/simulate/{address}")
        expect(page.get_by_text("Best: lpas")).to_be_visible()
        assert page.get_by_role("table").inner_text() == table
        expect(page.get_by_label("Replications")).to_have_value("4")
        for title in ("Means and intervals", "By class", "Tail of the response time"):
            expect(page.get_by_role("img", name=f"{title}. ")).to_be_visible()
        expect(page.get_by_text("99.9 % within").first).to_be_visible()
        rows = list(csv.DictReader(export(page, "link", "Export as CSV").read_text().splitlines()))
        whole = json.loads(export(page, "link", "Export as JSON").read_text("utf-8"))
        mean = whole["result"]["results"][0]["mean_response"]["mean"]
        chosen = {"policy": "mct", "of": "all tasks", "figure": "mean_response"}
        (row,) = [each for each in rows if chosen.items() <= each.items()]
        assert float(row["mean"]) == mean
        same = {"system": "2.B", "horizon": "500.0", "replications": "4", "seed": "1"}
        assert all(same.items() <= each.items() for each in rows)
        assert {each["stable"] for each in rows} <= {"True", "False", "undecided", ""}
        chosen = {"policy": "lpas", "figure": "mean_response, difference to mct"}
        (row,) = [each for each in rows if chosen.items() <= each.items()]
        apart = [each for each in whole["result"]["differences"] if "response" in each["metric"]]
        assert float(row["mean"]) == apart[0]["difference"]["mean"]
        picture = export(page, "button", "Export the charts as PNG").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 20_000, "something is drawn"
        page.get_by_text("The same in Python").click()
        expect(page.locator(".gw-same code").first).to_contain_text("gw.compare(")
        expect(page.get_by_role("button", name="Copy: The same in Python")).to_be_visible()
        page.get_by_text("Earlier results").click()
        expect(page.get_by_role("row").filter(has_text="mct, lpas")).to_be_visible()
        page.goto(f"{second.url}/simulate/00000000")
        expect(page.get_by_text("There is no simulation 00000000")).to_be_visible()
    finally:
        context.close()
        other.close()
        second.stop()


def export(page: Any, role: str, name: str) -> Path:
    with page.expect_download() as found:
        page.get_by_role(role, name=name, exact=True).click()
    return Path(found.value.path())
