"""The leaderboard: its figures add up, and its page is made by the command."""

import json
from pathlib import Path

import numpy as np
import pytest

from gridwright import optimum, random_systems
from gridwright.cli.main import run
from gridwright.report import Leaderboard, leaderboard

POLICIES = ["pas_dg", "fcfs", "met"]


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return leaderboard(
        POLICIES, published=["2.B"], families=["n_model"], random=1, tasks=2000, replications=3
    )


def test_scores_are_ratios_to_the_best_and_to_the_optimum(board: Leaderboard) -> None:
    assert board.suites == ("published", "n_model")
    for suite in board.suites:
        own = [each for each in board.scores if each.suite == suite]
        ranked = [each for each in own if each.stable]
        assert min(each.ratio for each in ranked) == 1
        assert min(each.p99 for each in ranked) == 1
        assert all(np.isnan(each.ratio) for each in own if not each.stable)
    (system,) = random_systems(1, 1, "n_model", loads=(0.3, 0.9))
    least = optimum(system, [], accuracy=1e-3).pull
    assert least is not None
    for each in board.scores:
        assert each.exact
        if each.system == system.name and each.stable:
            assert each.above == pytest.approx(each.mean / least.mean_cost)
            assert each.above > 0.9  # runs of 2,000 tasks are noisy


def test_standings_put_stable_policies_first(board: Leaderboard) -> None:
    found = board.standings()
    assert {each.policy for each in found} == set(POLICIES)
    assert [each.unstable for each in found] == sorted(each.unstable for each in found)
    for each in found:
        own = [s.ratio for s in board.scores if s.policy == each.policy and not np.isnan(s.ratio)]
        if own:
            assert each.mean == pytest.approx(np.exp(np.mean(np.log(own))))
            assert each.worst == max(own)
        assert (each.messages > 0) is (each.policy != "met")  # which asks no machine
        assert each.micros > 0


def test_the_page_states_its_sizes(board: Leaderboard, tmp_path: Path) -> None:
    board.write_page(tmp_path / "page.md", "gridwright research leaderboard --random 1")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert "One command makes this page: `gridwright research leaderboard --random 1`" in page
    assert "2,000 tasks on average" in page
    assert "## Enter your own policy" in page
    assert all(page.count(f"| `{policy}` |") == 3 for policy in POLICIES)


def test_wrong_wishes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["research", "leaderboard", "--tasks", "0"]) == 2
    assert "--tasks" in capsys.readouterr().err
    assert run(["research", "leaderboard", "--trace", str(tmp_path / "none.swf")]) == 2
    assert "none.swf" in capsys.readouterr().err


SWF = "; UnixStartTime: 0\n" + "".join(
    f"{k + 1} {40 * k} 0 {30 + 60 * (k % 3)} 1 -1 -1 1 -1 -1 1 {k % 4} {k % 2} 1 1 {k % 3} -1 -1\n"
    for k in range(60)
)


def test_the_command_replays_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    words = "research leaderboard 2.D --policies fcfs,met --random 0 --tasks 400 --replications 2"
    page = tmp_path / "contest.md"
    assert run([*words.split(), "--trace", str(tmp_path / "log.swf"), "--page", str(page)]) == 0
    assert "--trace log.swf" in page.read_text("utf-8")
    said = capsys.readouterr().out
    assert "fcfs" in said
    assert run([*words.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["suite"] for each in found["scores"]} == {"published"}
    assert found["tasks"] == 400
