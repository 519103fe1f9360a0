import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.model.toml import format_toml, parse_toml

scalars = st.text() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.booleans()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_reads_back(document: dict[str, object]) -> None:
    text = format_toml(document)
    assert parse_toml(text) == tomllib.loads(text) == document


def test_whole_numbers_have_no_point() -> None:
    assert format_toml({"a": 5.0, "b": 1e300, "c": 0.1}) == "a = 5\nb = 1e+300\nc = 0.1\n"


DEEP = "a." * 100_000 + "a"


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP} = 1",
        f"[{DEEP}]",
        "x = 1\ny = { " + "a . " * 100_000 + "a = 1 }",
        r'"a\""' + r'."a\""' * 100_000 + " = 1",
        "'a'" + """.'"'""" * 100_000 + " = 1",
        f't = """a\\"""\\n"""\n{DEEP} = 1',
        f"""t = '''\n\"\"\"\n'''\n{DEEP} = 1""",
        f"""t = "'''"\n{DEEP} = 1""",
    ],
)
def test_a_key_of_many_parts_is_refused_at_once(text: str) -> None:
    # the standard library's parser takes minutes for these
    with pytest.raises(InputError, match="a key of more than 20 parts"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text", ['"' + r"\"" * 300_000, "'" * 300_001, '"""' * 100_001, '"""' + r"\"" * 300_000]
)
def test_what_is_left_open_is_refused_at_once(text: str) -> None:
    with pytest.raises(InputError, match="not valid TOML"):
        parse_toml(text)


def test_points_in_texts_and_comments_are_no_keys() -> None:
    points = ".".join("abcdefghijklmnopqrstuvwxyz")
    text = f'a = "{points}"\nb = """\n{points}"""  # {points}\nc = [1.5, 2.5]\n'
    assert parse_toml(text)["c"] == [1.5, 2.5]


def test_a_number_of_many_digits() -> None:
    with pytest.raises(InputError, match="a number of 4000 bits; expected at most 64"):
        parse_toml("a = [1, 0x" + "f" * 1000 + "]")
