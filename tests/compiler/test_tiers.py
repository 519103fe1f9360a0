"""A new policy is called by its address at first and linked later, with the same results."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import float64, int64, typeof

import gridwright as gw
from gridwright.compiler import link as link_module
from gridwright.compiler import tiers
from gridwright.compiler.digest import digest_of
from gridwright.experiments.optimum import optimal
from gridwright.policies import PULL, Policy, Table, find, policies, policy_of
from gridwright.simulation import Replication, replicate
from gridwright.simulation.central import Central
from gridwright.simulation.driver import Conditions

pytestmark = pytest.mark.skipif(
    not link_module.target().calls_by_address, reason="the quick compiler is off"
)
SYSTEMS = {"push": "2.B", "pull": "2.B", "peer": "4.A", "batch": "Smith", "chain": "Wisnesky:8"}
SHIPPED = [name for name, policy in policies().items() if policy.is_shipped]
SEED = np.random.SeedSequence(5)


@pytest.fixture
def tier(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Make all policies new, whatever was linked before; return how to ask for the only tier."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(link_module, "_TIERS", found)
    monkeypatch.setattr(link_module, "_is_ready", lambda name: False)
    return lambda: next(tier for tier, _ in found.values())


def bits(run: Replication) -> dict[str, bytes]:
    fields = run._asdict()
    return {key: np.asarray(fields[key]).tobytes() for key in fields.keys() - {"seconds", "more"}}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_policy_can_be_called_by_its_address(name: str, tier: Callable[[], Any]) -> None:
    policy = find(name)
    run = replicate(gw.load(SYSTEMS[str(policy.kind)]), policy, horizon=5.0, seed=SEED)
    assert run.tasks > 0
    assert tier().linked is None
    assert tier().spent > 0.0


def test_a_policy_that_looks_up_a_table_too(tier: Callable[[], Any]) -> None:
    policy = policy_of(optimal, PULL, idle="every")(table=Table([0] * 32), most=1)
    run = replicate(gw.System(arrivals=[1], rates=[[2, 3]]), policy, horizon=5.0, seed=SEED)
    assert run.tasks > 0
    assert tier().linked is None
    assert digest_of({policy.decide: {}}).unknown == (), "it can be kept on disk"


STEADY = gw.load("2.D")
OTHERS = [
    STEADY.replace(execution={"kind": "gamma", "shape": 2}),
    STEADY.replace(interarrival="deterministic"),
    STEADY.replace(profile={"durations": [2, 3], "factors": [0.5, 1.5]}),
]


def test_a_long_loop_is_compiled_once_for_all_distributions(tier: Callable[[], Any]) -> None:
    """Linked loops and plain Python have special cases, such as exponential times."""
    for system in (STEADY, *OTHERS):
        runs = [
            replicate(system, find("fcfs"), horizon=20.0, seed=SEED, interpreted=each)
            for each in (False, True)
        ]
        assert bits(runs[0]) == bits(runs[1])
    found = [each for each, _ in link_module._TIERS.values()]
    assert len(found) == 3, "the policy is linked three times: exponential, general, in cycles"
    assert len({loop for each in found for loop, _ in each.compiled.values()}) == 1


def test_the_linked_loop_goes_on_where_the_other_one_stopped(
    tier: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"horizon": 300.0, "warmup": 20.0, "seed": SEED, "trace": True}
    runs = [replicate(gw.load("2.B"), find("kpb:k=2:tie=random"), **given)]
    assert tier().linked is None
    monkeypatch.setattr(tiers, "ENOUGH", 0.0)
    for interpreted in (False, True):
        given["interpreted"] = interpreted
        runs.append(replicate(gw.load("2.B"), find("kpb:k=2:tie=random"), **given))
    assert tier().linked is not None
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])


SHOWN = """
from gridwright import Pairs, push
from gridwright.policies.view import PerClass

@push
def shown(task_class, view, n=1, x=0.5, flag=False, pairs: Pairs = 1.0, per: PerClass = 2.0):
    view.tally[0] = n
    view.tally[1] = x
    view.tally[2] = 1.0 if flag else 0.0
    for i in range(pairs.shape[0]):
        view.tally[3] += per[i] * (i + 1)
        for j in range(pairs.shape[1]):
            view.tally[4] += pairs[i, j] * (i * 10 + j + 1)
    return 0 if view.rate[task_class, 0] > 0 else 1
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    file = tmp_path_factory.mktemp("policy") / "shown.py"
    file.write_text(SHOWN, "utf-8")
    return find(file)


