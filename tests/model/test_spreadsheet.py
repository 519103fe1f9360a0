import csv
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gridwright
from gridwright import System
from gridwright.cli.main import run
from gridwright.model.spreadsheet import unquoted, write_table
from gridwright.testbed import Fault
from gridwright.testbed.workload import read_faults, write_faults

FORMULA = '=HYPERLINK("http://evil.example")'


def read(text: str) -> list[list[str]]:
    return list(csv.reader(StringIO(text, newline="")))


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=1))
@example([FORMULA, "'=1", "''-x", "\tx", "\rx", "@x", "+x", "-1.5", "'", "it's"])
def test_no_cell_is_a_formula_and_all_read_back(cells: list[str]) -> None:
    file = StringIO(newline="")
    write_table(file, [cells, cells])
    for row in read(file.getvalue()):
        for cell in row:
            if cell[:1] in tuple("=+-@\t\r"):
                float(cell)
        assert unquoted(row) == cells


def test_numbers_stay_numbers() -> None:
    file = StringIO(newline="")
    write_table(file, [[-1.5, np.float64(-2.5), -3, "-4", "+5e3", None]])
    assert read(file.getvalue()) == [["-1.5", "-2.5", "-3", "-4", "+5e3", ""]]


@pytest.mark.parametrize("option", ["--csv", "--trace"])
def test_what_simulations_write(option: str, tmp_path: Path) -> None:
    system = System(arrivals=[1.0], rates=[[3.0]], classes=[FORMULA], groups=["@machine"])
    system.to_file(tmp_path / "system.toml")
    path = tmp_path / "out.csv"
    words = ["--policy", "fcfs", "--horizon", "50", "--replications", "2", option, str(path)]
    assert run(["simulate", str(tmp_path / "system.toml"), *words]) == 0
    cells = {cell for row in read(path.read_text("utf-8")) for cell in row}
    assert not [cell for cell in cells if cell[:1] in tuple("=+@-")]
    assert any(FORMULA in cell for cell in cells)


def test_a_trace_of_machines_with_such_names_is_read_again(tmp_path: Path) -> None:
    system = System(arrivals=[1.0], rates=[[3.0, 1.0]], groups=["=1+1", "-m"])
    faults = (Fault(0, 1.0, 2.0), Fault(1, 3.0, 4.0))
    write_faults(tmp_path / "faults.csv", faults, system)
    assert "\n=" not in (tmp_path / "faults.csv").read_text("utf-8")
    assert read_faults(tmp_path / "faults.csv", system) == faults


def test_every_table_is_written_here() -> None:
    package = Path(gridwright.__file__).parent
    writers = [p.name for p in package.rglob("*.py") if "csv.writer(" in p.read_text("utf-8")]
    assert writers == ["spreadsheet.py"]
