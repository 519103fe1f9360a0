"""Modules beside the user's script travel to machines that cannot import them."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from gridwright.grid.worker import call, unpickled, with_modules, with_results

from .conftest import WAIT

HELPERS = """
from functools import lru_cache

import parts.deep
from config import NUMBER

class Thing:
    def __init__(self, value):
        self.value = value

class Wrong(Exception):
    pass

@lru_cache
def made(value):
    return Thing(value + NUMBER + parts.deep.more())

def wrong():
    raise Wrong("é")
"""
SCRIPT = """
import sys

import gridwright as gw
import helpers

sys.path.append("elsewhere")
import missing_there

def made(value):
    return helpers.made(value)

if __name__ == "__main__":
    place = sys.argv[1]
    is_served = "://" not in place
    with gw.connect(place) if is_served else gw.Grid(on=place, journal="j.sqlite") as grid:
        for function in (helpers.made, made):
            found = grid.submit(function, 1).result()
            assert type(found) is helpers.Thing and found.value == 1101, found
        later = grid.submit(made, 2)
        assert grid.submit(getattr, later, "value").result() == 1102
        try:
            grid.submit(helpers.wrong).result()
        except helpers.Wrong as error:
            assert 'raise Wrong("é")' in str(error.__cause__)
        try:
            grid.submit(missing_there.function).result()
        except gw.JobFailedError as error:
            print(str(error).splitlines()[-1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a script and its modules."""
    found = tmp_path / "project"
    (found / "parts").mkdir(parents=True)
    (found / "helpers.py").write_text(HELPERS, encoding="utf-8")
    (found / "config.py").write_text("NUMBER = 100\n")
    (found / "parts" / "__init__.py").touch()
    (found / "parts" / "deep.py").write_text("def more():\n    return 1000\n")
    return found


def python(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=WAIT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_call_brings_its_modules(folder: Path, tmp_path: Path) -> None:
    (folder / "make.py").write_text(
        "import sys, cloudpickle, helpers\n"
        "from gridwright.grid.script_modules import with_script_modules\n"
        "for path, function in zip(sys.argv[1:], (helpers.made, abs)):\n"
        "    work = cloudpickle.dumps((function, (1,), {}))\n"
        "    sent = with_script_modules(work)\n"
        "    open(path, 'wb').write(sent)\n"
        "    print(len(sent) - len(work))\n"
    )
    mine, other = tmp_path / "mine", tmp_path / "other"
    more = [int(word) for word in python(folder, "make.py", str(mine), str(other)).split()]
    assert 0 < more[0] < 1500
    assert more[1] == 0, "it needs none of them"
    run = "import sys; from gridwright.grid.worker import unpickled; "
    run += "f, args, _ = unpickled(open(sys.argv[1], 'rb').read()); print(f(*args).value)"
    assert python(tmp_path, "-c", run, str(mine)) == "1101\n"
    (folder / "config.py").write_text("NUMBER = 200\n")
    python(folder, "make.py", str(other), str(tmp_path / "third"))
    both = f"{run}; f, args, _ = unpickled(open(sys.argv[2], 'rb').read()); print(f(*args).value)"
    assert python(tmp_path, "-c", both, str(mine), str(other)) == "1101\n1201\n"


def test_results_and_modules_are_joined_to_a_call() -> None:
    work = pickle.dumps((abs, (-1,), {}))
    assert unpickled(with_results(with_modules(work, b""), {})) == (abs, (-1,), {})


def test_a_module_that_is_missing_is_named() -> None:
    work = b"cno_such_module\nfunction\n."
    result, error = call(work, lambda: None)
    assert result == b""
    assert "cannot import 'no_such_module': install it there, or put it beside the script" in error


@pytest.mark.slow
@pytest.mark.parametrize("where", ["Dask workers", "a grid that is served"])
def test_a_script_and_its_modules(
    where: str, request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "missing_there.py").write_text("def function():\n    pass\n")
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(folder / "home"))
    if where == "Dask workers":
        said = python(folder, "script.py", request.getfixturevalue("cluster").address)
    else:
        command = [sys.executable, "-m", "gridwright", "grid", "serve", "--name", "farm", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                said = python(folder, "script.py", "farm")
            finally:
                process.terminate()
    assert "cannot import 'missing_there': install it there, or put it beside the script" in said
