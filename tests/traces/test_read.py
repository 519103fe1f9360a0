"""Readers and writers: what is written reads the same, and no row is silently dropped."""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridwright import InputError
from gridwright.traces import (
    FailureTrace,
    JobTrace,
    Throughputs,
    characterise,
    characterise_failures,
    outages,
    read_failures,
    read_fta,
    read_gwf,
    read_jobs,
    read_lanl,
    read_swf,
    read_throughputs,
    read_trace,
    throughput_system,
    write_fta,
    write_gwf,
    write_lanl,
    write_swf,
    write_throughputs,
)
from gridwright.traces.job_trace import COLUMNS, FIELDS, OURS, parse_swf
from gridwright.traces.read import FORMATS, format_of
from gridwright.traces.trace_file import Account

HERE = Path(__file__).parent
SAMPLES = {file.name: file.read_bytes() for file in sorted((HERE / "samples").iterdir())}
BROKEN = sorted((HERE / "broken").iterdir())
NUMBERS = st.one_of(
    st.integers(-1, 10**9).map(float), st.floats(-1, 1e12, allow_nan=False).map(lambda x: x + 0.0)
)
WORDS = st.text("abcXYZ019._-/é", min_size=1, max_size=8)
LINES = st.text("abc :1;é", max_size=12).map(lambda text: " ".join(text.split()))
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def samples() -> Path:
    """The hand-made traces."""
    return Path(__file__).parent / "samples"


def same_again(path: Path, trace: Any, write: Callable[..., None], read: Callable[..., Any]) -> Any:
    """Check that a trace is the same when it is written and read, packed or not."""
    for ending in ("", ".gz", ".xz"):
        file = path.with_name(path.name + ending)
        write(file, trace)
        found = read(file)
        assert found == trace
        assert found.account.rows == found.account.kept == len(trace)
    return found


@quick
@given(
    table=st.lists(st.lists(NUMBERS, min_size=18, max_size=18), max_size=8),
    header=st.lists(LINES, max_size=3),
)
def test_swf_round_trip(tmp_path: Path, table: list[list[float]], header: list[str]) -> None:
    values = np.array(table, dtype=float).reshape(-1, 18)
    columns = {name: values[:, k] for k, name in enumerate(COLUMNS)}
    same_again(tmp_path / "x.swf", JobTrace(columns, tuple(header)), write_swf, read_swf)


@quick
@given(data=st.data(), size=st.integers(1, 6), header=st.lists(LINES, max_size=3))
def test_gwf_round_trip(tmp_path: Path, data: Any, size: int, header: list[str]) -> None:
    columns: dict[str, Any] = {}
    for k, name in enumerate(FIELDS):
        kind = NUMBERS if k < 11 else WORDS
        values = data.draw(st.lists(kind, min_size=size, max_size=size))
        columns[OURS.get(name, name)] = np.array(values, dtype=float if k < 11 else object)
    whole = JobTrace(columns, tuple(header))
    same_again(tmp_path / "x.gwf", whole, write_gwf, read_gwf)
    part = {key: columns[key] for key in ("job", "submit", "run_time", "user")}
    part["Dependencies"] = np.array(["1 2", "", *["7"] * size][:size], dtype=object)
    same_again(tmp_path / "y.gwf", JobTrace(part, tuple(header)), write_gwf, read_gwf)


PERIODS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 10**7), st.integers(0, 10**5), st.booleans()),
    max_size=12,
)


@quick
@given(rows=PERIODS)
def test_failures_round_trip(tmp_path: Path, rows: list[tuple[int, int, int, bool]]) -> None:
    names = [f"4.{node}" for node, *_ in rows]
    start = [60.0 * at for _, at, _, _ in rows]
    end = [60.0 * (at + long) for _, at, long, _ in rows]
    trace = FailureTrace(names, start, end, [up for *_, up in rows])
    same_again(tmp_path / "event_trace.tab", trace, write_fta, read_fta)
    down = FailureTrace(names, start, end, [False] * len(rows))
    same_again(tmp_path / "failures.csv", down, write_lanl, read_lanl)


