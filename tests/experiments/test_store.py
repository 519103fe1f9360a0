"""Replications kept on disk: the same bytes, found by their content only."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, load, push, simulate
from gridwright.experiments import Store
from gridwright.experiments import store as store_module
from gridwright.experiments.serialise import pack, unpack
from gridwright.experiments.store import CODE, key_of
from gridwright.policies import find

from ..test_layers import FILES, imported_packages, package_of

OPTIONS = {"horizon": 100.0, "warmup": 0.0, "trace": False, "tails": False, "rng": "pcg64"}
SEED = np.random.SeedSequence(1)


def test_what_is_kept_is_what_was_simulated(tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite")
    first = simulate("3.A:alpha1:5", "lpas_dg", 20, 2, store=store)
    again = simulate("3.A:alpha1:5", "lpas_dg", 20, 2, store=store)
    for one, two in zip(first.replications, again.replications, strict=True):
        for field in one._fields:
            mine, kept = getattr(one, field), getattr(two, field)
            assert type(mine) is type(kept), field
            np.testing.assert_array_equal(mine, kept, err_msg=field)
    assert first.as_json() == again.as_json()


def test_results_for_any_computer_are_found_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = load("2.B"), find("mct"), SEED, OPTIONS
    anywhere = Store(tmp_path / "results.sqlite", anywhere=True)
    here, there = key_of(*given), anywhere.key(*given)
    monkeypatch.setattr(store_module, "processor", lambda: "another processor")
    assert anywhere.key(*given) == there
    assert key_of(*given) != here
    monkeypatch.setattr(store_module, "LOADED", "other code")
    assert anywhere.key(*given) != there


def test_keys_tell_everything_apart() -> None:
    system, policy = load("2.D"), find("kpb:k=2")
    base = key_of(system, policy, SEED, OPTIONS)
    assert base == key_of(load("2.D").replace(name="another name"), policy, SEED, OPTIONS)
    others = [
        key_of(system.replace(execution="deterministic"), policy, SEED, OPTIONS),
        key_of(system, find("kpb:k=3"), SEED, OPTIONS),
        key_of(system, find("mct"), SEED, OPTIONS),
        key_of(system, policy, np.random.SeedSequence(1, spawn_key=(1,)), OPTIONS),
        key_of(system, policy, np.random.SeedSequence(2), OPTIONS),
        key_of(system, policy, SEED, {**OPTIONS, "horizon": 101.0}),
        key_of(system, policy, SEED, {**OPTIONS, "warmup": 1.0}),
        key_of(system, policy, SEED, {**OPTIONS, "rng": "philox"}),
    ]
    assert len({base, *others}) == len(others) + 1


def test_what_a_user_wrote_and_traces_are_not_kept(tmp_path: Path) -> None:
    @push
    def mine(task_class, view):  # type: ignore[no-untyped-def]
        """Send everything to the first machine."""
        return 0

    (tmp_path / "own.py").write_text(
        "from gridwright import Distribution\n"
        "class Own(Distribution):\n"
        "    @property\n"
        "    def mean(self): return 1.0\n"
        "    @property\n"
        "    def variance(self): return 0.0\n"
        "    def sample(self, rng, size): import numpy as np; return np.ones(size)\n"
    )
    (tmp_path / "own.toml").write_text(
        'arrivals = [1]\nrates = [[2]]\nexecution = { kind = "./own.py:Own" }\n'
    )
    assert key_of(load("2.D"), find(mine), SEED, OPTIONS) is None
    assert key_of(load(str(tmp_path / "own.toml")), find("mct"), SEED, OPTIONS) is None
    assert key_of(load("2.D"), find("mct"), SEED, {**OPTIONS, "trace": True}) is None


def test_a_users_planner_does_not_share_the_key_of_a_shipped_one() -> None:
    def mine(situation: Any) -> Any:
        return situation.rates > 0

    planned = replace(find("lpas"), planner=mine, planning=MappingProxyType({}))
    assert key_of(load("2.D"), find("lpas"), SEED, OPTIONS) is not None
    assert key_of(load("2.D"), planned, SEED, OPTIONS) is None
    assert unpack(pack(planned)).decide is planned.decide


def test_keys_depend_on_the_settings_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(load("2.D"), find("mct"), SEED, OPTIONS)
    monkeypatch.setattr("numba.config.OPT", 0)
    assert key_of(load("2.D"), find("mct"), SEED, OPTIONS) != before


def test_a_damaged_replication_is_simulated_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite")
    first = simulate("2.B", "mct", 50, 1, store=store)
    key = key_of(load("2.B"), find("mct"), np.random.SeedSequence(1, spawn_key=(0,)),
                 {**OPTIONS, "horizon": 50.0})  # fmt: skip
    assert key is not None
    assert store.get(key) is not None
    with store._open() as database:
        ((kept,),) = database.execute("SELECT data FROM replication").fetchall()
    changed = [bytearray(kept) for _ in range(0, len(kept), 50)]
    for k, each in enumerate(changed):
        each[50 * k] ^= 1 << k % 8
    for damage in (b"nonsense", b"", b"PK", kept[:-1], *changed):
        with store._open() as database:
            database.execute("UPDATE replication SET data = ?", (bytes(damage),))
        assert store.get(key) is None
    assert simulate("2.B", "mct", 50, 1, store=store).mean_number == first.mean_number


def test_what_cannot_be_kept_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path / "results.sqlite")
    with store._open() as database:
        database.execute("PRAGMA query_only=ON")
    found = simulate("2.B", "mct", 50, 3, store=store)
    assert found.mean_number == simulate("2.B", "mct", 50, 3).mean_number
    (said,) = caplog.messages
    assert said.startswith(f"results are not kept in {store.path}: ")


def test_keys_depend_on_all_code_that_makes_numbers() -> None:
    """What the simulator imports, and what that does.

    A key has the text of the system, wherever it is from. Tables are only shown.
    """
    below: dict[str, set[str]] = {}
    for file in FILES:
        below.setdefault(package_of(file), set()).update(imported_packages(file))
    found, new = set[str](), {"simulation"}
    while new:
        found |= new
        new = set[str]().union(*(below[package] for package in new)) - found
    assert found - {"catalogue", "tabular"} == {*CODE}


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="results cannot be stored in"):
        Store(tmp_path / "file" / "results.sqlite")


def test_a_fresh_store_knows_only_what_it_kept_itself(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    simulate("2.B", "mct", 50, 1, store=Store(path))
    fresh = Store(path, fresh=True)
    key = key_of(load("2.B"), find("mct"), np.random.SeedSequence(1, spawn_key=(0,)),
                 {**OPTIONS, "horizon": 50.0})  # fmt: skip
    assert key is not None
    assert fresh.get(key) is None
    simulate("2.B", "mct", 50, 1, store=fresh)
    assert fresh.get(key) is not None


def test_long_lists_of_delays_are_told_apart() -> None:
    system, policy = load("3.F:alpha:1"), find("fcfs")
    some = np.zeros(3000)
    some[1500] = 5
    each: list[Any] = [np.zeros(3000).tolist(), some.tolist(), np.zeros(3000)]
    keys = {
        key_of(system.replace(delays={"before": delay}), policy, SEED, OPTIONS) for delay in each
    }
    assert len(keys) == 2
