"""Tables from spreadsheets: names, decimal signs, thousands and units are told apart or asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.web.documents import read_text
from gridwright.web.pasted_table import read_block, read_cells, read_table

PLAIN = [["2.5", "3.1"], ["4", "10.25"]]


@pytest.mark.parametrize(
    "text",
    [
        "2,5\t3,1\n4\t10,25",
        "2,5; 3,1\n4; 10,25\n",
        "2.5, 3.1\n4, 10.25",
        "2,5 3,1\n4 10,25",
        "# a comment\n2.5\t3.1\n\n4\t10.25",
    ],
)
def test_decimal_commas_are_no_columns(text: str) -> None:
    found = read_table(text, "rates")
    assert (found.rates, found.questions) == (PLAIN, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5", "1234.5"),
        ("1.234,5", "1234.5"),
        ("1,234,567", "1234567"),
        ("1\u202f234", "1234"),
    ],
)
def test_thousands_are_told_apart(text: str, value: str) -> None:
    found = read_table(f"{text}\t7", "rates")
    assert (found.rates, found.questions) == ([[value, "7"]], ())


def test_what_is_not_clear_is_asked() -> None:
    found = read_table("1,234\t2\n3\t4", "rates")
    (asked,) = found.questions
    assert (asked.key, [*asked.answers]) == (",", ["decimal", "thousands"])
    assert found.rates[0] == ["1.234", "2"]
    assert read_table("1,234\t2\n3\t4", "rates", {",": "thousands"}).rates[0] == ["1234", "2"]
    (asked,) = read_table("1,234\t2.5", "rates").questions
    assert [*asked.answers] == ["thousands", "decimal"], "the point is the decimal sign"
    (asked,) = read_table("8,3\n4,1", "rates").questions
    assert asked.key == "separator"
    assert read_table("8,3\n4,1", "rates", {"separator": "decimal"}).rates == [["8.3"], ["4.1"]]
    (asked,) = read_table("\t1\t2\n1\t8\t3", "rates").questions
    assert asked.key == "heads"
    with pytest.raises(InputError, match="1,234 is"):
        read_text("1,234\t2", "rates.csv")


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(InputError, match=r"',' is the decimal sign in '2,5', but separates thousa"):
        read_table("2,5\t1,234.5", "rates")


def test_names_stand_in_the_first_row_and_column() -> None:
    whole = "class;arrivals;fast [1/s];slow\nsmall;5;2,5;3,1\nlarge;8;4;10,25\navailability;;50 %;1"
    found = read_table(whole, "rates", {"unit": "s"})
    assert (found.classes, found.machines) == (["small", "large"], ["fast", "slow"])
    assert (found.rates, found.arrivals) == (PLAIN, ["5", "8"])
    assert read_table(whole.replace("arrivals", "Arr."), "rates").arrivals == ["5", "8"]
    assert found.availability == ["0.5", "1"]
    assert read_table("a\tb\n1\t2", "rates").machines == ["a", "b"]
    assert read_table("a\t1\nb\t2", "rates").classes == ["a", "b"]
    assert read_text('"x, y",2\nz,3', "rates.csv")["classes"] == ["x, y", "z"]


def test_units_are_converted_once_it_is_said_what_they_mean() -> None:
    found = read_table("3/s\t30/min\n4 per hour\t5", "rates")
    assert [each.key for each in found.questions] == ["unit"]
    assert found.rates == [["3", "0.5"], ["0.001111111111", "5"]]
    minutes = read_table("3/s\t30/min", "rates", {"unit": "min"})
    assert minutes.rates == [["180", "30"]]
    times = "time [ms]\tx\ty\na\t100\t1 s\nb\t50\t200"
    assert [each.key for each in read_table(times, "t").questions] == ["meaning", "unit"]
    assert read_table(times, "t", {"unit": "s"}).rates == [["10", "1"], ["20", "5"]]


@pytest.mark.parametrize("text", ["", "# nothing", "1\t2\n3", "fast\tslow", "1\t-2", "x\t1\n2\t3"])
def test_what_is_no_table_of_rates_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^the file|^the table"):
        read_table(text, "the file")


def test_a_block_for_cells_may_have_any_texts() -> None:
    assert read_cells(read_block("x\t3\r\n4\t10,5\r\n")).rates == [["x", "3"], ["4", "10.5"]]
    assert read_block("1\t2\n3") == [["1", "2"], ["3", ""]]


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(0.1, 1000), min_size=width, max_size=width), min_size=1, max_size=4
        )
    ),
    st.booleans(),
)
def test_rates_are_the_same_with_names_or_without(rates: list[list[float]], named: bool) -> None:
    rows = [[*map(repr, row)] for row in rates]
    if named:
        rows = [["class", *(f"m{j}" for j in range(len(rates[0])))], *(["c", *r] for r in rows)]
    found = read_table("\n".join(map("\t".join, rows)), "rates")
    assert [[*map(float, row)] for row in found.rates] == rates
    assert len(found.machines) == (len(rates[0]) if named else 0)
