"""Times in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.traces.duration import in_words, moment, seconds


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("20051121", 20_051_121 + 5.0),
        ("1.5h", 5405.0),
        ("2005-11-21", 1_132_531_200.0),
        ("2005-11-21T01:00", 1_132_534_800.0),
        ("2005-11-21T01:00+01:00", 1_132_531_200.0),
    ],
)
def test_a_moment_is_a_date_or_so_long_after_the_start(text: str, time: float) -> None:
    assert moment(text, 5.0) == time


@pytest.mark.parametrize("text", ["", "soon", "1y", "-5", "2005-13-01", "1e5", "nan", "5 5"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(InputError, match="must be a date such as"):
        moment(text, 0.0)


@given(st.floats(0.001, 1e7))
def test_words_are_the_time_to_three_figures(time: float) -> None:
    assert seconds(in_words(time)) == pytest.approx(time, rel=0.01)
