import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gridwright.link import link

OUTER = """
import inner

def outer(x):
    return grow(x) + 1.0

from inner import grow
"""


def run(folder: Path, cache: Path, code: str) -> str:
    """Run code in a new process, with modules from a folder and a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CALL = "from gridwright.link import link; import outer; f = link(outer.outer); print(f(2.0)); "
HITS = "print(sum(f.stats.cache_hits.values()))"


def test_compiled_code_is_cached_and_never_stale(tmp_path: Path) -> None:
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    (folder / "outer.py").write_text(OUTER)
    (folder / "inner.py").write_text("def grow(x):\n    return 10.0 * x\n")
    assert run(folder, cache, CALL + HITS).split() == ["21.0", "0"]
    assert run(folder, cache, CALL + HITS).split() == ["21.0", "1"]
    (folder / "inner.py").write_text("def grow(x):\n    return 20.0 * x\n")
    assert run(folder, cache, CALL + HITS).split() == ["41.0", "0"]


def test_an_unwritable_home_falls_back(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "outer.py").write_text(OUTER)
    (folder / "inner.py").write_text("def grow(x):\n    return 10.0 * x\n")
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    assert run(folder, not_a_folder, CALL) == "21.0"


def total(values: np.ndarray) -> float:
    result = 0.0
    for value in values:
        result += square(value)
    return result


def square(value: float) -> float:
    return value * value


def test_callees_are_compiled_too() -> None:
    compiled = link(total)
    assert compiled(np.arange(4.0)) == 14.0
    assert link(total) is compiled


def test_a_function_typed_at_a_prompt_compiles() -> None:
    space: dict[str, object] = {}
    exec("def half(x):\n    return x / 2", space)
    assert link(space["half"])(3.0) == 1.5


def test_what_cannot_be_compiled_says_so() -> None:
    def odd(x: object) -> object:
        return open(x)  # type: ignore[call-overload]

    with pytest.raises(Exception, match="open"):
        link(odd)(1)
