import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridwright.compiler.cache as cache_module
from gridwright import simulate
from gridwright.compiler.link import bind, hook, link, rare

OUTER = """
import inner

def outer(x):
    return grow(x) + 1.0

from inner import grow
"""


def run(folder: Path, cache: Path, code: str) -> str:
    """Run code in a new process, with modules from a folder and a cache of its own."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CALL = (
    "from gridwright.compiler.link import link; import outer; "
    "f = link(outer.outer); print(f(2.0)); "
)
HITS = "print(sum(f.stats.cache_hits.values()))"


@pytest.mark.slow
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


def half(x: float) -> float:
    return square(x) / 2.0


@rare
def far(x: float) -> float:
    return half(x) + 1.0


def near_and_far(x: float) -> float:
    return half(x) + far(x)


def test_what_is_rare_gives_the_same() -> None:
    assert link(near_and_far, inlined=True)(2.0) == bind(near_and_far)(2.0) == 5.0


@hook
def chosen(x: float) -> float:
    return x


def through(x: float) -> float:
    return chosen(x)


def add_one(x: float) -> float:
    return x + 1.0


def add_two(x: float) -> float:
    return x + 2.0


def test_hooks_are_filled() -> None:
    assert link(through, chosen=add_one)(1.0) == bind(through, chosen=add_one)(1.0) == 2.0
    assert link(through, chosen=add_two)(1.0) == 3.0
    assert link(through)(1.0) == 1.0


def test_hooks_that_differ_only_in_a_default_are_told_apart() -> None:
    def make(value: float) -> Callable[..., float]:
        def shifted(x: float, by: float = value) -> float:
            return x + by

        return shifted

    results = [link(through, chosen=make(value))(1.0) for value in (1.0, 5.0)]
    assert results == [2.0, 6.0]


def test_a_hook_that_is_not_there() -> None:
    with pytest.raises(TypeError, match="through has no hook chsen"):
        link(through, chsen=add_one)


def again(x: float) -> float:
    return again(x - 1.0) if x > 0.0 else x


def test_recursion_and_closures_are_refused() -> None:
    with pytest.raises(TypeError, match="again calls itself"):
        link(again)
    step = 3.0

    def outer(x: float) -> float:
        return x + step

    with pytest.raises(TypeError, match="outer uses variables of a function around it"):
        link(outer)


@pytest.mark.slow
def test_a_changed_constant_of_another_file_is_seen(tmp_path: Path) -> None:
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    (folder / "outer.py").write_text("from con import K\n\ndef outer(x):\n    return x * K\n")
    for value in ("2.0", "3.0"):
        (folder / "con.py").write_text(f"K = {value}\n")
        assert run(folder, cache, CALL) == str(2 * float(value))


def test_old_folders_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "KEPT_FOLDERS", 3)
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        os.utime(tmp_path / str(number), (number, number))
    cache_module._prune(tmp_path, cache_module.KEPT_FOLDERS)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["3", "4", "5"]


def test_threads_leave_the_settings_alone() -> None:
    import numba

    config: Any = numba.config
    before = config.CACHE_DIR
    functions = [lambda x, k=k: x + k for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(link, functions))) == 40
    assert before == config.CACHE_DIR


def test_a_function_typed_at_a_prompt_compiles() -> None:
    space: dict[str, object] = {}
    exec("def half(x):\n    return x / 2", space)
    half: Any = space["half"]
    assert link(half)(3.0) == 1.5


def test_what_cannot_be_compiled_says_so() -> None:
    def odd(x: object) -> object:
        return open(x)  # type: ignore[call-overload]

    with pytest.raises(Exception, match="open"):
        link(odd)(1)


LONG = "\n".join(f"        x = x * 1.0{k} - sin(x * {k}.5) + choose(x, {k})" for k in range(1, 20))
PROGRAM = f"""
from math import sin
from gridwright.compiler.link import hook

@hook
def choose(x, k):
    return 0.0

def one(x, k):
    return 1.0

def two(x, k):
    return 2.0

def middle(x, n):
    for _ in range(n):
{LONG}
    return x

def outer(x):
    return middle(x, 3) + middle(x + 1.0, 4)
"""
BOTH = """
from gridwright.compiler.link import link
from program import one, outer, two
for choose in ({}):
    print(link(outer, choose=choose)(0.5))
"""


@pytest.mark.slow
def test_code_from_the_cache_is_not_mixed_with_code_compiled_now(tmp_path: Path) -> None:
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    one = run(folder, cache, BOTH.format("one,"))
    two = run(folder, tmp_path / "other", BOTH.format("two,"))
    assert one != two
    assert run(folder, cache, BOTH.format("two, one")).split() == [two, one]


@pytest.mark.slow
def test_processes_compile_a_program_once(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    code = "from gridwright.compiler.link import link; import program; "
    code += "f = link(program.outer, choose=program.one); f(0.5); " + HITS
    with ThreadPoolExecutor() as threads:
        found = threads.map(lambda _: run(tmp_path, tmp_path / "cache", code), range(3))
    assert sorted(found) == ["0", "1", "1"]


def test_a_process_that_was_stopped_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "PATIENCE", 0.1)
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with cache_module._alone_in(tmp_path), (tmp_path / "lock").open() as second:
            assert not cache_module._locked(second)
    with cache_module._alone_in(tmp_path), (tmp_path / "lock").open() as second:
        assert not cache_module._locked(second)


SIMULATED = """
import gridwright as gw
from gridwright.compiler import link
for name in ({}):
    print(gw.simulate("2.B", name, horizon=500.0, replications=1).mean_number.mean)