@settings(max_examples=25)
@given(
    n=st.integers(-(2**53), 2**53),
    x=st.floats(-1e300, 1e300),
    flag=st.booleans(),
    numbers=st.lists(st.floats(-1e9, 1e9), min_size=6, max_size=6),
)
def test_parameters_of_every_type_arrive(
    shown: Policy, n: int, x: float, flag: bool, numbers: list[float]
) -> None:
    system = gw.System(arrivals=[1, 1], rates=[[4, 1], [2, 3]])
    pairs = [numbers[:2], numbers[2:4]]
    policy = shown(n=n, x=x, flag=flag, pairs=pairs, per=numbers[4:])
    compiled, plain = (
        replicate(system, policy, horizon=10.0, seed=SEED, interpreted=each)
        for each in (False, True)
    )
    assert compiled.tally[:3].tolist() == [n, x, flag]
    assert compiled.tally.tobytes() == plain.tally.tobytes()


def values() -> Iterator[Any]:
    """Yield values of many types, and several of each."""
    records = [np.dtype([("a", "f8"), ("b", kind)], align=True) for kind in ("i4", "f4", "i8")]
    dtypes = ["f8", "i8", "i4", "?", *records, np.dtype([("a", "f8"), ("b", "i8")])]
    shapes = [3, (2, 3), (1, 2), (2, 1), (0, 2), (2, 2, 2)]
    classes = [np.ndarray, np.recarray]
    for dtype, shape, order, cls, step, is_fixed in product(
        dtypes, shapes, "CF", classes, [1, 2], [False, True]
    ):
        array: Any = np.zeros(shape, dtype, order).view(cls)[::step]  # type: ignore[call-overload]
        array.flags.writeable = not is_fixed
        yield array
    yield from [0, 2**63 - 1, 2**63, -(2**63), True, False, 0.5, np.float64(1), np.int64(1), None]
    yield from [np.int32(1), "text", np.random.default_rng(1), np.random.default_rng(2)]
    yield from [link_module.point(each, float64, float64) for each in (halved, rounded)]
    yield link_module.point(rounded, int64, float64)


def halved(x: float) -> float:
    return x / 2


def rounded(x: float) -> int:
    return int(x)


def test_what_is_of_one_kind_has_one_type() -> None:
    found = defaultdict[Any, list[Any]](list)
    for value in values():
        found[tiers.kind_of(value)].append(typeof(value))
        found[tiers.kind_of((1.0, value))].append(typeof((1.0, value)))
    assert None in found, "there are values whose type only Numba can tell"
    del found[None]
    assert max(map(len, found.values())) > 2
    assert [types for types in found.values() if len(set(types)) > 1] == []


@pytest.mark.parametrize(("system", "policy"), [("3.A:alpha1:5", "lpas_dg"), ("Smith", "mm")])
def test_the_types_of_a_second_run_are_not_worked_out_again(
    system: str, policy: str, tier: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"horizon": 5.0, "seed": SEED}
    first = replicate(gw.load(system), find(policy), **given)
    assert len(tier().compiled) == 1
    monkeypatch.setattr(type(link_module.target()), "asked", None)
    assert bits(replicate(gw.load(system), find(policy), **given)) == bits(first)


def test_each_slice_takes_the_code_for_its_types(tier: Callable[[], Any]) -> None:
    """A whole number is no time of code that was compiled for others, nor the reverse."""
    states = []
    for times in ([1, 2.5, 3, 4.75], [1.0, 2.5, 3.0, 4.75]):
        mechanism = Central(gw.load("2.B"), find("mct"), Conditions(100.0, SEED))
        for until in times:
            mechanism.loop(until)
        states.append(mechanism.state)
    assert len(tier().compiled) == 2
    assert states[0].count[0].tasks > 20
    assert states[0].count.tobytes() == states[1].count.tobytes()


def test_a_policy_that_was_compiled_for_other_types_is_not_called(
    monkeypatch: pytest.MonkeyPatch, tier: Callable[[], Any]
) -> None:
    start = tiers.Starting._prepare

    def prepare(self: Any, given: tuple[Any, ...]) -> None:
        start(self, given)
        self.words[1] += 1  # it stands for the types

    monkeypatch.setattr(tiers.Starting, "_prepare", prepare)
    with pytest.raises(Exception, match="compiled for other types"):
        replicate(gw.load("2.B"), find("mct"), horizon=5.0, seed=SEED)


def test_a_wrong_index_names_its_line(tmp_path: Path, tier: Callable[[], Any]) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(
        "from gridwright import push\n\n@push\ndef wrong(task_class, view):\n"
        "    return int(view.rate[task_class, 2 + view.classes[0].arrived // 150])\n",
        "utf-8",
    )
    with pytest.raises(gw.InputError, match=r"wrong.py, line 5: IndexError"):
        replicate(gw.load("2.B"), find(file), horizon=1000.0, seed=SEED)
    assert tier().linked is None
