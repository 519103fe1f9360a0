"""Batches from outside: results, comparisons, sweeps, and the published order of policies."""

import json
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, compare, contest, load, simulate, sweep
from gridwright.cli.main import run
from gridwright.experiments import BatchResult, DeadlineResult, Store
from gridwright.experiments.compare import difference

SMITH = load("Smith")
ORDER = ["moc:joint=false", "mm", "mmu", "msd", "mect"]
MODES = {  # of 20 trials, half widths about 30 to 50
    ("both", 2, "counts"): [1395, 1213, 1154, 1106, 162],
    ("both", 2, "leaves"): [1402, 1281, 1258, 1220, 160],
    ("batch", 2, "leaves"): [1371, 954, 748, 551, 160],
    ("never", 2, "leaves"): [1371, 719, 483, 228, 160],
    ("batch", 1, "leaves"): [1003, 244, 138, 178, 45],
    ("never", 1, "leaves"): [1003, 113, 57, 51, 45],
}
SMALL: dict[str, Any] = {"arrivals": [0.5, 0.5], "rates": [[1, 0.5], [0.4, 0.9]]}


@pytest.mark.slow
@pytest.mark.parametrize("setting", MODES, ids=str)
def test_smith(setting: tuple[str, int, str]) -> None:
    """Marginal MOC is best in every setting, the whole order holds at factor 2, and means agree."""
    discard, factor, full = setting
    system = SMITH.replace(deadlines={"factor": factor, "discard": discard})
    names = [f"{name}:full={full}" if name in ("mm", "mmu", "msd") else name for name in ORDER]
    found = compare(system, names, replications=10, seed=7)
    assert found.winner == "moc:joint=false"
    means = [result.figure("on_time").mean for result in found.results]
    if factor == 2:
        assert means == sorted(means, reverse=True)
    for result, known in zip(found.results, MODES[setting], strict=True):
        own = result.figure("on_time")
        spread = np.std(result.values("on_time"), ddof=1) / np.sqrt(10)
        assert abs(own.mean - known) < 4 * np.sqrt(2) * spread, str(result.policy)
    if setting == ("both", 2, "leaves"):  # as mm is by default
        check_the_text_of_moc(system, *found.results[:2])


def check_the_text_of_moc(system: System, marginal: Any, mm: Any) -> None:
    """By the joint probability MOC discards more, and at factor 2 is no better than MM."""
    joint = simulate(system, "moc", replications=10, seed=7)
    assert difference(joint, marginal, "on_time").winner == "moc:joint=false"
    assert difference(joint, mm, "on_time").difference.low > -60


def test_what_a_result_says() -> None:
    result = simulate(SMITH.replace(batch={"tasks": 300}), "moc", replications=3)
    assert type(result) is DeadlineResult
    assert result.stable
    assert result.length == "300 tasks"
    whole = json.loads(json.dumps(result.as_json()))
    for name in ("on_time", "late", "discarded", "wasted_work", "makespan", "on_time_fraction"):
        assert set(whole[name]) == {"mean", "low", "high"}
    shares = [each["on_time"]["mean"] for each in whole["classes"]]
    assert sum(shares) == pytest.approx(whole["on_time"]["mean"])
    assert all(0 <= each["on_time_fraction"]["mean"] <= 1 for each in whole["classes"])


def test_without_deadlines() -> None:
    found = compare(System(**SMALL), ["mm", "moc", "mect", "sufferage"], 3000, 4)
    for result in found.results:
        assert type(result) is BatchResult
        assert result.figure("late").mean == result.figure("discarded").mean == 0
        assert result.stable
    assert found.results[0].criteria[-1] == "mean_response"
    assert found.results[1].mean_response.mean < 2 * found.results[0].mean_response.mean


def test_kept_results_are_the_same(tmp_path: Any) -> None:
    store = Store(tmp_path / "results.sqlite")
    system = SMITH.replace(batch={"tasks": 200})
    first, again = (simulate(system, "mm", replications=2, store=store) for _ in range(2))
    assert first.as_json() == again.as_json()


def test_queue_limits() -> None:
    system = SMITH.replace(deadlines={"factor": 2, "discard": "both"})
    found = sweep(system, ["mm"], "queue_limit", [1, 2, 4, 8], replications=2)
    on_time = [point.results[0].figure("on_time").mean for point in found.points]
    assert on_time == sorted(on_time, reverse=True)  # what waits centrally can still be chosen
    with pytest.raises(InputError, match=r"queue_limit is 0; expected a number ≥ 1"):
        sweep(system, ["mm"], "queue_limit", [0], replications=2)
    with pytest.raises(InputError, match=r"queue_limit is 1.5; expected a whole number"):
        sweep(system, ["mm"], "queue_limit", [1.5], replications=2)


