"""Random systems by family: what they promise, and the same seed gives the same systems."""

import json
from pathlib import Path

import numpy as np
import pytest

from gridwright import InputError, System, allocate, heterogeneity, random_systems
from gridwright.cli.main import run
from gridwright.experiments import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_drawn_again_and_has_its_loads(family: str) -> None:
    drawn = list(random_systems(4, 7, family, loads=(0.5, 0.6)))
    assert drawn == list(random_systems(6, 7, family, loads=(0.5, 0.6)))[:4]
    assert drawn != list(random_systems(4, 8, family, loads=(0.5, 0.6)))
    assert all(0.5 - 1e-9 <= allocate(system).load <= 0.6 + 1e-9 for system in drawn)
    assert len({system.name for system in drawn}) == 4
    assert all(system.name.endswith(f" 7:{k}") for k, system in enumerate(drawn, start=1))


def test_names_of_the_first_family_stay() -> None:
    assert next(random_systems(1)).name == "random 1:1"
    assert next(random_systems(1, family="w_model")).name == "w_model 1:1"


@pytest.mark.parametrize(
    ("family", "skills"),
    [
        ("n_model", [[1, 1], [0, 1]]),
        ("w_model", [[1, 0], [1, 1], [0, 1]]),
        ("m_model", [[1, 1, 0], [0, 1, 1]]),
    ],
)
def test_models_pool_all_machines(family: str, skills: list[list[int]]) -> None:
    for system in random_systems(5, 3, family):
        assert ((system.rates > 0) == np.array(skills)).all()
        found = allocate(system)
        assert ((found.shares > 1e-9) == (system.rates > 0)).all()
        assert len(found.bottleneck_machines) == system.shape[1]
        assert system.has_costs


def test_sorted_matrices_are_consistent() -> None:
    drawn = {
        family: [heterogeneity(each).consistent for each in random_systems(8, 2, family)]
        for family in ("consistent", "semi_consistent", "inconsistent")
    }
    assert all(drawn["consistent"])
    assert sum(drawn["inconsistent"]) < 4
    for system in random_systems(8, 2, "semi_consistent"):
        assert (np.diff(system.rates[:, ::2], axis=1) <= 0).all()


def test_pools_have_their_skills() -> None:
    for system in random_systems(12, 1, "skills"):
        classes, pools = system.rates.shape
        assert 3 <= classes <= pools <= 6
        assert set((system.rates > 0).sum(axis=0)) <= {1, 2, 3}
        assert set(system.counts) <= set(range(1, 6))


def test_an_unknown_family() -> None:
    with pytest.raises(InputError, match=r"no family 'n-model'; did you mean 'n_model'"):
        next(random_systems(1, family="n-model"))


def test_systems_random(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["systems", "random", "--json"]) == 0
    assert [each["family"] for each in json.loads(capsys.readouterr().out)] == list(FAMILIES)
    draw = ["systems", "random", "--family", "n_model,skills", "--number", "2"]
    assert run([*draw, "--folder", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [
        f"{f} 1:{k}" for f in ("n_model", "skills") for k in (1, 2)
    ]
    assert System.from_file(rows[0]["file"]) == next(random_systems(1, family="n_model"))
    for wrong, message in [
        (["systems", "random", "--number", "2"], "drawing systems needs --family"),
        (["systems", "2.B", "--seed", "2"], "--seed is for 'gridwright systems random'"),
        (["systems", "random", "--toml"], "--folder writes those drawn"),
        (["research", "contest", "2.B", "--family", "skills", "--policies", "pas,mct"], "--random"),
    ]:
        assert run(wrong) == 2
        assert message in capsys.readouterr().err


def test_a_contest_of_families(capsys: pytest.CaptureFixture[str]) -> None:
    words = "research contest --policies pas,mct --random 2 --family n_model,m_model --tasks 300"
    assert run([*words.split(), "--replications", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["system"] for row in found["systems"]][::2] == ["n_model 1:1", "m_model 1:1"]
