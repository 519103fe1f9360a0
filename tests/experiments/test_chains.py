"""Chains through simulate, compare and sweep: results, customers, mistakes, threads."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, compare, simulate, sweep
from gridwright.experiments import ChainResult, Store
from gridwright.policies import CHAIN, policies

SYSTEM = System(
    name="two customers",
    templates=[
        {
            "name": "scan",
            "rate": 0.04,
            "times": [[4, 8, 6], [9, 5, 7]],
            "latency": 25,
            "customer": "bank",
        },
        {
            "name": "sort",
            "rate": 0.05,
            "times": [[12, 10, 14]],
            "latency": 40,
            "customer": "shop",
        },
    ],
    customers=[
        {"name": "bank", "max_share": 0.5, "window": 500},
        {"name": "shop", "max_failures": 1, "window": 500},
    ],
)
POLICIES = [n for n, policy in policies().items() if policy.kind is CHAIN and policy.is_shipped]


def test_a_result_has_jobs_performance_and_customers() -> None:
    result = simulate(SYSTEM, "chain_mct", 2000, 5)
    assert isinstance(result, ChainResult)
    figures = result.figures
    jobs = [figures[name].mean for name in ("ok", "late", "in_progress")]
    assert sum(jobs) * 5 == pytest.approx(result.tasks)
    done = result.values("ok") + result.values("late")
    assert result.values("performance") == pytest.approx(result.values("ok") / done)
    bank, shop = result.customers
    assert (bank.name, shop.name) == ("bank", "shop")
    assert bank.jobs.mean + shop.jobs.mean == pytest.approx(sum(jobs))
    found = json.loads(json.dumps(result.as_json()))
    assert {"ok", "late", "in_progress", "performance", "customers", "adequate"} <= set(found)
    assert set(found["performance"]) == {"mean", "low", "high"}
    assert found["customers"][0]["least_margin"]["mean"] == bank.least_margin.mean


def test_without_customers_all_jobs_are_one_customers() -> None:
    result = simulate("Wisnesky:8", "chain_mct", replications=3)
    assert isinstance(result, ChainResult)
    (every,) = result.customers
    assert every.name == "all"
    assert np.isnan(every.least_margin.mean)
    assert every.failure_share.mean == pytest.approx(result.figures["failure_share"].mean, rel=0.05)


def test_the_same_bytes_with_one_thread_and_two_and_from_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept.sqlite")
    runs = [
        simulate("Wisnesky:8", "chain_rr", 400, 4, threads=threads, store=store)
        for threads in (1, 1, 2)
    ]
    runs[2] = simulate("Wisnesky:8", "chain_rr", 400, 4, threads=2)
    seen: list[Any] = []
    for result in runs:
        shown = result.as_json()
        del shown["seconds"]
        seen.append(shown)
    assert seen[0] == seen[1] == seen[2]
    other = simulate("Wisnesky:8", "chain_rr", 400, 4, seed=2)
    assert other.mean_number != runs[0].mean_number


def test_comparison_goes_by_performance() -> None:
    found = compare("Wisnesky:20", POLICIES, replications=20)
    assert found.winner == "chain_mct"
    assert {d.metric for d in found.differences} == {"ok", "performance"}
    assert found.improvement("chain_rr")["chain_mct"] > 0.1
    assert len({result.tasks for result in found.results}) == 1


def test_performance_by_nodes() -> None:
    found = sweep("Wisnesky:16", ["chain_mct"], "nodes", [4, 16, 64], replications=10)
    means = [row["performance"].mean for row in found.rows()]
    assert means == sorted(means)
    assert means[-1] > 0.95
    assert found.points[2].results[0].system.shape == (20, 64)


@pytest.mark.parametrize("vary", ["perturbation.variation", "perturbation.arrivals", "arrivals"])
def test_what_is_uncertain_can_be_varied(vary: str) -> None:
    found = sweep(SYSTEM, ["chain_mct"], vary, [0.5, 1.0], 500, 3)
    few, many = (point.results[0].mean_number for point in found.points)
    assert few != many


def test_arrivals_and_load_are_scaled() -> None:
    found = sweep(SYSTEM, ["chain_mct"], "load", [0.3, 0.6], 2000, 4)
    few, many = (point.results[0].tasks for point in found.points)
    assert many / few == pytest.approx(2, rel=0.15)
    drawn = sweep("Wisnesky:16", ["chain_mct"], "arrivals", [0.5], replications=4)
    assert drawn.points[0].results[0].tasks / 4 == pytest.approx(95, rel=0.2)


@pytest.mark.parametrize("reading", ["printed", "halved", "mixture"])
@pytest.mark.parametrize("policy", POLICIES)
def test_perturbed_times_keep_their_mean(reading: str, policy: str) -> None:
    template = {"name": "a", "rate": 0.002, "times": [[100], [60]], "latency": 10**6}
    system = System(templates=[template], perturbation={"reading": reading, "variation": 0.5})
    result = simulate(system, policy, 50_000, 8)
    idle = result.mean_waiting.mean + result.mean_queueing.mean
    ran = result.mean_response.mean - idle
    assert ran == pytest.approx(161, rel=0.06)  # and half a tick for each application
    assert result.mean_response.half_width > 0


def test_perturbation_as_printed_at_zero_is_none() -> None:
    plain = simulate(SYSTEM, "chain_mct", 500, 3)
    same = simulate(SYSTEM.replace(perturbation={"variation": 0}), "chain_mct", 500, 3)
    assert plain.figures == same.figures
    other = {"reading": "halved", "variation": 0}
    assert simulate(SYSTEM.replace(perturbation=other), "chain_mct", 500, 3).figures != same.figures


def test_up_times_may_be_perturbed() -> None:
    failing = SYSTEM.replace(failures={"mean_uptime": 100, "mean_repair": 10})
    for policy in POLICIES:
        plain = simulate(failing, policy, 1000, 3)
        assert plain.lost.mean > 0
        wrong = failing.replace(perturbation={"uptimes": 0.5})
        assert simulate(wrong, policy, 1000, 3).mean_number != plain.mean_number


def test_warmup_counts_only_what_comes_after_it() -> None:
    whole, part = (simulate(SYSTEM, "chain_mct", 2000, 4, warmup=w) for w in (0, 1000))
    jobs = [sum(r.figures[k].mean for k in ("ok", "late", "in_progress")) for r in (whole, part)]
    assert jobs[1] / jobs[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("system", "policy", "message"),
    [
        ("Wisnesky:16", "mct", "chains of applications (templates), for policies for chains only"),
        ("Wisnesky:16", "fcfs", "fcfs is a pull policy"),
        ("2.B", "chain_mct", "2.B has no chains of applications (templates)"),
        ("Wisnesky", "chain_mct", "Wisnesky has several cases, name one: Wisnesky:1"),
        ("Wisnesky:16", "chain_rr:by=task", "by is 'task'; expected job or application"),
        ("Wisnesky:16", "chain_mct:order=age", "order is 'age'; expected arrival, oldest_job"),
    ],
)
def test_what_does_not_suit_is_told_in_one_line(system: str, policy: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        simulate(system, policy)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_windows_must_not_be_too_many() -> None:
    with pytest.raises(InputError, match="a window of 500 ticks is too short"):
        simulate(SYSTEM, "chain_mct", 1e10, 1)


OWN = """
from gridwright import chain


@chain(order="oldest_job")
def soonest(job, stage, view):
    "Where the application would be done first (made up)."
    row = view.templates[view.jobs[job].template].first + stage
    best, least = -1, 1e300
    for j in range(len(view.machines)):
        time = view.machines[j].work + view.times[row, j]
        if view.machines[j].up and time < least:
            best, least = j, time
    return best
"""


@pytest.mark.slow
def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "soonest.py"
    file.write_text(OWN)
    found = compare("Wisnesky:16", [str(file), "chain_mct"], replications=5)
    assert found.winner == "soonest"
    file.write_text(OWN.replace("return best", "return 99"))
    with pytest.raises(InputError, match="every answer is impossible; expected a machine"):
        simulate(SYSTEM, str(file), 100, 1)