@quick
@given(data=st.data(), kinds=st.lists(WORDS, min_size=1, max_size=3, unique=True))
def test_throughputs_round_trip(tmp_path: Path, data: Any, kinds: list[str]) -> None:
    types = data.draw(st.lists(st.text('a ,";(', min_size=1).map(lambda t: f"n{t}x"), max_size=4))
    steps = st.one_of(st.just(0.0), st.floats(1e-9, 1e9))
    rows = [data.draw(st.lists(steps, min_size=len(kinds), max_size=len(kinds))) for _ in types]
    matrix = np.array(rows, dtype=float).reshape(-1, len(kinds))
    given_ = Throughputs(tuple(types), (1,) * len(types), tuple(kinds), matrix, Account())
    write_throughputs(tmp_path / "t.csv", given_)
    found = read_throughputs(tmp_path / "t.csv")
    assert found == given_
    assert found != replace(given_, steps=matrix + 1) or not types
    assert found != replace(given_, kinds=(*kinds[1:], "other"))


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300), name=st.sampled_from(list(FORMATS)))
def test_random_bytes_give_no_traceback(data: bytes, name: str) -> None:
    format_of(data)
    try:
        found = FORMATS[name][1](data)
    except InputError:
        return  # which is told in one line
    check_account(found)


@st.composite
def mutated(draw: Any) -> tuple[str, bytes]:
    """Draw a hand-made trace in which something was broken."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    data = SAMPLES[name]
    junk = st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [b"-1", b"1e308", b"nan", b"\n", b" ", b",", b'"', b"999999999999999", b"0"]
        ),
    )
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 12))
        data = data[:at] + draw(junk) + data[at + cut :]
    return name, data


@settings(max_examples=150, deadline=None)
@given(broken=mutated())
def test_broken_traces_give_no_traceback_and_drop_nothing(broken: tuple[str, bytes]) -> None:
    name, data = broken
    which = format_of(SAMPLES[name])
    assert which is not None
    try:
        found = FORMATS[which][1](data)
        check_account(found)
        if which in ("swf", "fta"):
            mark = (b";",) if which == "swf" else (b"#", b"event_id")
            lines = [line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").splitlines()]
            rows = [line for line in lines if line and not line.startswith(mark)]
            assert found.account.rows == len(rows), "every row is kept, or left out with a reason"
        use(found)
    except InputError:
        return  # which is told in one line


def check_account(found: Any) -> None:
    account = found.account
    size = len(found.types) if isinstance(found, Throughputs) else len(found)
    assert account.kept == size
    assert account.rows == size + sum(each.count for each in account.skipped.values())
    assert all(each.first for each in account.skipped.values())


def use(found: Any) -> None:
    """Map what was read to a system."""
    if isinstance(found, JobTrace):
        character = characterise(found)
        assert character.used.rows == len(found)
    elif isinstance(found, FailureTrace):
        characterise_failures(found).as_json()
        outages(found, 1, 100.0)
    else:
        throughput_system(found)


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.name)
def test_broken_files_are_told_of_in_one_line(file: Path) -> None:
    with pytest.raises(InputError) as raised:
        use(read_trace(file))
    told = str(raised.value)
    assert "\n" not in told
    assert file.name in told or file.name == "nothing-ran.swf"


def test_rows_read_at_once_and_one_by_one_are_the_same() -> None:
    data = SAMPLES["lab.swf"]
    whole, pieces = parse_swf(data), parse_swf(data + b"odd\n")
    assert whole == pieces
    assert whole.lines.tolist() == pieces.lines.tolist() == list(range(7, 17))
    assert pieces.account.skipped["not 18 fields"].first == ["line 17: 1 field"]


@pytest.mark.parametrize("odd", ["1-2", "1.2.3", "+-1", "--", "e5"])
def test_what_only_looks_like_numbers_is_none(odd: str) -> None:
    row = f"1 0 {odd} 60" + " -1" * 14
    assert parse_swf(row.encode()).account.skipped["not a number"].count == 1


def test_blank_lines_and_line_ends_do_not_matter() -> None:
    data = SAMPLES["lab.swf"].replace(b"\n", b"\r\n\r\n")
    assert parse_swf(b"\xef\xbb\xbf" + data) == parse_swf(SAMPLES["lab.swf"])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("ending", [b"\r", b"\r\n"], ids=["cr", "crlf"])
def test_lines_end_as_on_any_computer(name: str, ending: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SAMPLES[name].replace(b"\n", ending))
    found, usual = read_trace(tmp_path / name), read_trace(HERE / "samples" / name)
    assert found == usual
    if isinstance(found, JobTrace) and isinstance(usual, JobTrace):
        assert found.lines.tolist() == usual.lines.tolist()


@pytest.mark.parametrize("odd", [b"", b"odd\r"])
def test_lines_that_end_in_cr_are_counted(odd: bytes) -> None:
    data = b"; Computer: ours\r\r" + b"1 0 -1 60" + b" -1" * 14 + b"\r" + odd
    found = parse_swf(data)
    assert found.about == {"Computer": "ours"}
    assert found.lines.tolist() == [3]
    assert [each.first for each in found.account.skipped.values()] == [["line 4: 1 field"]] * bool(
        odd
    )


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_packed_files_are_read_whatever_their_name(
    pack: Callable[[bytes], bytes], tmp_path: Path, samples: Path
) -> None:
    (tmp_path / "log").write_bytes(pack(SAMPLES["lab.swf"]))
    assert read_trace(tmp_path / "log") == read_swf(samples / "lab.swf")


def test_text_is_numbered_where_a_format_has_numbers_only(tmp_path: Path, samples: Path) -> None:
    grid = read_jobs(samples / "grid.gwf")
    write_swf(tmp_path / "grid.swf", grid)
    found = read_jobs(tmp_path / "grid.swf")
    assert found.columns["user"].tolist() == [1, 2, 1, 2, 1]
    assert "Note: user 1 is U2" in found.header
    assert any(line.startswith("Note: left out: OrigSiteID") for line in found.header)
    assert found.columns["run_time"].tolist() == grid.columns["run_time"].tolist()


def test_one_trace_in_the_format_of_another(tmp_path: Path, samples: Path) -> None:
    records = read_failures(samples / "failures.csv")
    write_fta(tmp_path / "event_trace.tab", records)
    found = read_failures(tmp_path / "event_trace.tab")
    assert found.nodes == records.nodes == ("7.0", "7.1", "8.0")
    assert found.start.tolist() == records.start.tolist()
    jobs = read_jobs(samples / "lab.swf")
    write_gwf(tmp_path / "lab.gwf", jobs)
    again = read_jobs(tmp_path / "lab.gwf")
    assert again.numbers("submit").tolist() == jobs.numbers("submit").tolist()
    assert again.coded("user")[0] == jobs.coded("user")[0]
    assert again.coded("user")[1].tolist() == jobs.coded("user")[1].tolist()


def test_a_trace_of_another_kind_is_refused(samples: Path) -> None:
    with pytest.raises(InputError, match=r"expected a trace of jobs \(.swf, .gwf\), not failures"):
        read_jobs(samples / "event_trace.tab")
    with pytest.raises(InputError, match="expected a failure trace, not a trace of jobs"):
        read_failures(samples / "lab.swf")
    with pytest.raises(InputError, match="not throughputs"):
        read_failures(samples / "throughputs.csv")
    with pytest.raises(InputError, match="there is no such file"):
        read_trace(samples / "none.swf")
    with pytest.raises(InputError, match="not a regular file"):
        read_trace(samples)


def test_years_of_two_digits_are_no_time(tmp_path: Path) -> None:
    path = tmp_path / "years.csv"
    title = "System,nodenumz,Prob Started,Prob Fixed"
    rows = ["2,0,6/21/05 10:54,6/21/05 11:54", "2,1,6/29/2005 10:54,6/29/2005 12:54"]
    path.write_text("\n".join([title, *rows, ""]))
    found = read_lanl(path)
    assert len(found.nodes) == 1
    assert "Prob Started is '6/21/05 10:54'" in str(found.account)


def test_what_cannot_be_written_is_told(tmp_path: Path, samples: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(tmp_path / "none" / "x.swf", read_swf(samples / "lab.swf"))
    far = FailureTrace(["a"], [0.0], [1e12], [False])
    with pytest.raises(InputError, match="not a date in the years"):
        write_lanl(tmp_path / "x.csv", far)
