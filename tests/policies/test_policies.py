"""Naming, parameters, registration, and what every registered policy must do."""

import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, pull, push, simulate
from gridwright.allocation import Situation
from gridwright.grid import Book
from gridwright.policies import (
    KINDS,
    PULL,
    PUSH,
    PerClass,
    Policy,
    View,
    find,
    policies,
    policy_of,
)
from gridwright.policies.kind import Kind

SHIPPED = [policy for policy in policies().values() if policy.is_shipped]
SHARED = {"__init__", "choice", "kind", "on_time", "policy", "registry"}
SHARED |= {"sharing_out", "two_phase", "view"}


def test_every_file_is_a_policy_or_shared() -> None:
    files = {file.stem for file in Path(inspect.getfile(Policy)).parent.glob("*.py")}
    assert {policy.name for policy in SHIPPED} == files - SHARED


def test_every_kind_is_there() -> None:
    assert {policy.kind for policy in SHIPPED} == set(KINDS.values())


@pytest.mark.parametrize("policy", SHIPPED, ids=str)
def test_the_common_battery(policy: Policy) -> None:
    assert find(policy.name) is policy
    assert str(policy) == policy.name
    text = inspect.getdoc(policy.decide) or ""
    assert "Source:" in text or text.rstrip().endswith((").", ")")), "it names its source"
    file = Path(inspect.getfile(policy.decide))
    assert file.stem == policy.name, "file name = function name = registry name"
    assert len(file.read_text().splitlines()) <= 45
    for key, value in policy.parameters.items():
        assert find(f"{policy.name}:{key}={_word(value)}").parameters == policy.parameters


