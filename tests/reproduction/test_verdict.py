"""Verdicts are computed: from our interval, from what is printed, from what is known of it."""

import pytest

from gridwright.catalogue import Remark
from gridwright.reproduction.verdict import Range, Verdict, judge, judge_stability
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
