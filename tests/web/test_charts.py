"""The bars of failures."""

from gridwright.web.pages.charts import FAILED, FUTURE, HELD, NOTHING, TAKEN, failure_trace

INFINITY = float("inf")


def test_what_was_and_what_is_planned() -> None:
    seen = NOTHING._replace(failed={"1": [(1.1, 2.1)]})
    drawn = failure_trace(["1", "2"], [[0, 1, 2], [0, 6, 7]], 5.0, 10.0, seen)
    assert "machine 1: failed 1.1 to 2.1; to come 6.0 to 7.0" in drawn
    assert "machine 2: failed never; to come never" in drawn
    assert drawn.count(f"background: {FAILED}") == drawn.count(f"background: {FUTURE}") == 1


def test_what_is_away_now_may_come_back_as_planned() -> None:
    seen = NOTHING._replace(failed={"1": [(4.0, INFINITY)]})
    drawn = failure_trace(["1"], [[0, 4, 6]], 5.0, 10.0, seen)
    assert "failed 4.0 to 5.0; to come 5.0 to 6.0" in drawn


def test_what_operators_did_is_told_from_failures() -> None:
    seen = NOTHING._replace(taken={"1": [(1.0, 2.0)]}, paused={"2": [(3.0, INFINITY)]})
    drawn = failure_trace(["1", "2"], [], 5.0, 10.0, seen)
    never = "failed never; to come never"
    assert f"machine 1: {never}; taken away by an operator 1.0 to 2.0" in drawn
    assert f"machine 2: {never}; paused or slowed by an operator 3.0 to 5.0" in drawn
    assert "violet with lines: taken away by an operator; striped: paused or slowed" in drawn
    assert (drawn.count(TAKEN), drawn.count(HELD), drawn.count(f": {FAILED}")) == (1, 1, 0)


def test_names_are_escaped() -> None:
    drawn = failure_trace(["<b onload='x'>\""], [[0, 1, 2]], 0.0, 10.0)
    assert "<b" not in drawn
    assert '\\"' not in drawn


def test_very_many_failures_are_a_bounded_picture() -> None:
    spans = [(k / 100, k / 100 + 0.005) for k in range(100_000)]
    drawn = failure_trace(["1"], [], 1000.0, 1000.0, NOTHING._replace(failed={"1": spans}))
    assert len(drawn) < 100_000
    assert "and 99980 more times" in drawn
