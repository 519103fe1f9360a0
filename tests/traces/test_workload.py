"""From traces to workloads, machines and outages: the stated rules, and accounts that add up."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwright import InputError, allocate
from gridwright.testbed import Fault
from gridwright.traces import (
    FailureTrace,
    JobTrace,
    characterise,
    characterise_failures,
    classify,
    machines_for,
    outages,
    read_failures,
    read_jobs,
    read_trace,
    system_of,
    throughput_system,
    workload,
)
from gridwright.traces.trace_file import Account
from gridwright.traces.workload import PROCESSORS, Workload, cluster


@pytest.fixture(scope="module")
def samples() -> Path:
    """The hand-made traces."""
    return Path(__file__).parent / "samples"


def test_jobs_that_cannot_be_replayed_are_accounted_for(samples: Path) -> None:
    trace = read_jobs(samples / "lab.swf")
    found = workload(trace, "user")
    skipped = {why: (each.count, each.first) for why, each in found.account.skipped.items()}
    assert skipped == {
        "part of a job that another row sums up": (1, ["line 14"]),
        "run time unknown": (1, ["line 11"]),
        "took no time": (1, ["line 10"]),
    }
    assert found.account.rows == 10
    assert found.account.kept == len(found) == 7
    assert found.times.tolist() == [0, 15, 15, 120, 130, 200, 260]


def test_the_rule_for_jobs_on_several_processors(samples: Path) -> None:
    trace = read_jobs(samples / "lab.swf")
    assert workload(trace).works.tolist() == [40, 60, 1000, 35, 2800, 90, 450]
    assert workload(trace, processors="ignore").works.tolist() == [40, 60, 500, 35, 700, 90, 450]
    single = workload(trace, processors="single")
    assert single.works.tolist() == [40, 60, 35, 90, 450]
    assert single.account.skipped["on several processors"].count == 2
    with pytest.raises(InputError, match="processors is 'all'; expected times, ignore, single"):
        workload(trace, processors="all")


def test_a_job_of_unknown_size_has_one_processor_and_that_is_said() -> None:
    trace = JobTrace({"submit": [0, 1], "run_time": [5, 6], "processors": [-1, 2]})
    found = workload(trace, "run_time:1")
    assert found.works.tolist() == [5, 12]
    assert found.account.notes == ["1 jobs without a number of processors count as using 1"]


def test_a_window_and_a_scale(samples: Path) -> None:
    trace = read_jobs(samples / "lab.swf")
    found = workload(trace, "group", start=100, end=250, scale=0.5)
    assert found.times.tolist() == [10, 15, 50]
    assert found.length == 75
    assert found.account.skipped["outside the window"].count == 4
    for start, end in ((250, 100), (1e6, 2e6)):
        with pytest.raises(InputError, match=r"an end after the start|no job of the trace can be"):
            workload(trace, start=start, end=end)
    with pytest.raises(InputError, match="starts 1 h before the first submission"):
        workload(trace, start=-3600)
    with pytest.raises(InputError, match="scale is 0; expected a number from 1e-12 to"):
        workload(trace, scale=0)


@pytest.mark.parametrize("processors", PROCESSORS)
def test_what_is_left_out_does_not_move_the_window(processors: str) -> None:
    trace = JobTrace(
        {
            "submit": [5, *range(105, 305, 10)],
            "run_time": [0, *[30] * 20],
            "processors": [1, 2, *[1] * 19],
        }
    )
    assert trace.first_submission == 5
    found = workload(trace, "run_time:1", processors=processors, start=150, end=200)
    assert found.times.tolist() == [0, 10, 20, 30, 40]


def test_jobs_are_replayed_in_the_order_of_their_submission(samples: Path) -> None:
    found = workload(read_jobs(samples / "workflow.gwf"))
    assert found.times.tolist() == [0, 5, 20, 20, 22]
    assert found.works.tolist() == [20, 15, 35, 20, 80]
    assert found.account.notes[-1].endswith("order of submission; they were sorted")


def test_classes_by_label(samples: Path) -> None:
    trace = read_jobs(samples / "lab.swf")
    names, codes = classify(trace, "user")
    assert names == ("user 3", "user 1", "user 2")
    names, codes = classify(trace, "executable:1")
    assert names == ("others",)
    assert not codes.any()
    assert classify(trace, "partition")[0] == ("window.lab", "door.lab", "partition -1")
    assert classify(trace)[0] == ("group 1", "group 2")
    with pytest.raises(InputError, match="does not give the queue of its jobs; it gives user,"):
        classify(trace, "queue")
    with pytest.raises(InputError, match="cannot form classes by 'usr'; did you mean 'user'"):
        classify(trace, "usr")
    with pytest.raises(InputError, match="the number of classes is '0'; expected 1"):
        classify(trace, "user:0")


def test_names_are_printable_and_differ() -> None:
    trace = JobTrace({"run_time": [1] * 3, "user": ["a\x00", "a\x01", "b\udc80"]})
    names, _ = classify(trace, "user")
    assert sorted(names) == ["user a?", "user a? (2)", "user b?"]


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-10, 10), min_size=1, max_size=40),
    most=st.integers(1, 6),
)
def test_clusters_are_intervals_in_order(values: list[float], most: int) -> None:
    data = np.array(values)
    codes = cluster(data, most)
    assert codes.min() == 0
    assert codes.max() < most
    assert set(codes.tolist()) == set(range(int(codes.max()) + 1)), "none is empty"
    order = np.argsort(data, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    shuffled = np.random.default_rng(1).permutation(len(data))
    assert cluster(data[shuffled], most).tolist() == codes[shuffled].tolist()


def test_clusters_are_found() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, 300)
    codes = cluster(truth * 10 + rng.normal(0, 1, 300), 3)
    assert codes.tolist() == truth.tolist()


def test_machines_of_given_speeds(samples: Path) -> None:
    work = workload(read_jobs(samples / "lab.swf"), "group")
    found = machines_for(work, "4x1, 2x2.5,3")
    assert found.groups == ("speed 1", "speed 2.5", "speed 3")
    assert found.counts == (4, 2, 1)
    system = system_of(work, found)
    assert system.nominal[0].tolist() == pytest.approx(
        [1 / work.means[0]] * 4 + [2.5 / work.means[0]] * 2 + [3 / work.means[0]]
    )
    assert system.arrival_rates.tolist() == (np.bincount(work.task_classes) / work.length).tolist()
    with pytest.raises(InputError, match=r"expected machines such as 4x2\.5"):
        machines_for(work, "0x3")


def test_machines_of_the_trace(samples: Path) -> None:
    work = workload(read_jobs(samples / "lab.swf"), "user")
    found = machines_for(work)
    assert found.groups == ("window.lab", "door.lab")
    system = system_of(work, found)
    assert allocate(system).load == pytest.approx(0.8)
    assert allocate(system_of(work, found, load=0.5)).load == pytest.approx(0.5)
    with pytest.raises(InputError, match="a load of -1"):
        system_of(work, found, load=-1)
    with pytest.raises(InputError, match="trace:x; expected a number of machines"):
        machines_for(work, "trace:x")


def test_partitions_that_ran_a_class_faster_are_faster_for_it() -> None:
    rng = np.random.default_rng(3)
    place, kind = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    mean = np.array([[10.0, 40.0], [40.0, 10.0]])[kind, place]
    trace = JobTrace(
        {
            "submit": np.arange(4000),
            "run_time": rng.exponential(mean) + 0.01,
            "user": kind,
            "partition": place + 1,
        }
    )
    work = workload(trace, "user")
    found = machines_for(work, "trace")
    order = np.argsort(found.groups)
    ratio = (found.speeds[:, order][:, 0] / found.speeds[:, order][:, 1]).tolist()
    expected = [4.0, 0.25] if work.classes[0] == "user 0" else [0.25, 4.0]
    assert ratio == pytest.approx(expected, rel=0.2)


def test_machines_of_a_matrix(samples: Path) -> None:
    trace = read_jobs(samples / "lab.swf")
    work = workload(trace, "user")
    found = machines_for(work, str(samples / "throughputs.csv"))
    assert found.groups == ("old", "new")
    assert found.speeds[0].tolist() == pytest.approx([4.5 / 12.25, 20 / 12.25])
    assert machines_for(work, "MGST.HiHi:1").speeds.shape == (3, 6)
    with pytest.raises(InputError, match="form fewer, for example with --classes user:2"):
        machines_for(work, "2.B")
    with pytest.raises(InputError, match="expected a table of throughputs, or a system"):
        machines_for(work, str(samples / "lab.swf"))


def test_a_trace_without_partitions_has_machines_enough() -> None:
    trace = JobTrace({"submit": np.arange(100) * 10, "run_time": np.full(100, 40.0)})
    work = workload(trace)
    found = machines_for(work)
    assert found.counts == (6,)
    assert allocate(system_of(work, found)).load == pytest.approx(0.673, abs=0.01)
    with pytest.raises(InputError, match="does not say on which machines its jobs ran"):
        machines_for(work, "trace")


def test_times_down_that_overlap_are_one(samples: Path) -> None:
    trace = read_failures(samples / "event_trace.tab")
    node, start, end = trace.down()
    assert list(zip(node.tolist(), start.tolist(), end.tolist(), strict=True)) == [
        (0, 1300, 1360),
        (1, 1100, 1200),
        (1, 1700, 1900),
    ]
    up, down = trace.spells()
    assert up.tolist() == [500]
    assert down.tolist() == [60, 100, 200]


def test_outages_are_those_of_nodes(samples: Path) -> None:
    trace = read_failures(samples / "event_trace.tab")
    found = outages(trace, 3, 1000, start=1000)
    assert found.nodes == ("11", "12", "13")
    assert found.faults == (Fault(1, 100, 200), Fault(0, 300, 360), Fault(1, 700, 900))
    assert outages(trace, 1, 100, start=1150).faults == (), "node 11 is spread over all"
    worst = outages(trace, 1, 100, start=1150, nodes="worst")
    assert worst.nodes == ("12",)
    assert worst.faults == (Fault(0, 0, 50),)
    assert outages(trace, 3, 500, start=1000, scale=0.5).faults == (
        Fault(1, 50, 100),
        Fault(0, 150, 180),
        Fault(1, 350, 450),
    )
    assert outages(trace, 3, 300).start == 1100, "two begin in the 300 s from there"
    with pytest.raises(InputError, match=r"covers 3 nodes in the 100 s from .*, for 4 machines"):
        outages(trace, 4, 100, start=1150)
    with pytest.raises(InputError, match="nodes is 'best'; expected spread or worst"):
        outages(trace, 1, 100, nodes="best")


def test_a_laboratory_s_nodes_are_there_as_long_as_their_system(samples: Path) -> None:
    trace = read_failures(samples / "failures.csv")
    assert trace.nodes == ("7.0", "7.1", "8.0")
    assert trace.seen[0].tolist() == trace.seen[1].tolist()
    assert len(trace.down()[0]) == 3, "two overlap, one takes no time"


def test_what_a_trace_is_like(samples: Path) -> None:
    found = characterise(read_jobs(samples / "lab.swf"), "user", name="lab")
    assert found.work.mean == pytest.approx(np.mean([40, 60, 1000, 35, 2800, 90, 450]))
    assert sum(each.jobs for each in found.classes) == 7
    assert sum(each.share for each in found.classes) == pytest.approx(1)
    assert found.system.name == "lab"
    assert found.as_json()["load"] == pytest.approx(0.8)


def test_what_failures_are_like(samples: Path) -> None:
    found = characterise_failures(read_failures(samples / "event_trace.tab"))
    assert (found.nodes, found.down, found.most) == (3, 3, 2)
    assert found.availability == pytest.approx(2640 / 3000)
    assert found.failures().mean_uptime == pytest.approx(2640 / 3)
    assert found.failures().mean_repair == pytest.approx(120)
    assert found.up.mean == 500, "only one time up is between two failures"


def test_every_time_up_counts_and_a_failure_only_where_it_was_seen_to_begin() -> None:
    once = FailureTrace(["a", "a"], [0, 60], [60, 100], [True, False])
    assert characterise_failures(once).mean_uptime == 60
    assert characterise_failures(once).failures().mean_uptime == 60
    down_first = FailureTrace(["a"] * 3, [0, 10, 90], [10, 90, 100], [False, True, False])
    assert characterise_failures(down_first).mean_uptime == 80
    for periods in (FailureTrace(["a"], [0], [9], [True]), FailureTrace(["a"], [0], [9], [False])):
        with pytest.raises(InputError, match="has no failure of a node that was up before"):
            characterise_failures(periods).failures()


def test_the_mean_time_up_is_found_though_most_of_it_is_seen_in_part() -> None:
    rng = np.random.default_rng(4)
    names, start, end, up = [], [], [], []
    for node in range(2000):
        at = 0.0
        while at < 150:
            for mean, state in ((100.0, True), (5.0, False)):
                until = min(at + rng.exponential(mean), 150.0)
                names.append(str(node))
                start.append(at)
                end.append(until)
                up.append(state)
                at = until
    found = characterise_failures(FailureTrace(names, start, end, up))
    assert found.mean_uptime == pytest.approx(100, rel=0.05)
    assert found.up.mean < 60, "those seen whole are the short ones"


def test_a_system_of_throughputs(samples: Path) -> None:
    found = read_trace(samples / "throughputs.csv")
    system = throughput_system(found)  # type: ignore[arg-type]
    assert system.classes == ("vision (small)", "vision (large)", "speech")
    assert system.groups == ("old", "new")
    assert allocate(system).load == pytest.approx(0.8)
    four = throughput_system(found, devices=4)  # type: ignore[arg-type]
    assert (four.classes, four.groups) == (("speech",), ("old",))
    with pytest.raises(InputError, match="no job type uses 3 devices; there are types with 1, 4"):
        throughput_system(found, devices=3)  # type: ignore[arg-type]


def test_the_speeds_of_a_trace_do_not_depend_on_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    works = rng.lognormal(3, 1, 400)
    places = rng.integers(0, 4, 400).astype(str).astype(object)
    kinds = rng.integers(0, 2, 400)
    work = Workload(np.arange(400.0), kinds, works, places, ("a", "b"), 400.0, Account())
    found = machines_for(work, "trace:4").speeds
    for neighbour in (-np.inf, np.inf):  # another library's logarithms end in another digit
        log = np.log
        monkeypatch.setattr(np, "log", lambda x, n=neighbour, log=log: np.nextafter(log(x), n))
        assert (machines_for(work, "trace:4").speeds == found).all()
        monkeypatch.setattr(np, "log", log)
