import runpy
import subprocess
import sys
import tomllib
from math import gamma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, allocate, load, simulate
from gridwright.catalogue import cite, entries, find, find_or_read, results, results_of
from gridwright.model import MarkovChain, System

ROOT = Path(__file__).parents[2]
PUBLISHED = tomllib.loads((ROOT / "published" / "systems.toml").read_text("utf-8"))
SYSTEMS = PUBLISHED["system"]
CELLS = tomllib.loads((ROOT / "published" / "results.toml").read_text("utf-8"))["cell"]
NAMES = [entry.name for entry in entries()]
PRINTED = [name for name in NAMES if "-as-run" not in name]


def test_the_catalogue_is_what_the_script_makes_of_the_published_data(tmp_path: Path) -> None:
    script = ROOT / "tools" / "convert_published.py"
    subprocess.run([sys.executable, str(script), "--to", str(tmp_path)], check=True)
    shipped = ROOT / "src" / "gridwright" / "catalogue"
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.*")}
    kept = {
        path.relative_to(shipped): path.read_text()
        for path in [*shipped.rglob("*.toml"), *shipped.rglob("*.jsonl")]
        if path.parent.name != "experiments"  # which are written by hand
    }
    assert made == kept


@pytest.mark.parametrize("error", [-1e-14, 1e-14])
def test_the_catalogue_does_not_depend_on_the_processor(
    error: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another processor's mathematical functions and linear algebra differ in the last digits.
    script = runpy.run_path(str(ROOT / "tools" / "convert_published.py"))

    class Chain(MarkovChain):
        @property
        def mean(self) -> float:
            return super().mean * (1 + error)

    inside = script["main"].__globals__
    inside |= {"gamma": lambda x: gamma(x) * (1 + error), "MarkovChain": Chain}
    monkeypatch.setattr(sys, "argv", ["convert_published.py", "--to", str(tmp_path)])
    script["main"]()
    shipped = ROOT / "src" / "gridwright" / "catalogue"
    for name in SYSTEMS:
        file = Path("systems", f"{name}.toml")
        assert (tmp_path / file).read_text("utf-8") == (shipped / file).read_text("utf-8")


def test_every_published_system_is_there() -> None:
    assert {name.split(":")[0] for name in PRINTED} == set(SYSTEMS)


def test_every_experiment_of_the_testbed_is_there_as_it_ran() -> None:
    policies = ("fcfs", "gcmu", "lpas_dg")
    wanted = {f"MGST-{n}-as-run:{policy}" for n in range(1, 13) for policy in policies}
    assert set(NAMES) - set(PRINTED) == wanted
    for name in wanted:
        entry = find(name)
        assert entry.horizon is not None
        system = entry.system
        assert system.delays is not None
        minutes = 2.0 / 60 / float(np.mean(system.delays.after))
        assert 1.9 < minutes < 5.1
        assert bool(np.any(system.delays.timeout)) == (system.failures is not None)
        assert system.assumed is not None
        assert (system.effective <= 1.03 * system.believed.effective).all()
    observed = find("MGST-2-as-run:gcmu").system.arrival_rates
    assert observed.tolist() == [2.22, 4.9, 7.12, 12.57]


def test_every_case_is_there() -> None:
    for name, system in SYSTEMS.items():
        for case in system.get("case", []):
            assert f"{name}:{case['arrival']}:{case['n']}" in NAMES
        for experiment in system.get("experiment", []):
            assert f"{name}:{experiment['n']}" in NAMES
    assert sum(name.startswith("3.A:table_3_11:") for name in NAMES) == 9


@pytest.mark.parametrize(
    "entry",
    [entry for entry in entries() if entry.has_capacity and entry.name in PRINTED],
    ids=lambda e: e.name,
)
def test_loads_are_those_computed_when_the_data_was_collected(entry: object) -> None:
    from gridwright.catalogue import Entry

    assert isinstance(entry, Entry)
    system, *case = entry.name.split(":")
    published = SYSTEMS[system]
    for other in [*published.get("case", []), *published.get("experiment", [])]:
        name = [other["arrival"], str(other["n"])] if "arrival" in other else [str(other["n"])]
        if case == name:
            published = other
    expected = published.get("computed_consistent_load", published.get("computed_load"))
    found = allocate(entry.system, down=entry.down)
    if "fitted_load" in published:
        assert found.load == pytest.approx(published["fitted_load"], abs=0.01)
    elif expected is None:
        assert entry.name.startswith("3.A:table_3_11")
    elif system.startswith(
        "4.B"
    ):  # the computed one is that of machines that change hosts for ever
        assert entry.system.changes is not None
        shares = entry.system.changes.availability
        level = [sum(shares) / len(shares)] * len(entry.system.counts)
        usual = allocate(entry.system.replace(availability=level, changes=None)).load
        assert usual == pytest.approx(expected, rel=0.01 if system == "4.B2" else 1e-6)
    elif system == "3.G2":  # the source's powers are drawn at random; its load is a limit
        assert found.load == pytest.approx(expected, rel=0.01)
    else:
        assert found.load == pytest.approx(expected, abs=1e-6)
    with_failures = published.get(
        "computed_load_with_failures", published.get("computed_load_with_failures_consistent")
    )
    if with_failures is not None:
        assert 1 / found.long_run_capacity == pytest.approx(with_failures, abs=1e-6)


def test_names_resolve() -> None:
    assert find("2.B").system.name == "2.B"
    assert find("3.H").name == "3.H:alpha1:1"
    assert find("3.LP-machine-2-failed").down == ("2",)
    assert find("2.B").horizon == 20000
    assert find("4.A").horizon == 200000
    assert find("MGST.HiHi:1").horizon is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3.A", "3.A has several cases, name one: 3.A:alpha1:1, 3.A:alpha1:2"),
        ("3.A:alpha2", "name one: 3.A:alpha2:1, 3.A:alpha2:2, 3.A:alpha2:3"),
        ("2.b", "no system '2.b' in the catalogue; did you mean '2.B'"),
        ("nothing like it", "'gridwright systems' lists them"),
        ("3.A:alpha1:9", "did you mean '3.A:alpha1:5'"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        find(name)
    assert message in str(error.value)


def test_what_is_no_system_is_shown_as_printed() -> None:
    for name in ("2.homogeneous-example",):
        entry = find(name)
        assert entry.printed
        with pytest.raises(InputError, match="can be shown"):
            entry.system  # noqa: B018


def test_chains_are_converted() -> None:
    entry = find("Wisnesky:16")
    assert entry.printed["template_jobs"] == 20
    assert entry.horizon == 1000
    assert entry.shape == (20, 16)
    assert entry.system.one_at_a_time
    assert find("Wisnesky:text:16").horizon == 10_000
    assert not find("Wisnesky:text:16").system.one_at_a_time


def test_failures_and_availabilities_are_converted() -> None:
    system = load("3.A:alpha1:5")
    assert system.failures is not None
    assert (system.failures.mean_uptime, system.failures.mean_repair) == (20, 4)
    assert system.mean_availability[[12, 18, 24]].tolist() == [0.5] * 3
    assert system.mean_availability[[0, 3, 13, 25]].tolist() == [0.75] * 4
    assert system.mean_availability.sum() == 30 - 3 * 0.5 - 4 * 0.25
    # the printed failure rate 0.05 does not fit the printed results, 0.02 does
    printed = load("MGST.HiHi:3").failures
    assert printed is not None
    assert printed.mean_uptime == 50


def test_many_copies_list_the_machines_of_a_group_together() -> None:
    copies, one = load("3.F:alpha:2"), load("3.A:alpha1:5")
    assert copies.shape == (4, 3000)
    for group in range(6):
        shares = copies.mean_availability[copies.column == group]
        assert shares.tolist() == one.mean_availability[one.column == group].tolist() * 100


def test_other_distributions_of_table_3_11() -> None:
    system = load("3.A:table_3_11:2:hyperexponential")
    assert system.execution.variance == 2  # type: ignore[union-attr]
    assert system.failures is not None
    assert system.failures.uptime.variance == 5  # type: ignore[union-attr]
    assert load("3.A:table_3_11:1:deterministic").failures is None


def test_hosts() -> None:
    for published, name in ((SYSTEMS["3.G1"], "3.G1"), (SYSTEMS["3.G2"], "3.G2:alpha1:1")):
        system = load(name)
        assert system.shape == (4, 300)
        hosts = PUBLISHED["hosts"]["host"]
        means = np.repeat([host["a_mean"] for host in hosts], published["machines_per_group"])
        assert system.mean_availability == pytest.approx(means, abs=1e-6)
    first = load("3.G1").machine_availability[20]
    assert isinstance(first, MarkovChain)
    assert first.states == (0.5, 0.33)  # a host that never enters state a
    assert len({tuple(rates) for rates in load("3.G2:alpha1:1").rates.T}) > 60


def test_files_are_systems_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    System(arrivals=[1], rates=[[2]]).to_file(path)
    assert find_or_read(str(path)).system.name == "mine"
    assert load(str(path)).shape == (1, 1)


def test_every_printed_cell_is_there() -> None:
    assert results() == CELLS
    assert len(results(src="A", table="2.1")) == 34
    assert results(src="A", table="2.1", policy="nobody") == []


@pytest.mark.slow
def test_every_cell_of_a_solvable_system_belongs_to_an_entry() -> None:
    owned: dict[str, list[dict[str, Any]]] = {}
    for name in NAMES:
        owned.setdefault(name.split(":")[0], []).extend(results_of(name))
    assert CELLS
    for cell in CELLS:
        assert cell in owned.get(cell["system"], []), cell


def test_benchmarks_have_costs_and_what_is_printed() -> None:
    entry = find("QGym-N")
    assert entry.printed["printed_cost"]["MW"] == 40.2
    assert entry.system.holding_costs.tolist() == [1, 3]
    # no mean: class 1 gets machine 1 for 28.0 % of the time, but needs 38 %
    assert simulate("QGym-N", "cmu", 3096, 10).stable is False
    assert simulate("QGym-N", "maxweight", 20_000, 10).stable is True


def test_sources_are_cited() -> None:
    for entry in entries():
        assert len(cite(entry.source)) > 40
