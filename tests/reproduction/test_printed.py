"""What a printed cell allows, and where its own table contradicts it."""

import pytest

from gridwright.catalogue import results
from gridwright.reproduction.verdict import allowed, contradictions, words


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
