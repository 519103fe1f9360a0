"""The bars of failures."""

from gridwright.web.pages.charts import FUTURE, HELD, PAST, failure_trace

INFINITY = float("inf")


def test_what_was_and_what_is_planned() -> None:
    drawn = failure_trace(["1", "2"], [[0, 1, 2], [0, 6, 7]], 5.0, 10.0, {"1": [(1.1, 2.1)]})
    assert "machine 1: away 1.1 to 2.1; to come 6.0 to 7.0" in drawn
    assert "machine 2: away never; to come never" in drawn
    assert drawn.count(PAST) == drawn.count(f"background: {FUTURE}") == 1


def test_what_is_away_now_may_come_back_as_planned() -> None:
    drawn = failure_trace(["1"], [[0, 4, 6]], 5.0, 10.0, {"1": [(4.0, INFINITY)]})
    assert "away 4.0 to 5.0; to come 5.0 to 6.0" in drawn


def test_what_operators_held_is_striped() -> None:
    drawn = failure_trace(["1", "2"], [], 5.0, 10.0, held={"2": [(3.0, INFINITY)]})
    assert (
        "machine 2: away never; to come never; paused or slowed by an operator 3.0 to 5.0" in drawn
    )
    assert "striped: paused or slowed by an operator" in drawn
    assert drawn.count(HELD) == 1


def test_names_are_escaped() -> None:
    drawn = failure_trace(["<b onload='x'>\""], [[0, 1, 2]], 0.0, 10.0)
    assert "<b" not in drawn
    assert '\\"' not in drawn


def test_very_many_failures_are_a_bounded_picture() -> None:
    spans = [(k / 100, k / 100 + 0.005) for k in range(100_000)]
    drawn = failure_trace(["1"], [], 1000.0, 1000.0, {"1": spans})
    assert len(drawn) < 100_000
    assert "and 99980 more times" in drawn
