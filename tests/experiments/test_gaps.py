"""How far policies are from the optimum on many systems."""

import numpy as np
import pytest

from gridwright.experiments import gaps, random_systems
from gridwright.experiments.gaps import SMALL


def test_gaps_are_those_of_the_optima() -> None:
    found = gaps(3, ["gcmu", "mct"], 2, seed=35, tasks=2000)
    assert len(found.optima) == 3
    gcmu, mct = found.policies
    assert (gcmu.policy, mct.policy) == ("gcmu", "mct")
    known = [each.policies[1].gap for each in found.solved]
    assert mct.mean == pytest.approx(np.nanmean(known))
    assert mct.worst == pytest.approx(np.nanmax(known))
    assert mct.worst_on in {each.system.name for each in found.solved}
    assert found.as_json()["policies"][0]["policy"] == "gcmu"


def test_the_systems_are_small() -> None:
    for system in random_systems(20, seed=3, **SMALL):
        classes, machines = system.shape
        assert 2 <= classes <= 3
        assert 2 <= machines <= 4
