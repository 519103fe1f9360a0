"""The kind of computer is told where it is known, and nothing fails where it is not."""

import os
import platform
from pathlib import Path

from gridwright.compiler.computer import computer, processor_model


def test_the_model_is_read_where_it_is_told(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nmodel\t\t: 7\nmodel name\t: Abacus: 2\nmodel name\t: other\n")
    assert processor_model(told) == "Abacus: 2"
    told.write_text("processor\t: 0\n")
    assert processor_model(told) == processor_model(tmp_path / "none") == platform.processor()


def test_a_computer_in_words() -> None:
    assert computer().startswith(platform.machine())
    assert processor_model() in computer()
    assert f", {os.cpu_count()} processor" in computer()
