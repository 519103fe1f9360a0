"""What the mechanism of batches promises: bit-identity, common random numbers, theory, books."""

from typing import Any

import numpy as np
import pytest

from gridwright import InputError, System, compare, load, simulate
from gridwright.model.batch_tables import allowances, believed_pmfs, table_of, true_pmfs
from gridwright.policies import BATCH, find, policies
from gridwright.simulation import KINDS, Replication, replicate
from gridwright.simulation.batch import Arrivals
from gridwright.simulation.batch_state import ARRIVAL, COUNT, SERVER, STREAM, TICKET

SEED = np.random.SeedSequence(11)
SHIPPED = [
    name for name, policy in policies().items() if policy.kind is BATCH and policy.is_shipped
]
SMALL = System(
    name="small",
    arrivals=[0.4, 0.5],
    rates=[[0.5, 0.2, 0], [0.1, 0.3, 0.4]],
    availability=[1, 1, 0.8],
    pmf={"width": 0.5, "samples": 60, "scale": [0.3, 1]},
    deadlines={"factor": 2, "best": 2, "discard": "both"},
    batch={"queue_limit": 3},
    assumed={"shift": 0.5, "scale": 0.9, "inaccuracy": {"rates": 0.2}},
)


def same(first: Replication, second: Replication) -> None:
    """Check that two replications are the same to the last bit, time spent aside."""
    for name, one, two in zip(Replication._fields, first, second, strict=True):
        if name == "more":
            assert {k: np.array(v).tolist() for k, v in one.items()} == {
                k: np.array(v).tolist() for k, v in two.items()
            }
        elif name == "trace" and one is not None:
            assert one.tobytes() == two.tobytes()
        elif name not in ("seconds", "trace"):
            assert np.array_equal(one, two, equal_nan=True), name


@pytest.mark.parametrize("name", [*SHIPPED, "moc:joint=false:top=4", "mm:full=counts"])
def test_interpreted_and_compiled_runs_are_bit_identical(name: str) -> None:
    options: dict[str, Any] = {"horizon": 100.0, "warmup": 10.0, "seed": SEED, "trace": True}
    compiled = replicate(SMALL, find(name), **options)
    assert compiled.tasks > 60
    assert compiled.refusals == 0
    same(compiled, replicate(SMALL, find(name), interpreted=True, **options))


@pytest.mark.parametrize("policy", ["mm", "moc"])
def test_the_number_of_threads_does_not_matter(policy: str) -> None:
    one, two = (
        simulate(SMALL, policy, 300, 4, seed=3, threads=threads, trace=True) for threads in (1, 2)
    )
    for first, second in zip(one.replications, two.replications, strict=True):
        same(first, second)


def test_no_field_hides_behind_an_attribute_of_its_record() -> None:
    for dtype in (ARRIVAL, COUNT, SERVER, STREAM, TICKET):
        assert not set(dtype.names or ()) & set(dir(np.record))


