"""The rows of the page that shows simulations."""

import pytest

from gridwright.web.pages.results import MEASURES, row_of


@pytest.mark.parametrize(
    ("stable", "words"), [(True, "5.0 ± 1.0"), (None, "5.0 ± 1.0"), (False, "grows")]
)
def test_an_unstable_policy_has_no_mean(stable: bool | None, words: str) -> None:
    five = {"mean": 5.0, "low": 4.0, "high": 6.0}
    line = {"policy": "mct", "replications": 2, "mean_number": five, "mean_response": five}
    row = row_of({**line, "stable": stable}, MEASURES, ())
    assert (row["number in system"], row["response time"]) == (words, words)
