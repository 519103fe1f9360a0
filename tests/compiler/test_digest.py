"""Compiled code is never stale: whatever it depends on is edited, and it must follow.

Programs of several modules are written to a folder, imported, linked with one cache, edited, and
imported again. The interpreted function says what is right.
"""

import importlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import cfunc

import gridwright.compiler.cache as cache_module
import gridwright.compiler.link as link_module
from gridwright import load
from gridwright.compiler.digest import digest_of
from gridwright.compiler.link import bind, link
from gridwright.policies import Table
from gridwright.simulation import replicate


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Workshop"]:
    found = Workshop(tmp_path, monkeypatch)
    yield found
    found.forget()


class Workshop:
    """A folder of modules, and a cache for what is compiled from them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.code, self.cache = folder / "code", folder / "cache"
        self.code.mkdir()
        self.cache.mkdir()
        self.names: set[str] = set()
        monkeypatch.syspath_prepend(str(self.code))
        monkeypatch.setattr(cache_module, "_root", lambda: self.cache)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits come within a second

    def write(self, **modules: str) -> None:
        for name, text in modules.items():
            (self.code / f"{name}.py").write_text(text)
            self.names.add(name)

    def forget(self) -> None:
        """Do as a new process would: nothing is imported, nothing linked."""
        for name in self.names:
            sys.modules.pop(name, None)
        link_module._LINKED.clear()
        importlib.invalidate_caches()

    def results(self, x: float) -> tuple[float, float]:
        """Import the program as it is now; return what it answers compiled, and in Python."""
        self.forget()
        outer = importlib.import_module("outer").outer
        return link(outer)(x), bind(outer)(x)


VARIANTS: dict[str, tuple[str, str, Callable[[float], str]]] = {
    "a constant": (
        "from helper import K\ndef outer(x):\n    return x + K\n",
        "helper.py",
        lambda k: f"K = {k}\n",
    ),
    "a tuple": (
        "from helper import K\ndef outer(x):\n    return x + K[1]\n",
        "helper.py",
        lambda k: f"K = (1.0, {k})\n",
    ),
    "a helper's text": (
        "from helper import grow\ndef outer(x):\n    return grow(x)\n",
        "helper.py",
        lambda k: f"def grow(x):\n    return x + {k}\n",
    ),
    "a helper's default": (
        "from helper import grow\ndef outer(x):\n    return grow(x)\n",
        "helper.py",
        lambda k: f"def grow(x, by={k}):\n    return x + by\n",
    ),
    "an imported array": (
        "from helper import T\ndef outer(x):\n    return x + T[1]\n",
        "helper.py",
        lambda k: f"import numpy as np\nT = np.array([1.0, {k}])\n",
    ),
    "helper.TABLE": (
        "import helper\ndef outer(x):\n    return x + helper.TABLE[1]\n",
        "helper.py",
        lambda k: f"import numpy as np\nTABLE = np.array([1.0, {k}])\n",
    ),
    "helper.BEST": (
        "import helper\ndef outer(x):\n    return x + helper.BEST\n",
        "helper.py",
        lambda k: f"BEST = {int(k)}\n",
    ),
    "a NumPy scalar": (
        "from helper import K\ndef outer(x):\n    return x + K\n",
        "helper.py",
        lambda k: f"import numpy as np\nK = np.int64({k})\n",
    ),
    "a data file": (
        "import numpy as np\nfrom pathlib import Path\n"
        "T = np.loadtxt(Path(__file__).with_name('table.txt'))\n"
        "def outer(x):\n    return x + T[1]\n",
        "table.txt",
        lambda k: f"1.0\n{k}\n",
    ),
    "a helper's own array": (
        "from helper import grow\ndef outer(x):\n    return grow(x)\n",
        "helper.py",
        lambda k: f"import numpy as np\nT = np.array([{k}])\ndef grow(x):\n    return x + T[0]\n",
    ),
    "an @njit helper": (
        "from helper import grow\ndef outer(x):\n    return grow(x)\n",
        "helper.py",
        lambda k: f"from numba import njit\n@njit\ndef grow(x):\n    return x + {k}\n",
    ),
    "helper.f, plain": (
        "import helper\ndef outer(x):\n    return helper.grow(x)\n",
        "helper.py",
        lambda k: f"K = {k}\ndef grow(x):\n    return x + K\n",
    ),
    "helper.f, @njit, of a package": (
        "import helper\ndef outer(x):\n    return helper.inside.grow(x)\n",
        "inside.py",
        lambda k: f"from numba import njit\nK = {k}\n@njit\ndef grow(x):\n    return x + K\n",
    ),
    "records": (
        "import helper\ndef outer(x):\n    return x + helper.T[0].rate\n",
        "helper.py",
        lambda k: (
            f"import numpy as np\nT = np.rec.array([({k}, 1)], [('rate', 'f8'), ('n', 'i8')])\n"
        ),
    ),
    "a named tuple": (
        "from helper import K\ndef outer(x):\n    return x + K.best\n",
        "helper.py",
        lambda k: f"from collections import namedtuple\nK = namedtuple('N', 'best')({k})\n",
    ),
    "an enumeration": (
        "from helper import K\ndef outer(x):\n    return x + K.best.value\n",
        "helper.py",
        lambda k: f"from enum import IntEnum\nclass K(IntEnum):\n    best = {int(k)}\n",
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_compiled_code_follows_an_edit(workshop: Workshop, name: str) -> None:
    text, edited, version = VARIANTS[name]
    workshop.write(outer=text, helper="import inside\n", inside="")
    for k in (2.0, 5.0):
        (workshop.code / edited).write_text(version(k))
        assert workshop.results(10.0) == (10.0 + k, 10.0 + k)


PARTS: dict[str, Callable[[str, int], str]] = {
    "float": lambda name, k: f"{name} = {k}.0\n",
    "scalar": lambda name, k: f"{name} = np.int64({k})\n",
    "array": lambda name, k: f"{name}_all = np.array([0.0, {k}.0])\n",
    "records": lambda name, k: (
        f"{name}_all = np.rec.array([({k}.0, 0)], [('v', 'f8'), ('n', 'i8')])\n"
    ),
    "loaded": lambda name, k: f"{name}_all = np.load(Path(__file__).with_name('{name}.npy'))\n",
    "plain": lambda name, k: f"def {name}():\n    return {k}.0\n",
    "njit": lambda name, k: f"@njit\ndef {name}():\n    return {k}.0\n",
    "through": lambda name, k: (
        f"{name}_own = np.array([{k}.0])\ndef {name}():\n    return {name}_own[0]\n"
    ),
}
READ = {
    "float": "{0}",
    "scalar": "{0}",
    "array": "{0}_all[1]",
    "records": "{0}_all[0].v",
    "loaded": "{0}_all[0]",
    "plain": "{0}()",
    "njit": "{0}()",
    "through": "{0}()",
}
HEAD = "import numpy as np\nfrom numba import njit\nfrom pathlib import Path\n"


class Program:
    """A program of three modules, whose answer to x is x and the sum of some whole numbers."""

    def __init__(self, rng: random.Random, workshop: Workshop, parts: int) -> None:
        self.rng, self.workshop = rng, workshop
        self.parts: list[list[Any]] = [
            [
                f"n{k}",
                rng.choice(list(PARTS)),
                rng.choice("ab"),
                rng.random() < 0.5,
                rng.randrange(99),
            ]
            for k in range(parts)
        ]

    def edit(self) -> None:
        """Change one number, or how it is kept, or where, or how it is imported."""
        part = self.rng.choice(self.parts)
        what = self.rng.choice((1, 2, 3, 4, 4, 4, 4))
        fresh = {1: self.rng.choice(list(PARTS)), 2: self.rng.choice("ab"), 3: not part[3]}
        part[what] = fresh.get(what, self.rng.randrange(99))

    def write(self) -> float:
        """Write the modules down; return the sum of the numbers. Module b is used through a."""
        texts = {"a": HEAD + "import b\n", "b": HEAD}
        outer, terms = "import a\n", []
        for name, kind, where, dotted, number in self.parts:
            texts[where] += PARTS[kind](name, number)
            if kind == "loaded":
                np.save(self.workshop.code / f"{name}.npy", np.array([float(number)]))
            path = "a" if where == "a" else "a.b"
            read = READ[kind].format(name)
            if dotted:
                read = f"{path}.{read}"
            else:
                outer += f"from {where} import {read.partition('[')[0].partition('(')[0]}\n"
            terms.append(read)
        outer += f"def middle(x):\n    return x + {terms[0]}\n"
        outer += f"def outer(x):\n    return middle(x) + {' + '.join(terms[1:])}\n"
        self.workshop.write(outer=outer, **texts)
        return float(sum(part[-1] for part in self.parts))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_programs_follow_every_edit(workshop: Workshop, seed: int) -> None:
    rng = random.Random(seed)
    program = Program(rng, workshop, 3)
    for _ in range(25):
        total = program.write()
        assert workshop.results(0.5) == (0.5 + total, 0.5 + total), program.parts
        program.edit()


POLICY = """
import numpy as np
import a
from gridwright import push
from b import shift