def _word(value: Any) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("kpb:k=3", "kpb:k=3"),
        ("kpb:tie=random:k=3", "kpb:k=3:tie=random"),
        ("kpb:k=2", "kpb"),
        (" mct ", "mct"),
        ("lpas_dg:planner=grouped:use_availability=false", None),
        ("guided_lpas:c=0.5", "guided_lpas:c=0.5"),
        ("guided_lpas:c=1 2.0;3 4", "guided_lpas:c=1 2;3 4"),
        ("guided_lpas:c=0.1234565", None),
        ("guided_lpas:c=1234567.0", None),
    ],
)
def test_names_with_parameters(text: str, canonical: str | None) -> None:
    assert str(find(text)) == (canonical or text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lpaz", "no policy 'lpaz'; did you mean 'lpas'"),
        ("nothing", "'gridwright policies' lists them"),
        ("kpb:kk=3", "kpb has no parameter 'kk'; did you mean 'k'?"),
        ("met:k=3", "met has no parameter 'k'; it takes none"),
        ("kpb:k=x", "kpb: k is 'x'; expected a whole number"),
        ("kpb:k=2.5", "expected a whole number"),
        ("guided_lpas:c=nan", "c is 'nan'; expected a number"),
        ("guided_lpas:c=1 2;3", "c is [['1', '2'], ['3']]; expected a number, or rows of numbers"),
        ("guided_lpas:c=1 x;3 4", "c is 'x'; expected a number"),
        ("mct:tie=first", "tie is 'first'; expected lowest or random"),
        (
            "lpas:planner=best",
            "planner is 'best'; expected dantzig, dual, grouped, interior, prices, steady, tolls, "
            "vertex, weights",
        ),
        ("lpas:use_availability=3", "expected true or false"),
        ("kpb:k=1:k=2", "policy 'kpb:k=1:k=2': k is given twice; expected it once"),
        ("mct:tie", "'tie' is no parameter; expected key=value"),
        ("./nowhere.py", "nowhere.py cannot be read"),
        ("", "no policy ''"),
    ],
)
def test_wrong_names(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        find(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_calling_a_policy_gives_another() -> None:
    kpb = find("kpb")
    other = kpb(k=4)
    assert other.planning["k"] == 4
    assert kpb.planning["k"] == 2
    assert other.planner is kpb.planner


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
@pytest.mark.parametrize("policy", [each for each in SHIPPED if each.planner is not None], ids=str)
def test_a_grid_may_plan_before_it_has_classes_or_machines(
    policy: Policy, shape: tuple[int, int]
) -> None:
    classes, machines = shape
    availability = np.arange(machines, dtype=np.float64) % 2  # the first machine is down
    now = Situation(np.ones(shape), np.ones(classes), availability, np.zeros(machines, np.int64))
    assert policy.plan(now).shape == shape


@pytest.mark.parametrize("k", [0, 3, -1])
def test_k_must_fit_the_system(k: int) -> None:
    with pytest.raises(InputError, match=rf"kpb: k is {k}; expected from 1 to 2"):
        simulate("2.B", f"kpb:k={k}", 10, 1)


def test_k_as_a_percentage_is_rounded_down() -> None:
    seven = simulate("2.D", "kpb:percent=45", 50, 2)
    assert seven.information.mean == 3
    with pytest.raises(InputError, match="percent=5 gives k = 0"):
        simulate("2.D", "kpb:percent=5", 10, 1)


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda: push(lambda task: 0), "is no push policy; expected def"),
        (lambda: pull(lambda machine, view=None: 0), "is no pull policy"),
        (lambda: push(lambda task, view, *rest: 0), "is no push policy"),
        (lambda: push(lambda task, view, k: 0), "parameter 'k' needs a default"),
        (lambda: push(lambda task, view, k="x": 0), "parameter 'k' needs a default"),
        (lambda: push(3), "@push takes a function; 3 is not one"),
    ],
)
def test_a_wrong_signature_is_refused_when_it_registers(define: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        define()
    assert message in str(error.value)


OWN = """
import numpy as np

from gridwright import push


@push
def mine(task_class, view, weight=1.0):
    "Where it would finish first, with a weight (made up)."
    return np.argmin(view.machines.work * weight + 1 / view.rate[task_class])
"""


SAME = """
from gridwright import push
from gridwright.policies.choice import Tie, least_completion


@push
def same(task_class, view, tie=Tie.lowest):
    "The same as mct, word for word."
    return least_completion(task_class, view, tie)
"""


@pytest.mark.slow
def test_a_policy_from_a_file_is_as_good_as_a_shipped_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    ours = simulate("2.D", str(file), 200, 3, seed=2)
    assert str(ours.policy) == "mine"
    same = tmp_path / "same.py"
    same.write_text(SAME)
    copied, shipped = (simulate("2.D", policy, 200, 3, seed=2) for policy in (str(same), "mct"))
    assert copied.mean_number == shipped.mean_number
    weighted = simulate("2.D", f"{file}:mine:weight=0", 200, 3, seed=2)
    assert str(weighted.policy) == "mine:weight=0"
    assert weighted.mean_number.mean > ours.mean_number.mean


def test_a_file_may_use_a_shipped_name_for_itself(tmp_path: Path) -> None:
    file = tmp_path / "mct.py"
    file.write_text(OWN.replace("def mine", "def mct"))
    assert find(str(file)).decide is not find("mct").decide


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (", "mine.py, line 1: "),
        ("x = 3", "has no policy; decorate its function, with @push, @pull"),
        (OWN + OWN.replace("mine", "other"), "has 2 policies; name one"),
        (OWN.replace("return ", "return undefined + "), "mine.py, line 10: NameError"),
        (OWN.replace("return ", "raise ValueError('no idea')\n    return "), "ValueError: no idea"),
        (
            OWN.replace("view.machines.work", "view.machines.wrk"),
            "mine.py, line 10: AttributeError",
        ),
        (OWN.replace("return np", "view.rate[99]\n    return np"), "mine.py, line 10: IndexError"),
        (OWN.replace("return np", "return 99\n    return np"), "every answer is impossible"),
        (
            OWN.replace("return np", "return 'x'\n    return np"),
            "it answered 'x'; expected a whole",
        ),
        (OWN.replace("return np", "np"), "mine.py, line 10: it answered None; expected a whole"),
        (
            OWN.replace("return np", "return 0.5\n    return np"),
            "it answered 0.5; expected a whole",
        ),
        (
            OWN.replace("return np", "return {0: 'a', 1: view}[0]\n    return np"),
            "mine.py, line 10: it answered",
        ),
        (
            OWN.replace("return np", "return sorted([1], key=lambda j: view.now)[0]\n    np"),
            "mine.py, line 10: this cannot be compiled: Cannot capture",
        ),
        (
            "import random\n" + OWN.replace("return np", "return random.randrange(2)\n    np"),
            "gives another answer to the same question",
        ),
        (OWN.replace("weight=1.0", "weight"), "parameter 'weight' needs a default"),
    ],
)
def test_a_wrong_policy_file(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        simulate("2.B", str(file), 20, 2)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_impossible_answers_are_refused_and_counted() -> None:
    @push
    def often_wrong(task_class, view):  # type: ignore[no-untyped-def]
        """Answer nonsense for one class (made up)."""
        return 7 if task_class == 0 and view.classes[0].arrived % 2 == 0 else 1

    result = simulate("2.B", often_wrong, 30, 2)
    assert result.refusals > 0


def test_a_closure_is_refused_with_a_clear_line() -> None:
    choice = 1

    @push
    def closed(task_class, view):  # type: ignore[no-untyped-def]
        """Use a variable from outside (made up)."""
        return choice

    with pytest.raises(InputError, match="closed uses variables of a function around it"):
        simulate("2.B", closed, 20, 1)


@pytest.mark.parametrize(
    "made", [[[1, float("nan")], [1, 1]], [1, 1], [[1, 1, 1]], None, [[1], "x"]]
)
def test_a_plan_that_is_none_is_refused(made: Any) -> None:
    def planned(task_class: int, view: Any) -> int:
        """Take the first machine (made up)."""
        return 0

    policy = policy_of(planned, PUSH, plan=lambda situation: made)
    with pytest.raises(InputError, match=r"planned: the plan is .*; expected 2 × 2 numbers"):
        simulate("2.B", policy, 10, 1)


def test_a_matrix_parameter_fits_the_system() -> None:
    policy = find("guided_lpas")
    (c, _) = policy.arguments((2, 3))
    assert c.tolist() == [[1.0] * 3] * 2
    (c, _) = policy(c=[[1, 2], [3, 4]]).arguments((2, 2))
    assert c.tolist() == [[1, 2], [3, 4]]
    message = "c has 2 rows of 2; expected a row for each of 3 classes, with a number for each of 2"
    with pytest.raises(InputError, match=message):
        policy(c=[[1, 2], [3, 4]]).arguments((3, 2))


@pytest.mark.parametrize("word", ["async def", "def"])
def test_a_policy_that_does_not_return_at_once(word: str, tmp_path: Path) -> None:
    answer = "return 0" if word == "async def" else "yield 0"
    code = f"from gridwright import push\n@push\n{word} mine(task_class, view):\n    {answer}\n"
    (tmp_path / "mine.py").write_text(code)
    command = [sys.executable, "-m", "gridwright", "simulate", "2.B", "--policy", "./mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()  # and no warning that it was never awaited
    assert "mine does not return at once; expected def mine(task_class, view" in line


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_kind_stays_itself_on_its_way_to_another_process(kind: Kind) -> None:
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(kind), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == kind.name
    assert pickle.loads(pickle.dumps(kind)) is kind


def marked(machine: int, view: View, weight: PerClass = 1.0) -> int:
    """Take the class with the largest weight; count the tasks of a machine (made up)."""
    best, largest = -1, -1.0
    for i in range(len(view.classes)):
        if view.classes[i].waiting > 0 and view.rate[i, machine] > 0 and weight[i] > largest:
            best, largest = i, weight[i]
    if best >= 0:
        view.memory[0, machine] += 1
        view.memory[1, machine] = best
    return best


MARKED = policy_of(marked, PULL, memory=(2, "machines"))


def test_a_parameter_by_class_and_a_memory_of_its_own() -> None:
    assert str(MARKED(weight=[1, 2.5])) == "marked:weight=1 2.5"
    assert str(MARKED(weight="1 2.5")) == "marked:weight=1 2.5"
    with pytest.raises(InputError, match="3 numbers; expected one for each of 2 classes"):
        simulate("2.B", MARKED(weight=[1, 2, 3]), 10, 1)
    for wrong in ("1 2;3 4", [], [[1, 2]], "x y", None):
        with pytest.raises(InputError, match=r"marked: weight is .*; expected a number"):
            MARKED(weight=wrong)
    first, second = (
        simulate("2.B", MARKED(weight=weight), 100, 2).replications for weight in ("2 1", "1 2")
    )
    for one, other in zip(first, second, strict=True):
        assert one.memory.shape == (2, 2)
        assert one.memory[0].sum() == one.memory[0].round().sum() > 1000
        assert one.response[0] < other.response[0]
        assert one.response[1] > other.response[1]


def test_a_memory_grows_with_a_grid() -> None:
    book = Book(MARKED, [[1.0, 1.0]], [1.0])
    book.submit(0.0, 1, 0)
    assert book.memory.tolist() == [[1, 0], [0, 0]]
    book.add_machine(np.array([1.0]))
    assert book.memory.tolist() == [[1, 0, 0], [0, 0, 0]]
    book.submit(2.0, 2, 0)
    assert book.memory[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    "memory", [3, (0, 2), (1.5, 2), (True, 2), ("class", 2), (1, 2, 3), ("0 classes", 2)]
)
def test_a_wrong_memory_is_refused(memory: Any) -> None:
    with pytest.raises(InputError, match=r"memory is .*; expected \(rows, columns\), each of them"):
        policy_of(marked, PULL, memory=memory)


def test_a_memory_may_be_a_multiple_of_the_classes_or_machines() -> None:
    wide = policy_of(lambda machine, view: -1, PULL, memory=("2 classes", "10 machines"))
    assert wide.memory((3, 4)).shape == (6, 40)


def test_a_memory_has_a_limit() -> None:
    large = policy_of(lambda machine, view: -1, PULL, memory=(10_000, "machines"))
    with pytest.raises(InputError, match="10,000 × 1,001 numbers; expected at most 10,000,000"):
        large.memory((1, 1001))
