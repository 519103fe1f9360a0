"""Machine lists and files of rates; a credential shows itself nowhere."""

import copy
import dataclasses
import logging
import pickle
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from gridwright import InputError
from gridwright.testbed import (
    Calibration,
    Credential,
    Listed,
    read_machines,
    read_rates,
    write_machines,
)

SECRET = "s3cr#t w0rd"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "machines.srs"


def test_a_list_as_the_original_has_it(file: Path) -> None:
    file.write_text(
        "lab-01.example.org; one ; 1 ; 500\n"
        "lab-04.example.org;four; 0.51 ; 500\n"
        "lab-07.example.org;one;1.0305;500"
    )
    found = read_machines(file)
    assert [each.address for each in found] == [f"lab-{k}.example.org" for k in ("01", "04", "07")]
    assert [each.credential.reveal() for each in found if each.credential] == ["one", "four", "one"]
    assert found[1].calibration == Calibration(iterations=500, seconds=60 * 0.51)


def test_comments_blank_lines_and_what_may_be_missing(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbf# the machines\r\n\r\n  # two of them\r\n"
        + f"tcp://10.0.0.1:4000 ; {SECRET} ; ;\r\nb;;;\r\nc\r\n".encode()
    )
    assert read_machines(file) == (
        Listed("tcp://10.0.0.1:4000", Credential(SECRET)),
        Listed("b"),
        Listed("c"),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"b; {SECRET}; 1", "line 3: 3 fields; expected 4"),
        (f"b; {SECRET};x; 1; 500", "line 3: 5 fields; expected 4"),
        (f"; {SECRET}; 1; 500", "line 3: expected an address"),
        (f"{SECRET}; b; 1; 500", "line 3: expected an address"),
        (f"a; {SECRET}; 1; 500", "line 3: the machine of line 2 once more"),
        (f"b; 1; {SECRET}; 500", "line 3: minutes, the third field, should be a number above 0"),
        (f"b; 1; 500; {SECRET}", "line 3: iterations, the fourth field, should be a number"),
        (f"b; {SECRET}; 0; 500", "line 3: minutes"),
        (f"b; {SECRET}; 1; inf", "line 3: iterations"),
        (f"b; {SECRET}; 1; nan", "line 3: iterations"),
        (f"b; {SECRET}; ; 500", "line 3: minutes"),
        (f"b; {SECRET}; 1e300; 500", "line 3: minutes"),
        (f"b; {SECRET}; 1; 1e-300", "line 3: iterations"),
    ],
)
def test_a_wrong_line_is_named_but_not_quoted(file: Path, line: str, message: str) -> None:
    file.write_text(f"# machines\na; {SECRET}; 1; 500\n{line}\n")
    with pytest.raises(InputError) as error:
        read_machines(file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for read in (read_machines, read_rates):
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path / "nowhere")
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path)
        with pytest.raises(InputError, match="not a text file"):
            read(tmp_path / "binary")
        with pytest.raises(InputError, match=r"no (machine|rates) in it"):
            read(tmp_path / "empty")


def test_a_credential_shows_itself_nowhere(
    file: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file.write_text(f"a; {SECRET}; 0.5; 500\n")
    (listed,) = read_machines(file)
    credential = listed.credential
    assert credential is not None
    assert credential.reveal() == SECRET
    for hidden in (credential, listed, dataclasses.asdict(listed), [listed]):
        assert SECRET not in f"{hidden} {hidden!r} {hidden!s:>40}"
    logging.getLogger("test").warning("machine %s: %r", listed, credential)
    assert SECRET not in caplog.text
    for dumps in (pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled"):
            dumps(listed)
    assert not hasattr(credential, "__dict__")
    assert copy.deepcopy(listed) == listed
    assert credential == Credential(SECRET)
    assert credential != Credential("another")
    written = tmp_path / "written.txt"
    write_machines(written, [listed])
    assert SECRET not in written.read_text()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    known = Calibration(iterations=4750, seconds=0.0989720821)
    write_machines(path, [Listed("tcp://10.0.0.1:4000", None, known), Listed("2")])
    first, second = read_machines(path)
    assert first.calibration is not None
    assert first.calibration.iterations == 4750
    assert first.calibration.seconds == pytest.approx(known.seconds, rel=1e-8)
    assert second == Listed("2")
    for address in ("", "a;b", "#a", "a\nb"):
        with pytest.raises(InputError, match="cannot stand in a list"):
            write_machines(path, [Listed(address)])
    with pytest.raises(InputError, match="cannot be written"):
        write_machines(tmp_path / "none" / "list.txt", [])


def test_rates_as_the_original_has_them(tmp_path: Path) -> None:
    path = tmp_path / "rates.mue"
    path.write_text("2.2, 7, 10.25\n\n# the second class\n1.95,0,9.78\n")
    np.testing.assert_array_equal(read_rates(path), [[2.2, 7, 10.25], [1.95, 0, 9.78]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1, 2", "line 2: 2 rates; expected 3, as line 1"),
        ("1, x, 3", "line 2: rate 2 is 'x'; expected a number"),
        ("1, 2, -3", "line 2: rate 3 is '-3'"),
        ("1, nan, 3", "line 2: rate 2 is 'nan'"),
        ("1, 2, 3,", "line 2: rate 4 is ''"),
    ],
)
def test_wrong_rates(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "rates.mue"
    path.write_text(f"2.2, 7, 10.25\n{row}\n")
    with pytest.raises(InputError) as error:
        read_rates(path)
    assert message in str(error.value)
