"""First published cells, through simulate: the intervals overlap, or the printed rounding fits."""

from typing import Any

import pytest

from gridwright import simulate
from gridwright.catalogue import results, results_of

OURS = {
    "MCT": "mct",
    "LPAS": "lpas",
    "KPB": "kpb",
    "FCFS": "fcfs",
    "Gcmu": "gcmu",
    "LPAS_DG": "lpas_dg",
    "LPAS_DG_mod": "lpas_dg:planner=grouped",
}
CHAPTER_2 = [
    cell
    for system in ("2.D", "2.E", "2.C1", "2.H")
    for cell in results(src="A", table="2.1", system=system)
]
CHAPTER_3 = [
    (name, cell)
    for name in ("3.A:alpha1:3", "3.A:alpha1:5", "3.B:alpha2:1", "3.E:alpha2:1")
    for cell in results_of(name)
    if cell["metric"] == "W_mean" and cell["src"] == "A"
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", CHAPTER_2, ids=lambda c: f"{c['system']}-{c['policy']}-{c.get('kbar', '')}"
)
def test_mean_numbers_of_table_2_1(cell: dict[str, Any]) -> None:
    policy = OURS[str(cell["policy"])] + (f":k={cell['kbar']}" if "kbar" in cell else "")
    found = simulate(str(cell["system"]), policy, replications=10)
    assert found.mean_number.overlaps(cell["lo"], cell["hi"]), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cell"), CHAPTER_3, ids=[f"{n}-{c['policy']}-{c['table']}" for n, c in CHAPTER_3]
)
def test_mean_responses_of_chapter_3(name: str, cell: dict[str, Any]) -> None:
    policy = OURS[str(cell["policy"])]
    if "status" in cell:
        assert cell["status"] in ("unstable", "blank")
        assert simulate(name, policy, 3000, 4).stable is False
        return
    found = simulate(name, policy, 4000, 6).mean_response
    printed = cell["value"]
    slack = 0.005 + printed * cell.get("rel_acc_pct", 0) / 100
    assert found.overlaps(printed - slack, printed + slack), found
