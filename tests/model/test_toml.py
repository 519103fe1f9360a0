import tomllib

from hypothesis import given
from hypothesis import strategies as st

from gridwright.model.toml import format_toml

scalars = st.text() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.booleans()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_reads_back(document: dict[str, object]) -> None:
    assert tomllib.loads(format_toml(document)) == document


def test_whole_numbers_have_no_point() -> None:
    assert format_toml({"a": 5.0, "b": 1e300, "c": 0.1}) == "a = 5\nb = 1e+300\nc = 0.1\n"
