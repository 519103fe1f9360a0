import pytest

from gridwright.model.record import place, shortened


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("name",), "name"),
        (("arrivals", "\0one", 1), "arrivals, entry 2"),
        (("arrivals", "\0several", 1, 0), "arrivals, row 2, column 1"),
        (("failures", "mean_uptime", "\0several", 2), "[failures] mean_uptime, entry 3"),
        (
            ("availability", 1, "\0chain", "transition", 0, 1),
            "availability, entry 2, transition, row 1, column 2",
        ),
        (("assumed", "inaccuracy", "rates"), "[assumed] [inaccuracy] rates"),
        ((), ""),
        (("chain",), "chain"),
    ],
)
def test_place(path: tuple[int | str, ...], words: str) -> None:
    assert place(path) == words


def test_long_values_are_cut() -> None:
    assert shortened("x" * 100).endswith("x…")
    assert len(shortened(list(range(100)))) == 40
    assert shortened("a\nb") == r"'a\nb'"
