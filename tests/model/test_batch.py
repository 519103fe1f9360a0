"""What a system file says of pmfs, deadlines and batches."""

from pathlib import Path
from typing import Any

import pytest

from gridwright.model import InputError, System

TWO: dict[str, Any] = {"arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}
FULL: dict[str, Any] = {
    **TWO,
    "classes": ["render", "encode"],
    "groups": ["fast", "slow"],
    "pmf": {"width": 0.01, "samples": 50, "scale": [0.01, 0.02]},
    "deadlines": {"allowance": [1, 0.5], "discard": "both"},
    "batch": {"queue_limit": 2, "tasks": 100, "at_once": True},
    "assumed": {"scale": 1.5, "shift": -0.02, "execution": {"kind": "gamma", "shape": 2}},
}


@pytest.mark.parametrize(
    "pmf",
    [
        {},
        {"width": 0.02},
        {"samples": 100},
        {"times": [["exponential", {"kind": "uniform", "low": 1, "high": 2}]] * 2},
        {
            "measured": {
                "render": {"fast": [1, 2], "slow": [3]},
                "encode": {"fast": [1], "slow": [2]},
            }
        },
    ],
)
def test_a_file_says_it_all(pmf: dict[str, Any], tmp_path: Path) -> None:
    system = System(**{**FULL, "pmf": pmf})
    system.to_file(tmp_path / "system.toml")
    assert System.from_file(tmp_path / "system.toml") == system
    assert system.replace(arrivals=[1, 2]).pmf == system.pmf
    assert system.believed.assumed is None
    assert hash(system) != hash(System(**TWO))


def test_measured_times_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text(
        "class,machine,time\nrender,fast,1\nrender,slow,3\nrender,fast,2\n"
        "encode,fast,1.5\nencode,slow,2\n"
    )
    (tmp_path / "system.toml").write_text(
        'arrivals = [5, 8]\nrates = [[8, 3], [4, 10]]\nclasses = ["render", "encode"]\n'
        'groups = ["fast", "slow"]\n[pmf]\nwidth = 0.5\nfile = "times.csv"\n'
    )
    system = System.from_file(tmp_path / "system.toml")
    assert system.pmf is not None
    assert system.pmf.measured["render"] == {"fast": (1, 2), "slow": (3,)}
    assert "file" not in system.to_toml()  # the times are part of the system now


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,time\n", "times.csv: the first line is 'class,time'; expected class,machine,time"),
        ("class,machine,time\n1,1\n", "times.csv, line 2: 2 fields; expected class,machine,time"),
        (
            "class,machine,time\n1,1,x\n",
            "times.csv, line 2: the time is 'x'; expected a number > 0",
        ),
        ("class,machine,time\n1,1,-2\n", "the time is '-2'"),
        ("class,machine,time\n", "times.csv has no times"),
        ("class,machine,time\n1,3,2\n", "no machine or group '3'"),
        ("class,machine,time\n1,1,2\n", "no time of class '1' on '2'"),
    ],
)
def test_a_wrong_file_of_times(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text(text)
    (tmp_path / "system.toml").write_text(
        'arrivals = [5, 8]\nrates = [[8, 3], [4, 10]]\n[pmf]\nfile = "times.csv"\n'
    )
    with pytest.raises(InputError) as error:
        System.from_file(tmp_path / "system.toml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deadlines": {"allowance": -3}}, "[deadlines] allowance is -3; expected a number > 0"),
        (
            {"deadlines": {"allowance": [1, 2, 3]}},
            "[deadlines] allowance has 3 entries; expected 2",
        ),
        ({"deadlines": {}}, "give either factor or allowance"),
        ({"deadlines": {"factor": 1, "allowance": 2}}, "give either factor or allowance"),
        ({"deadlines": {"factor": 1, "discard": "no"}}, "expected 'never', 'batch' or 'both'"),
        ({"deadlines": {"factr": 1}}, "unknown key [deadlines] factr; did you mean 'factor'"),
        ({"batch": {"queue_limit": 0}}, "[batch] queue_limit is 0; expected a number ≥ 1"),
        ({"batch": {"tasks": 0}}, "[batch] tasks is 0"),
        ({"batch": {"at_once": True}}, "at_once needs tasks"),
        ({"pmf": {"width": 0}}, "[pmf] width is 0; expected a number > 0"),
        ({"pmf": {"scale": [1, 2]}}, "scale needs samples"),
        ({"pmf": {"samples": 5, "scale": [3, 2]}}, "scale goes down from 3 to 2"),
        ({"pmf": {"samples": 5, "times": [["exponential"]]}}, "samples and times are given"),
        ({"pmf": {"times": [["exponential"] * 2]}}, "[pmf] times has 1 entries; expected 2"),
        ({"pmf": {"times": [["exponential"]] * 2}}, "[pmf] times, row 1 has 1 entries; expected 2"),
        (
            {"pmf": {"times": [[{"kind": "pmf", "values": [1], "probabilities": [0.9]}]]}},
            "the probabilities sum to 0.9; expected 1",
        ),
        ({"pmf": {"file": "nowhere.csv"}}, "nowhere.csv cannot be read"),
        ({"pmf": {"measured": {"a": {}}}}, "no class 'a'"),
        ({"pmf": {"measured": {"1": {"1": []}}}}, "measured has a list without times"),
        ({"assumed": {"scale": 0}}, "[assumed] scale is 0"),
        ({"assumed": {"shift": float("nan")}}, "[assumed] shift is nan"),
        ({"assumed": {"execution": ["exponential"]}}, "[assumed] execution has 1 entries"),
    ],
)
def test_wrong_parts(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        System(**TWO, **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
