"""Real archives, as they are: every one reads, maps and replays. Skipped where they are not."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gridwright import allocate
from gridwright.traces import (
    JobTrace,
    characterise,
    characterise_failures,
    machines_for,
    outages,
    read_failures,
    read_jobs,
    read_trace,
    replay,
    system_of,
    throughput_system,
    workload,
    write_fta,
    write_gwf,
    write_lanl,
    write_swf,
)
from gridwright.traces.throughput import Throughputs

ARCHIVES = Path(__file__).parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(
    not ARCHIVES.is_dir(), reason="the archives' traces are not in ../shared/traces"
)
DAY = 86400.0
JOBS = {
    # file: rows, rows of no run time, classes, machines, window
    "KTH-SP2-1996-2.1-cln.swf.gz": (27_992, 0, "user:4", "20x2,10x5", (30 * DAY, 33 * DAY)),
    "NASA-iPSC-1993-3.1-cln.swf.gz": (18_239, 173, "executable:4", "6x1,3x4", (3 * DAY, 4 * DAY)),
    "LCG.swf.gz": (188_041, 521, "group:5", "trace:6", (DAY, DAY + 2000)),
    "METACENTRUM-2009-2.swf.gz": (103_656, 3712, "run_time:4", "trace:6", (60 * DAY, 60.5 * DAY)),
    "gwf-sample.gwf": (70, 7, "", "4x1,2x2", (0.0, np.inf)),
}


@cache
def jobs_of(name: str) -> JobTrace:
    return read_jobs(ARCHIVES / name)


def whole(trace: JobTrace, rows: int) -> None:
    assert len(trace) == trace.account.kept == trace.account.rows == rows


@pytest.mark.parametrize("name", JOBS)
def test_a_trace_of_jobs_reads_maps_and_replays(name: str, tmp_path: Path) -> None:
    rows, idle, classes, machines, (start, end) = JOBS[name]
    trace = jobs_of(name)
    whole(trace, rows)
    work = workload(trace, classes, start=start, end=end)
    assert work.account.rows == rows
    assert work.account.skipped["took no time"].count == idle if idle else True
    assert len(work) >= 50
    system = system_of(work, machines_for(work, machines), load=0.8)
    assert allocate(system).load == pytest.approx(0.8)
    run = replay(system, work.jobs(), "gcmu")
    assert run.done.all()
    assert run.figures["mean_slowdown"] >= 1
    part = JobTrace({key: column[:500] for key, column in trace.columns.items()}, trace.header)
    write, ending = (write_gwf, "gwf") if name.endswith("gwf") else (write_swf, "swf")
    write(tmp_path / f"part.{ending}.gz", part)
    assert read_jobs(tmp_path / f"part.{ending}.gz") == part


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "days", "availability"),
    [
        ("LANL-failures-1996-2005.csv.xz", 23_739, 163.2, 0.9985),
        ("fta-event_trace.tab", 43_325, 74.5, 0.9961),  # from a node's first failure to its last
    ],
)
def test_a_failure_trace_reads_maps_and_replays(
    name: str, rows: int, days: float, availability: float, tmp_path: Path
) -> None:
    trace = read_failures(ARCHIVES / name)
    assert trace.account.rows == trace.account.kept == len(trace) == rows
    assert len(trace.nodes) == 3577
    found = characterise_failures(trace)
    assert found.availability == pytest.approx(availability, abs=0.0001)
    assert found.failures().mean_uptime == pytest.approx(days * DAY, rel=0.001)
    assert found.failures().mean_repair == pytest.approx(21_295, rel=0.01)
    bad_day = outages(trace, 6, DAY, nodes="worst")
    assert len(bad_day.faults) > 6
    rng = np.random.default_rng(1)
    jobs = JobTrace({"submit": np.sort(rng.uniform(0, DAY, 200)), "run_time": np.full(200, 2000)})
    work = workload(jobs, "run_time:1")
    run = replay(system_of(work, machines_for(work, "6x1")), work.jobs(), "fcfs", bad_day.faults)
    assert run.done.all()
    assert run.lost > 0
    write = write_lanl if name.startswith("LANL") else write_fta
    write(tmp_path / "again", trace)
    assert read_failures(tmp_path / "again") == trace


def test_throughputs_read_map_and_replay() -> None:
    found = read_trace(ARCHIVES / "gpu-throughputs.csv")
    assert isinstance(found, Throughputs)
    assert found.account.rows == found.account.kept == 83
    system = throughput_system(found)
    assert system.shape == (26, 6)
    trace = jobs_of("gwf-sample.gwf")
    work = workload(trace)
    machines = machines_for(work, str(ARCHIVES / "gpu-throughputs.csv"))
    run = replay(system_of(work, machines), work.jobs(), "lpas_dg")
    assert run.done.all()


def test_the_grid_s_own_machines_are_unlike() -> None:
    found = characterise(jobs_of("LCG.swf.gz"), "group", end=2 * DAY)
    assert found.system.groups[0].count("."), "sites have names"
    assert found.heterogeneity.name == "HiHi"
    assert not found.heterogeneity.consistent
    assert found.dispersion > 10, "a grid's arrivals are no Poisson process"
