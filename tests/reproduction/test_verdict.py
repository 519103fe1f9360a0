"""Verdicts are computed: from our interval, from what is printed, from what is known of it."""

import pytest

from gridwright.catalogue import Remark, results
from gridwright.reproduction.verdict import (
    Range,
    Verdict,
    allowed,
    contradictions,
    judge,
    judge_stability,
    words,
)
from gridwright.statistics import Estimate

ERRATUM = Remark("erratum", "a slip of the pen")
KNOWN = Remark("difference", "nobody knows why")
CONTRADICTION = Remark("contradiction", "its own table says otherwise")


@pytest.mark.parametrize(
    ("ours", "printed", "remarks", "verdict", "reason"),
    [
        (Estimate(5.2, 5.1, 5.3), Range(5.25, 5.4), [], Verdict.agrees, ""),
        (Estimate(5.2, 5.1, 5.3), Range(5.3, 5.4), [], Verdict.agrees, ""),
        (Estimate(5.2, 5.1, 5.3), Range(5.31, 5.41), [], Verdict.differs, "by -3.0 %"),
        (Estimate(5.2, 5.1, 5.3), Range(0.0, 0.0), [], Verdict.differs, "by +5.2"),
        (Estimate(5.2, 5.1, 5.3), None, [], Verdict.not_printed, ""),
        (Estimate(5.2, 5.1, 5.3), None, [ERRATUM], Verdict.errata, "a slip of the pen"),
        (Estimate(5.2, 5.1, 5.3), Range(5.2, 5.3), [ERRATUM], Verdict.agrees, ""),
        (Estimate(5.2, 5.1, 5.3), Range(6.2, 6.3), [ERRATUM], Verdict.errata, "a slip of the pen"),
        (Estimate(5.2, 5.1, 5.3), Range(5.2, 5.3), [KNOWN], Verdict.agrees, ""),
        (
            Estimate(5.2, 5.1, 5.3),
            Range(6.2, 6.3),
            [KNOWN],
            Verdict.differs,
            "by -16.8 %; nobody knows why",
        ),
        (
            Estimate(5.2, 5.1, 5.3),
            Range(5.2, 5.3),
            [CONTRADICTION],
            Verdict.errata,
            "its own table says otherwise",
        ),
    ],
)
def test_numbers(
    ours: Estimate, printed: Range | None, remarks: list[Remark], verdict: Verdict, reason: str
) -> None:
    assert judge(ours, printed, remarks) == (verdict, reason)


def test_a_number_without_an_interval_is_taken_as_it_is() -> None:
    one = Estimate(5.2, float("nan"), float("nan"))
    assert judge(one, Range(5.1, 5.3)).verdict == Verdict.agrees
    assert judge(one, Range(5.3, 5.4)).verdict == Verdict.differs


def test_a_difference_is_taken_from_the_printed_value() -> None:
    ours = Estimate(6.0, 5.9, 6.1)
    assert judge(ours, Range(4.0, 5.5), value=5.0).reason == "by +20.0 %"
    assert judge(ours, Range(-1.0, 1.0), value=0.0, percent=True).reason == "by +6.0 points"


def test_words() -> None:
    assert judge_stability(False, "unstable").verdict == Verdict.agrees
    assert judge_stability(True, "stable").verdict == Verdict.agrees
    for printed in ("stable", "unstable"):
        assert judge_stability(None, printed).verdict == Verdict.undecided
    assert judge_stability(True, "unstable") == (Verdict.differs, "ours is stable")
    assert judge_stability(False, "stable", [KNOWN]) == (
        Verdict.differs,
        "ours is unstable; nobody knows why",
    )


def one(**wanted: object) -> dict[str, object]:
    (cell,) = results(**wanted)
    return cell


def test_an_interval_and_its_rounding() -> None:
    cell = one(table="2.1", system="2.D", policy="LPAS")
    assert allowed(cell) == pytest.approx((10.545, 10.595))
    assert words(cell) == "(10.55, 10.59)"


def test_a_mean_with_its_accuracy() -> None:
    cell = one(table="3.5", system="3.D", arrival="alpha2", case=1, policy="LPAS_DG",
               metric="W_mean")  # fmt: skip
    assert cell["value"] == 0.54
    assert cell["rel_acc_pct"] == 1.07
    assert allowed(cell) == pytest.approx((0.54 * 0.9893 - 0.005, 0.54 * 1.0107 + 0.005))
    assert words(cell) == "0.54 ± 1.07 %"


def test_a_class_mean_has_the_accuracy_of_its_row() -> None:
    row = {"table": "3.5", "system": "3.D", "arrival": "alpha2", "case": 1, "policy": "LPAS_DG"}
    cell = one(**row, metric="W_class", **{"class": 2})
    assert allowed(cell) == pytest.approx((0.64 * 0.9893 - 0.005, 0.64 * 1.0107 + 0.005))


def test_an_improvement_is_as_exact_as_the_means_it_was_computed_from() -> None:
    row = {"table": "3.3", "system": "3.B", "arrival": "alpha1", "case": 1}
    mean = one(**row, policy="LPAS_DG", metric="W_mean")
    reference = one(**row, policy="Gcmu", metric="W_mean")
    least, most = allowed(mean), allowed(reference)
    assert least is not None
    assert most is not None
    found = allowed(one(**row, policy="LPAS_DG", metric="Delta_pct"))
    assert found is not None
    assert found.low == pytest.approx(100 * (1 - least.high / most.low))
    assert found.high == pytest.approx(100 * (1 - least.low / most.high))
    assert found.low < one(**row, policy="LPAS_DG", metric="Delta_pct")["value"] < found.high  # type: ignore[operator]


def test_words_allow_no_number() -> None:
    assert allowed(one(table="2.1", system="2.A", policy="KPB")) is None
    assert allowed(one(table="2.1", system="2.I1", policy="LPAS")) is None
    assert words(one(table="2.1", system="2.I1", policy="LPAS")) == "(50.83, 38)"


def test_numbers_in_the_text_are_as_exact_as_they_are_printed() -> None:
    cell = one(src="A", table="text", metric="discount_pct", policy="LPAS")
    assert allowed(cell) == (57.5, 58.5)
    assert words(cell) == "58"
    assert allowed(one(src="K", table="text", metric="rho")) == pytest.approx((0.6725, 0.6735))


def test_improvements_that_their_own_means_contradict() -> None:
    """The errata of Tables 3.2, 3.3 and 3.14 that were found when the data was collected."""
    found = {
        (cell["table"], cell["arrival"], cell["case"], cell["value"])
        for cell in results(src="A", metric="Delta_pct")
        if any(remark.kind == "contradiction" for remark in contradictions(cell))
    }
    assert found == {
        ("3.2", "alpha1", 2, 34.72),
        ("3.3", "alpha2", 2, 17.78),
        ("3.14", "alpha1", 2, 35.14),
        ("3.14", "alpha2", 2, 26.19),
    }