@pytest.mark.slow
def test_wrong_beliefs() -> None:
    system = SMITH.replace(deadlines={"factor": 2, "discard": "batch"})
    found = sweep(system, ["moc"], "assumed.scale", [0.5, 1, 2], replications=2)
    low, right, high = (point.results[0].figure("on_time").mean for point in found.points)
    assert low < right < high  # who fears the worst sheds load that would have been late
    shifted = sweep(system, ["moc"], "assumed.shift", [-40, 0], replications=2)
    assert shifted.points[0].results[0].figure("on_time").mean < right
    assert shifted.points[1].results[0].figure("on_time").mean == right
    words = sweep(
        system, ["moc"], "assumed.execution", ["deterministic", "exponential"], replications=2
    )
    assert words.points[1].results[0].figure("on_time").mean < 0.8 * right
    with pytest.raises(InputError, match="no distribution 'expo'"):
        sweep(system, ["moc"], "assumed.execution", ["expo"], replications=2)


def test_deadline_factors() -> None:
    found = sweep(SMITH, ["mm"], "deadline_factor", [1, 2, 4], replications=3)
    on_time = [point.results[0].figure("on_time").mean for point in found.points]
    assert on_time == sorted(on_time)
    with pytest.raises(InputError, match=r"the system has no \[deadlines\] factor"):
        sweep(System(**SMALL), ["mm"], "deadline_factor", [1], replications=2)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_on_the_command_line(
    command: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.toml"
    System(**SMALL, deadlines={"factor": 2}, batch={"tasks": 100}).to_file(file)
    chosen = ["--policy", "moc"] if command == "simulate" else ["--policies", "moc,mect"]
    arguments = [command, str(file), *chosen, "--replications", "2"]
    picture, table = tmp_path / "p.svg", tmp_path / "p.csv"
    assert run([*arguments, "--plot", str(picture), "--csv", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "2 replications of 100 tasks" in shown
    assert "on time" in shown
    assert picture.exists()
    assert "on_time,on_time_fraction,late,discarded" in table.read_text()
    assert run([*arguments, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    first = whole if command == "simulate" else whole["results"][0]
    assert {"on_time", "late", "discarded"} <= set(first)
    if command == "simulate":
        log = tmp_path / "log.csv"
        assert run([*arguments, "--trace", str(log)]) == 0
        assert log.read_text().startswith("time,event,task,class,machine\n")


def test_batch_policies_are_compared_among_themselves() -> None:
    message = (
        "mm is a batch policy and mct a push policy; they cannot be compared, "
        "since they have different figures"
    )
    with pytest.raises(InputError, match=message):
        compare("2.B", ["mm", "mct"], 10, 2)
    with pytest.raises(InputError, match=message):
        sweep("2.B", ["mm", "mct"], "load", [0.5], 10, 2)


FEW = SMITH.replace(batch={"tasks": 200}, deadlines={"factor": 2})


def test_a_warm_up_after_the_last_task_is_refused() -> None:
    words = r"a run was over at time [\d.]+, and its first 5000 time units do not count: nothing"
    with pytest.raises(InputError, match=words):
        simulate(FEW, "mm", replications=2, warmup=5000)


def test_a_run_in_which_no_task_finishes_has_a_length() -> None:
    found = simulate(FEW.replace(deadlines={"factor": 0.01, "discard": "both"}), "moc", 100, 3)
    assert found.figure("makespan").mean == 0
    assert (found.values("mean_number") >= 0).all()
    assert (found.values("mean_number") <= 200).all()


def test_a_contest_is_not_for_what_is_judged_by_deadlines() -> None:
    with pytest.raises(InputError, match="moc is a batch policy, and a contest compares the mean"):
        contest([FEW], ["moc", "mm"])


def test_precision_is_that_of_what_counts() -> None:
    system = SMITH.replace(batch={"tasks": 400}, deadlines={"factor": 2})
    result = simulate(system, "moc", precision=0.05)
    assert result.figure("on_time").half_width <= 0.05 * result.figure("on_time").mean
    assert len(result.replications) % 10 == 0
