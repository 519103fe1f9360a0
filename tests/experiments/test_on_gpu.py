"""Experiments on a GPU: a fake one runs the same functions in plain Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import (
    InputError,
    Result,
    System,
    compare,
    compiler,
    contest,
    load,
    simulate,
    sweep,
)
from gridwright.experiments import (
    Store,
    Wanted,
    ahead,
    device,
    random_systems,
    simulate_in_pieces,
)
from gridwright.policies import find
from gridwright.reproduction import Laboratory, Run, data, data_of, reproduce
from gridwright.reproduction.laboratory import PARTS, Scale
from gridwright.simulation import Pieces, replicate

from ..simulation.fake_device import Interpreter


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    """Put a fake device in place of the GPU that most computers lack."""
    found = Interpreter()
    for module in (ahead, device, data):
        monkeypatch.setattr(module, "find_device", lambda: found)
    return found


def values(result: Result) -> Any:
    return result.values("mean_number"), result.values("mean_response")


def test_simulate_on_a_gpu_gives_the_results_of_philox(fake: Interpreter) -> None:
    there = simulate("2.B", "lpas", 20, 3, on="gpu")
    here = simulate("2.B", "lpas", 20, 3, rng="philox")
    assert np.array_equal(values(there), values(here))
    assert there.stable == here.stable


def test_what_was_reproduced_on_a_gpu_names_it(fake: Interpreter) -> None:
    laboratory = Laboratory(on="gpu")
    found = data_of(reproduce("LP", laboratory=laboratory), laboratory)
    assert found.made.endswith(" and a fake GPU")


def test_what_a_gpu_cannot_plan_or_plans_slowly_is_reproduced_on_the_cpu(
    fake: Interpreter,
) -> None:
    laboratory = Laboratory(Scale(2, 1e-5), on="gpu")
    names = ("interior", "dantzig", "dual", "grouped")
    runs = [Run("3.B:alpha1:2", f"lpas_dg:planner={name}") for name in names]
    runs.append(Run("3.B:alpha1:1", "lpas_dg:planner=dual"))  # no machine fails
    laboratory.simulate_ahead(runs)
    assert fake.counts == [0, 2, 2]
    assert all(laboratory.result(run).tasks > 0 for run in runs)


def test_a_run_whose_pieces_cannot_tell_is_not_cut(fake: Interpreter) -> None:
    laboratory = Laboratory(Scale(2, 1e-3, pieces=(("2.", Pieces(2, 1.0)),)), on="gpu")
    short, settled = Run("2.A", "lpas"), Run("2.D", "lpas")
    found = laboratory.result(short)
    assert "seconds of the GPU" in laboratory.work(), "the pieces took time, though not used"
    assert found.horizon == laboratory.scale.length(short)
    assert np.isfinite(found.replications[0].waiting).all(), (
        "pieces do not know how long tasks wait"
    )
    assert not np.isfinite(laboratory.result(settled).replications[0].waiting).any()
    assert laboratory.whole == {short}


def test_a_run_that_is_simulated_anew_is_not_counted_as_done(fake: Interpreter) -> None:
    short, done = Run("2.A", "lpas"), list[float]()
    laboratory = Laboratory(Scale(2, 1e-3, pieces=(("2.", Pieces(2, 1.0)),)), on="gpu")
    laboratory.show = lambda what, runs: done.append(runs)
    laboratory.simulate_ahead([short])
    assert done[-1] == 1.0, "two replications in three parts"
    done.clear()
    laboratory.result(short)
    assert laboratory.whole == {short}
    assert done == sorted(done)
    assert done[0] < done[-1] == 1.0


LONG = Scale(3, 5e-4, pieces=(("2.D", Pieces(2, 1.0)),))
RUNS = [Run("2.D", "lpas"), Run("2.A", "lpas"), Run("2.D", "lpas:tie=random")]
"""Two of them are long."""


def test_long_runs_are_reproduced_side_by_side_after_the_others(fake: Interpreter) -> None:
    done: list[float] = []
    laboratory = Laboratory(LONG, on="gpu", show=lambda what, runs: done.append(runs))
    laboratory.simulate_ahead(RUNS)
    assert (fake.side_by_side[0], max(fake.side_by_side)) == (3, 2 * 2 * 3 // PARTS)
    launched = len(fake.starts)
    assert all(laboratory.result(run).tasks > 0 for run in RUNS)
    assert len(fake.starts) == launched, "all were found"
    assert not laboratory.whole
    assert done == sorted(done)
    assert done[-1] == len(RUNS)


def test_parts_of_long_runs_that_are_done_are_kept(fake: Interpreter, tmp_path: Path) -> None:
    def kill(what: str, runs: float) -> None:
        if "long runs" in what and runs > 2 * (PARTS - 1) / PARTS:
            raise KeyboardInterrupt

    long = RUNS[::2]
    path = tmp_path / "results.sqlite"
    with pytest.raises(KeyboardInterrupt):
        Laboratory(LONG, on="gpu", store=Store(path), show=kill).simulate_ahead(long)
    fake.counts.clear()
    resumed, whole = Laboratory(LONG, on="gpu", store=Store(path)), Laboratory(LONG, on="gpu")
    resumed.simulate_ahead(long)
    assert max(fake.counts) == 2 * 3 // PARTS, "only the last part of each is run"
    for run in long:
        assert np.array_equal(values(resumed.result(run)), values(whole.result(run)))


def test_a_comparison_is_one_launch_a_program(fake: Interpreter) -> None:
    shares: list[float] = []
    names = ["mct", "lpas"]
    report = lambda policy, done, runs: shares.append(done)  # noqa: E731
    there = compare("2.B", names, 10, 2, on="gpu", progress=report)
    here = compare("2.B", names, 10, 2, rng="philox")
    assert fake.linked == len(there.results)
    assert max(shares) == 1.0
    for one, two in zip(there.results, here.results, strict=True):
        assert np.array_equal(values(one), values(two))


def test_a_contest_runs_all_systems_of_a_policy_together(fake: Interpreter) -> None:
    systems = list(random_systems(3))
    there = contest(systems, ["lpas", "mct"], tasks=60, replications=2, on="gpu")
    here = contest(systems, ["lpas", "mct"], tasks=60, replications=2, rng="philox")
    assert there.as_json() == here.as_json()
    assert (fake.linked, max(fake.counts)) == (2, 6)


def test_a_sweep_runs_all_values_together(fake: Interpreter) -> None:
    there = sweep("2.B", ["mct", "lpas"], "load", [0.4, 0.6], 5, 2, on="gpu")
    here = sweep("2.B", ["mct", "lpas"], "load", [0.4, 0.6], 5, 2, rng="philox")
    assert there.rows() == here.rows()
    assert (fake.linked, max(fake.counts)) == (2, 4)


def test_replications_that_are_kept_are_not_run_again(fake: Interpreter, tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite")
    first = compare("2.B", ["mct", "lpas"], 5, 2, on="gpu", store=store)
    again = compare("2.B", ["mct", "lpas"], 5, 2, on="gpu", store=store)
    assert fake.linked == 2
    assert first.as_json() == again.as_json()


def test_a_long_run_is_the_mean_of_its_pieces_and_is_kept(
    fake: Interpreter, tmp_path: Path
) -> None:
    system = load("2.B")
    store, shares = Store(tmp_path / "results.sqlite", anywhere=True), [0.0]
    wanted = Wanted(system, "lpas", 40.0, 3, 1, pieces=Pieces(4, 2.0))
    found = simulate_in_pieces(wanted, store, shares.append)
    assert (fake.linked, max(fake.counts), shares[-1]) == (1, 12, 1.0)
    assert sorted(shares) == shares
    for k, run in enumerate(found.replications):
        parts = [
            replicate(
                system,
                find("lpas"),
                horizon=12.0,
                warmup=2.0,
                seed=np.random.SeedSequence(1, spawn_key=(k, piece)),
                rng="philox",
            )
            for piece in range(4)
        ]
        assert run.mean_number == pytest.approx(np.mean([each.mean_number for each in parts]))
        assert run.tasks == sum(each.tasks for each in parts)
        number = np.mean([each.class_number for each in parts], axis=0)
        left = np.sum([each.throughput for each in parts], axis=0) * 10.0
        assert run.responded == pytest.approx(left)
        assert run.response == pytest.approx(number * 40.0 / left)  # Little's law
        assert run.number[-1] == np.mean([each.number[-1] for each in parts])
    again = simulate_in_pieces(wanted, store)
    assert fake.linked == 1
    assert again.as_json() == found.as_json()


CHAIN = {"states": [1, 0.5], "transition": [[0.9, 0.1], [0.3, 0.7]], "step": 1}
DRAWN = System(arrivals=[0.5], rates=[[1.0]], availability=[CHAIN])
"""The state at time 0 is drawn."""


def test_pieces_start_from_one_drawn_state_and_go_their_own_ways(fake: Interpreter) -> None:
    """Only the availability of the machine differs, so the pieces share what is drawn first."""
    found = simulate_in_pieces(Wanted(DRAWN, "fcfs", 400.0, 2, 1, pieces=Pieces(2, 20.0)))
    assert max(fake.counts) == 4
    assert len({run.tasks for run in found.replications}) == 2
    assert found.stable


def test_pieces_are_the_same_whichever_were_run_before(fake: Interpreter, tmp_path: Path) -> None:
    wanted = Wanted(DRAWN, "fcfs", 400.0, 3, 1, pieces=Pieces(2, 20.0))
    store = Store(tmp_path / "results.sqlite", anywhere=True)
    simulate_in_pieces(wanted._replace(replications=1), store)
    fake.counts.clear()
    resumed, whole = simulate_in_pieces(wanted, store), simulate_in_pieces(wanted)
    assert (min(filter(None, fake.counts)), max(fake.counts)) == (4, 6)
    assert values(resumed)[0].tolist() == values(whole)[0].tolist()


def test_whole_runs_and_those_in_pieces_are_kept_apart(fake: Interpreter, tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite", anywhere=True)
    wanted = Wanted(load("2.B"), "lpas", 40.0, 2, 1)
    cuts = (Pieces(2, 2.0), Pieces(4, 2.0), Pieces(2, 4.0))
    several = [simulate_in_pieces(wanted._replace(pieces=cut), store) for cut in cuts]
    several.append(simulate("2.B", "lpas", 40.0, 2, on="gpu", store=store))
    assert fake.linked == len(several)
    assert len({each.replications[0].tasks for each in several}) == len(several)


def test_growth_shows_in_pieces(fake: Interpreter) -> None:
    queue = System(arrivals=[3.0], rates=[[1.0]])
    wanted = Wanted(queue, "fcfs", 400.0, 2, 1, pieces=Pieces(4, 20.0))
    assert simulate_in_pieces(wanted).stable is False


@pytest.mark.parametrize(
    ("system", "policy", "options", "words"),
    [
        ("Smith", "mm", {}, "mm is a batch policy; a GPU runs push and pull policies"),
        ("2.B", "mct", {"trace": True}, "a GPU keeps no event log"),
    ],
)
def test_what_stays_on_the_cpu_is_refused(
    system: str, policy: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        simulate(system, policy, 5, 1, on="gpu", **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trace": True}, "a GPU keeps no event log"),
        ({"within": [-1]}, "within"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
        ({"rng": "nonsense"}, "no random generator 'nonsense'"),
        ({"precision": 5}, "precision"),
        ({"horizons": 7}, "horizons"),
    ],
)
def test_what_is_wrong_is_refused_before_a_long_run(
    options: dict[str, Any], words: str, fake: Interpreter
) -> None:
    given: Any = {"horizon": 5, "replications": 2, "on": "gpu", **options}
    with pytest.raises((InputError, TypeError), match=words):
        sweep("2.B", ["mct", "fcfs"], "load", [0.5, 0.6], **given)
    with pytest.raises((InputError, TypeError), match=words):
        compare("2.B", ["mct", "fcfs"], **given)
    assert not fake.starts


def test_percentiles_are_not_known_in_pieces(fake: Interpreter) -> None:
    wanted = Wanted("2.B", "mct", 40.0, 2, 1, tails=True, pieces=Pieces(2, 1.0))
    with pytest.raises(InputError, match="runs in pieces have no percentiles"):
        simulate_in_pieces(wanted)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiler, "cuda", raising=False)
    monkeypatch.setitem(sys.modules, "gridwright.compiler.cuda", None)  # importing it fails
    with pytest.raises(
        InputError, match=r"a GPU needs numba-cuda: pip install 'gridwright\[gpu]'$"
    ):
        device.find_device.__wrapped__()