@push
def own(task_class, view):
    \"\"\"Look the machine up.\"\"\"
    return a.pick(task_class, view) if shift[task_class] > 0 else a.FALLBACK
"""
MODULE_A = """
from numba import njit
FALLBACK = {fallback}
@njit
def pick(task_class, view):
    return {pick}
"""
LOOPS: list[dict[str, Any]] = [
    {"fallback": 0, "pick": "task_class", "shift": [1, 1], "kept": "file"},
    {"fallback": 0, "pick": "1 - task_class", "shift": [1, 1], "kept": "file"},
    {"fallback": 0, "pick": "1 - task_class", "shift": [0, 0], "kept": "file"},
    {"fallback": 1, "pick": "1 - task_class", "shift": [0, 0], "kept": "list"},
    {"fallback": 1, "pick": "task_class", "shift": [1, 1], "kept": "list"},
]
"""Class 0 and class 1 go to machines 0 and 1; 1 and 0; 0 and 0; 1 and 1; 0 and 1.

The array is changed once in a file and once in the program.
"""


@pytest.mark.slow
def test_whole_loops_follow_every_edit(workshop: Workshop) -> None:
    seen = set()
    for edit in LOOPS:
        shift = f"np.array({edit['shift']})"
        if edit["kept"] == "file":
            np.save(workshop.code / "shift.npy", edit["shift"])
            shift = "np.load(Path(__file__).with_name('shift.npy'))"
        workshop.write(own=POLICY, a=MODULE_A.format(**edit), b=f"{HEAD}shift = {shift}\n")
        workshop.forget()
        own = importlib.import_module("own").own
        how: dict[str, Any] = {"horizon": 30.0, "seed": np.random.SeedSequence(3)}
        compiled = replicate(load("2.B"), own, **how)
        interpreted = replicate(load("2.B"), own, **how, interpreted=True)
        assert compiled.mean_number == interpreted.mean_number
        seen.add(compiled.mean_number)
    assert len(seen) == 4


TABLE = np.array([1.0, 2.0])


def looked_up(k: int) -> float:
    return TABLE[k]


def test_an_array_changed_in_place_is_seen() -> None:
    assert link(looked_up)(0) == 1.0
    TABLE[0] = 7.0
    assert link(looked_up)(0) == 7.0
    TABLE[0] = 1.0
    assert link(looked_up)(0) == 1.0


def test_what_cannot_be_digested_is_not_kept_on_disk(workshop: Workshop) -> None:
    text = "DEEP, K = (), {}\nfor _ in range(60):\n    DEEP = (DEEP,)\n"
    outer = "import helper\ndef outer(x):\n    return x + helper.K + len(helper.DEEP) - 1\n"
    workshop.write(outer=outer)
    for k in (2.0, 5.0):
        workshop.write(helper=text.format(k))
        assert workshop.results(1.0) == (1.0 + k, 1.0 + k)
    assert list(workshop.cache.iterdir()) == []


SAME_BUT = [
    (
        "class Pair(NamedTuple):\n    a: float\n    b: float\nVALUE = Pair(1.0, 2.0)\n",
        "class Pair(NamedTuple):\n    b: float\n    a: float\nVALUE = Pair(1.0, 2.0)\n",
        "VALUE.a",
    ),
    (
        "class VALUE(IntEnum):\n    one = 1\n    two = 2\n    chosen = 1\n",
        "class VALUE(IntEnum):\n    one = 1\n    two = 2\n    chosen = 2\n",
        "VALUE.chosen.value",
    ),
]


@pytest.mark.parametrize(("before", "after", "read"), SAME_BUT)
def test_names_within_a_value_count(workshop: Workshop, before: str, after: str, read: str) -> None:
    head = "from enum import IntEnum\nfrom typing import NamedTuple\n"
    workshop.write(outer=f"from helper import VALUE\ndef outer(x):\n    return x + {read}\n")
    for text, right in ((before, 2.0), (after, 3.0)):
        workshop.write(helper=head + text)
        assert workshop.results(1.0) == (right, right)


def test_a_class_may_say_how_its_objects_differ() -> None:
    function: Any = bind
    one, same, other = (
        digest_of({function: {("TABLE",): Table(numbers)}}) for numbers in ([1, 2], [1, 2], [2, 1])
    )
    assert one == same
    assert one.name != other.name
    assert one.unknown == other.unknown == ()


def test_objects_that_numba_makes_are_not_known() -> None:
    @cfunc("f8(f8)")
    def grow(x: float) -> float:
        return x + 1.0

    program: Any = {looked_up: {("grow",): grow}}
    assert digest_of(program).unknown == (grow,)


def test_a_module_as_a_value_is_refused(workshop: Workshop) -> None:
    workshop.write(helper="K = 1.0\n")
    workshop.write(outer="import helper\ndef outer(x):\n    h = helper\n    return x + h.K\n")
    with pytest.raises(TypeError, match="uses the module helper as a value; expected helper fol"):
        workshop.results(1.0)


def test_every_file_of_the_compiler_counts(tmp_path: Path) -> None:
    copy = tmp_path / "gridwright"
    copy.mkdir()
    (copy / "__init__.py").touch()
    compiler = Path(link_module.__file__).parent
    shutil.copytree(compiler, copy / "compiler", ignore=shutil.ignore_patterns("__pycache__"))
    seen = {loaded(tmp_path)}
    files = sorted(compiler.glob("*.py"))
    for file in files:
        with (copy / "compiler" / file.name).open("a") as edited:
            edited.write("# edited\n")
        seen.add(loaded(tmp_path))
    assert len(seen) == 1 + len(files)


def loaded(folder: Path) -> str:
    """Return the digest of the compiler in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", "from gridwright.compiler.computer import LOADED; print(LOADED)"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    return done.stdout
