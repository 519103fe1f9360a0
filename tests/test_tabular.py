"""Results as tables and pictures, in notebooks and scripts."""

from importlib.util import find_spec

import pytest

import gridwright as gw
from gridwright.experiments import Comparison, Result

SYSTEM = gw.System(name="<two>", arrivals=[0.3, 0.4], rates=[[1.0, 0.5], [0.5, 1.0]])
SHORT = {"horizon": 200.0, "replications": 2}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return gw.compare(SYSTEM, ["mct", "lpas", "met", "pas"], **SHORT)  # type: ignore[arg-type]


def test_every_result_is_an_html_table_and_a_picture(comparison: Comparison) -> None:
    found = [
        comparison,
        comparison.results[0],
        gw.sweep(SYSTEM, ["mct"], "load", [0.3, 0.5], **SHORT),  # type: ignore[arg-type]
        gw.contest([SYSTEM], ["mct", "lpas"], **SHORT),  # type: ignore[arg-type]
        gw.optimum(SYSTEM, ["mct"], **SHORT),  # type: ignore[arg-type]
        gw.allocate(SYSTEM),
    ]
    for each in found:
        html = each._repr_html_()
        assert html.count("<tr>") == 1 + len(each.rows())
        assert "±" in html or isinstance(each, gw.Contest | gw.Allocation)
        assert each.plot().get_axes()


def test_names_are_escaped() -> None:
    system = SYSTEM.replace(classes=["<b>", "c"])
    html = gw.simulate(system, "mct", **SHORT)._repr_html_()  # type: ignore[arg-type]
    assert "class &lt;b&gt;" in html


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
def test_an_estimate_takes_three_columns(comparison: Comparison) -> None:
    frame = comparison.to_frame()
    assert list(frame["policy"]) == ["mct", "lpas", "met", "pas"]
    assert (frame["mean_response_low"] <= frame["mean_response"]).all()


@pytest.mark.skipif(find_spec("pandas") is not None, reason="pandas is installed")
def test_without_pandas_one_line_says_what_to_do(comparison: Comparison) -> None:
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        comparison.to_frame()


def test_many_policies_have_a_matrix_and_few_have_sentences(comparison: Comparison) -> None:
    assert comparison.statements == ()
    rows = comparison.matrix()
    assert [row["policy"] for row in rows] == ["mct", "lpas", "met", "pas"]
    assert all(row[row["policy"]] == "–" for row in rows)
    assert "time units" in comparison.matrix_caption
    mct, lpas = comparison.results[:2]
    (sentence,) = Comparison((mct, lpas)).statements
    assert "mean response" in sentence
    assert "time units" in sentence


def test_results_say_what_they_are() -> None:
    template = {"name": "a", "rate": 0.1, "times": [[1]], "latency": 4}
    found: Result = gw.simulate(gw.System(templates=[template]), "chain_mct", 100, 2)
    assert repr(found).startswith("ChainResult('', chain_mct: mean number")