print(len(link._COMMON))
"""


@pytest.mark.slow
def test_programs_share_functions_and_damaged_ones_are_compiled_again(tmp_path: Path) -> None:
    jsq, mct, jfsq = (
        str(simulate("2.B", name, horizon=500.0, replications=1).mean_number.mean)
        for name in ("jsq", "mct", "jfsq")
    )
    assert len({jsq, mct, jfsq}) == 3
    cache, code = tmp_path / "cache", tmp_path / "cache" / "gridwright" / "code"
    first, count = run(tmp_path, cache, SIMULATED.format("'jsq',")).split()
    assert first == jsq
    found = run(tmp_path, cache, SIMULATED.format("'mct', 'jsq', 'jfsq'")).split()
    assert found == [mct, jsq, jfsq, count]  # functions were compiled for the first loop alone
    damage(code)
    assert run(tmp_path, cache, SIMULATED.format("'mct',")).split() == [mct, count]
    for part in map(Path.read_bytes, (code / "parts").iterdir()):
        assert cache_module._checksum(part[16:]) == part[:16]


def damage(code: Path) -> None:
    """Damage the parts that programs share, and remove the programs."""
    parts = sorted((code / "parts").iterdir())
    assert len(parts) > 5
    for number, part in enumerate(parts):
        kept = part.read_bytes()
        part.write_bytes(kept[: len(kept) // 2] if number % 2 else bytes(len(kept)))
    for folder in code.iterdir():
        if folder.name != "parts":
            shutil.rmtree(folder)


@pytest.mark.slow
def test_a_full_disk_is_not_blamed_on_the_policy(tmp_path: Path) -> None:
    mine = "from gridwright import push\n@push\ndef mine(task_class, view):\n    return 0\n"
    (tmp_path / "mine.py").write_text(mine)
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"  # as a disk that is nearly full
        "from gridwright.cli.main import run\n"
        "words = '--horizon 50 --replications 2 --json'.split()\n"
        "sys.exit(run(['simulate', '2.B', '--policy', sys.argv[1], *words]))\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "mine.py")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"policy": "mine"' in done.stdout
    (line,) = done.stderr.splitlines()
    assert f"compiled code cannot be kept in {tmp_path}" in line
    assert "it is compiled again next time" in line


def test_a_disk_that_fills_up_before_the_first_call_ends_nothing(tmp_path: Path) -> None:
    """Numba saves machine code at the first call, long after the folder was made."""
    (tmp_path / "plain.py").write_text("def double(x):\n    return 2 * x\n")
    code = (
        "import resource, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from plain import double\n"
        "from gridwright.compiler.link import link\n"
        "linked = link(double)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "print(linked(21))\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert "compiled code cannot be kept" in done.stderr


DRAWING = """
from gridwright.compiler.link import allocates_nothing, link
from gridwright.compiler.philox import Philox
import numba
from numba.extending import overload_method

def of_one_name(answer):
    def method(rng):
        return lambda rng: answer

    return method

overload_method(numba.types.NamedUniTuple, "one", strict=False)(of_one_name(1.0))
overload_method(numba.types.NamedUniTuple, "two", strict=False)(of_one_name(2.0))

def draw_one(rng):
    return rng.one()

def draw_two(rng):
    return rng.two()

@allocates_nothing
def one(rng):
    return draw_one(rng)

@allocates_nothing
def two(rng):
    return draw_two(rng)

@allocates_nothing
def both(rng):
    return draw_one(rng), draw_two(rng), rng.random(), rng.standard_exponential()

for each in (draw_one, draw_two, one, two, both):
    each.__module__ = Philox.__module__  # a part of this package is kept for other programs
"""


@pytest.mark.slow
def test_a_part_of_another_process_keeps_its_own_functions(tmp_path: Path) -> None:
    """Two processes give two functions of Numba's the same name and number."""
    (tmp_path / "drawing.py").write_text(DRAWING)
    begin = (
        "import numpy as np, drawing; from drawing import *; from numpy.random import SeedSequence;"
        "rng = lambda: Philox.of(SeedSequence(1), 0);"
    )
    assert run(tmp_path, tmp_path, begin + "print(link(one)(rng()))") == "1.0"
    said = run(
        tmp_path,
        tmp_path,
        begin + "print(link(two)(rng()), *link(both)(rng())[:2]); a, b = rng(), rng();"
        "print(link(both)(a)[2:] == (b.random(), b.standard_exponential()))",
    )
    assert said.split() == ["2.0", "1.0", "2.0", "True"]