def test_policies_meet_the_same_arrivals_and_works() -> None:
    system = System(arrivals=[0.5], rates=[[1.0]], batch={"tasks": 200})
    found = []
    for policy in ("mm", "mect", "moc"):
        trace = replicate(system, find(policy), horizon=1.0, seed=SEED, trace=True).trace
        arrivals = trace[trace["kind"] == 0]
        starts, ends = (
            part[np.argsort(part["task"], kind="stable")]
            for part in (trace[trace["kind"] == kind] for kind in (2, 3))
        )
        found.append((arrivals["time"], (ends["time"] - starts["time"])))
    for times, works in found[1:]:
        assert np.array_equal(times, found[0][0])
        assert works == pytest.approx(found[0][1], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("discard", ["never", "batch", "both"])
@pytest.mark.parametrize("policy", ["mm", "moc", "mect"])
def test_the_books_balance(policy: str, discard: str) -> None:
    system = load("Smith").replace(deadlines={"factor": 2, "discard": discard})
    run = replicate(system, find(policy), horizon=1.0, seed=SEED, trace=True)
    assert run.tasks == 2000
    books = run.more
    parts = [books[name] for name in ("on_time", "late", "discarded", "unfinished")]
    assert sum(parts) == 2000
    if policy == "mect" or discard == "never":
        assert books["discarded"] == 0
    if policy != "moc" or discard != "never":
        assert books["unfinished"] == 0
    for name in ("on_time", "late", "discarded"):
        assert books[f"class_{name}"].sum() == books[name]
    trace = run.trace
    counts = {kind: int((trace["kind"] == k).sum()) for k, kind in enumerate(KINDS)}
    assert counts["arrival"] == 2000
    assert counts["finish"] == books["on_time"] + books["late"] == run.responded.sum()
    assert counts["discard"] == books["discarded"]
    starts, ends = trace[trace["kind"] == 2], trace[trace["kind"] == 3]
    busy = sum(
        ends["time"][ends["machine"] == j].sum() - starts["time"][starts["machine"] == j].sum()
        for j in range(8)
    )
    assert run.utilisation.sum() * books["makespan"] == pytest.approx(busy, rel=1e-9)
    assert books["wasted_work"] <= busy + 1e-6


def test_queues_keep_their_limit_and_their_order() -> None:
    system = load("Smith").replace(batch={"queue_limit": 2, "tasks": 500})
    trace = replicate(system, find("msd"), horizon=1.0, seed=SEED, trace=True).trace
    for j in range(8):
        mine = trace[trace["machine"] == j]
        held = np.cumsum(np.select([mine["kind"] == 1, mine["kind"] == 3], [1, -1], 0))
        assert held.max() == 2
        assert held.min() >= 0
        sent, begun = (mine["task"][mine["kind"] == kind] for kind in (1, 2))
        assert sent.tolist() == begun.tolist()


def test_littles_law() -> None:
    system = SMALL.replace(deadlines=None)
    run = replicate(system, find("mm"), horizon=40_000.0, seed=SEED)
    rate = run.throughput.sum()
    response = np.average(run.response, weights=run.responded)
    assert run.mean_number == pytest.approx(rate * response, rel=0.005)
    assert run.tasks == pytest.approx(0.9 * 40_000, rel=0.03)


@pytest.mark.parametrize("shape", ["exponential", "deterministic", {"kind": "erlang", "stages": 3}])
@pytest.mark.parametrize("policy", ["mm", "mect", "moc"])
def test_one_machine_is_a_queue_of_pollaczek_and_khinchine(policy: str, shape: Any) -> None:
    """In order of arrival, whatever the limit of its queue: an M/G/1 queue with the pmf's times."""
    system = System(arrivals=[0.7], rates=[[1.0]], execution=shape, pmf={"width": 0.05})
    (row,) = true_pmfs(system, np.random.default_rng(0))
    pmf = row[0]
    assert pmf is not None
    rate = 0.7
    waiting = rate * (pmf.variance + pmf.mean**2) / (2 * (1 - rate * pmf.mean))
    found = simulate(system, policy, 40_000, 6, warmup=500, seed=5)
    width = 5 * found.mean_response.half_width / 2.57  # five standard errors
    assert abs(found.mean_response.mean - (waiting + pmf.mean)) < width + 0.01
    assert found.utilisation[0].mean == pytest.approx(rate * pmf.mean, abs=0.02)


def test_a_batch_at_once_of_known_times() -> None:
    """Times of 1 and 5 on one machine: min-min takes the short ones first, max-min the others."""
    system = System(
        arrivals=[1, 1],
        rates=[[1.0], [0.2]],
        execution="deterministic",
        pmf={"width": 1},
        batch={"tasks": 10, "at_once": True, "queue_limit": 10},
    )
    short, long = (
        replicate(system, find(p), horizon=1.0, seed=SEED) for p in ("min_min", "max_min")
    )
    assert short.more["makespan"] == long.more["makespan"]
    ones, fives = short.responded
    assert ones + fives == 10
    assert short.more["makespan"] == ones + 5 * fives
    assert short.response[0] == pytest.approx((ones + 1) / 2)
    assert long.response[1] == pytest.approx(5 * (fives + 1) / 2)
    assert compare(system, ["min_min", "max_min"], replications=4).winner == "min_min"


def test_arrivals_are_the_same_however_they_are_asked_for() -> None:
    system = load("Smith").replace(batch=None)
    rng = np.random.default_rng(3)
    stream = Arrivals(system, rng)
    times = np.concatenate([stream.more()[0]["time"] for _ in range(20)])
    assert (np.diff(times) >= 0).all()
    assert len(times) / times[-1] == pytest.approx(0.1, rel=0.1)
    limited = Arrivals(system.replace(batch={"tasks": 300}), np.random.default_rng(3))
    found, last = [], False
    while not last:
        block, last = limited.more()
        found.append(block)
    whole = np.concatenate(found)
    assert len(whole) == 300
    assert np.array_equal(whole["time"], times[:300])


def test_what_is_believed_of_times() -> None:
    rng = np.random.default_rng(1)
    base = System(arrivals=[1, 1], rates=[[1, 0.5], [0, 1]], pmf={"width": 0.05})
    truth = true_pmfs(base, rng)
    means = table_of(truth).mean
    assert means[1, 0] == np.inf

    def believed(**assumed: Any) -> Any:
        return table_of(believed_pmfs(base.replace(assumed=assumed), truth, rng))

    assert believed(shift=0.5).mean[0] == pytest.approx(means[0] + 0.5)
    assert believed(scale=2).mean[0] == pytest.approx(2 * means[0], rel=1e-6)
    assert believed(rates=[[2, 0.5], [0, 1]]).mean[0, 0] == pytest.approx(means[0, 0] / 2, rel=0.01)
    sure = believed(execution="deterministic")
    assert np.count_nonzero(sure.mass[0, 0]) == 1
    assert sure.mean[0] == pytest.approx(means[0], abs=0.05)
    early = believed(shift=-100.0)
    assert early.mean[0, 0] == pytest.approx(0.05)  # never less than one bin


def test_deadlines() -> None:
    base = System(arrivals=[1, 1], rates=[[1, 0.5, 0.25], [0, 1, 0.1]])
    means = np.array([[1.0, 2.0, 4.0], [np.inf, 1.0, 10.0]])
    rules: dict[str, Any] = {
        "two best": ({"factor": 2, "best": 2}, [3, 11]),
        "more than there are": ({"factor": 1}, [7 / 3, 5.5]),
        "one for all": ({"allowance": 3}, [3, 3]),
        "one each": ({"allowance": [3, 4]}, [3, 4]),
    }
    assert np.isinf(allowances(base, means)).all()
    for rule, expected in rules.values():
        assert allowances(base.replace(deadlines=rule), means) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"failures": {"mean_uptime": 5, "mean_repair": 1}}, "has machines that fail"),
        (
            {"availability": [{"states": [1, 0.5], "transition": [[0, 1], [1, 0]], "step": 1}]},
            "availabilities that change",
        ),
        ({"arrivals": [[1]]}, "has arrivals at machines"),
        ({"pmf": {"width": 1e-9}}, "needs more than 4,096 bins of width 1e-09"),
    ],
)
def test_what_batches_cannot_do(changes: dict[str, Any], message: str) -> None:
    system = System(**{"arrivals": [1], "rates": [[2]], "execution": "deterministic", **changes})
    with pytest.raises(InputError, match=message):
        simulate(system, "mm", 10, 1)


def test_a_traced_run_keeps_its_robustness() -> None:
    run = replicate(SMALL.replace(assumed=None), find("moc"), horizon=400.0, seed=SEED, trace=True)
    moments = run.more["moments"]
    time, rho, counted, expected = moments.T
    assert len(moments) == len(run.times) - 1
    assert np.array_equal(time, run.times[1:])
    assert ((rho >= 0) & (rho <= 1)).all()
    assert (counted >= rho - 1e-12).sum() > len(rho) / 2
    assert (expected <= 9 + 1e-9).all()
    assert expected.mean() > 1
    assert "moments" not in replicate(SMALL, find("moc"), horizon=40.0, seed=SEED).more
