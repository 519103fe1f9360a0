"""The report of ``gridwright demo``: a system, its allocation, policies simulated and for real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..plots import draw_allocation, draw_results, draw_run
from .document import made, paragraph, picture, section, table, write_document

if TYPE_CHECKING:
    from ..allocation import Allocation
    from ..experiments import Comparison
    from ..grid import Statistics
    from ..testbed import Run

Trial = tuple["Run", "Statistics"]
"""A run on real machines, and what its simulated twin came to."""


def write_demonstration(
    allocation: Allocation, comparison: Comparison, trials: Sequence[Trial], path: Path
) -> None:
    """Write what the demonstration has found as one HTML file."""
    parts = _parts(allocation, comparison, trials)
    write_document(path, "Gridwright: from a system to real machines", parts)


def _parts(
    allocation: Allocation, comparison: Comparison, trials: Sequence[Trial]
) -> Iterator[str]:
    system = allocation.system
    yield section(
        f"The allocation of {system.name}",
        [
            paragraph(
                f"{len(system.classes)} classes of tasks on {len(system.machines)} unequal "
                f"machines. Capacity λ* = {allocation.capacity:.4f}: arrivals could be that many "
                f"times as frequent before no policy at all could keep up; the load is "
                f"{100 * allocation.load:.1f} %. White cells are pairs that a good policy avoids."
            ),
            picture(
                lambda path: draw_allocation(allocation, path),
                "Who serves whom",
                shows="The allocation of every class to every machine: white is never",
            ),
        ],
    )
    first = comparison.results[0]
    load = first.long_run_load
    words = "" if load is None else f"The long-run load, failures included, is {100 * load:.1f} %."
    rows = [
        (str(each.policy), each.written("mean_number"), each.written("mean_response"), each.verdict)
        for each in comparison.results
    ]
    heads = ["policy", ">tasks in the system", ">mean response", "stability"]
    yield section(
        "Policies, simulated",
        [
            paragraph(
                f"{len(first.replications)} replications of {first.length}, seed {first.seed}, "
                f"the same random numbers for every policy; 95 % intervals. {words}"
            ),
            table("Policies, simulated", heads, rows),
            *map(paragraph, comparison.conclusions),
            picture(
                lambda path: draw_results(comparison.results, path),
                "The same, drawn",
                shows="By policy: means with intervals, classes, and the number over time",
            ),
        ],
    )
    if trials:
        yield section("The same policies, for real", _trials(trials))
    yield section("Made with", [made([("seed", str(first.seed))])])


def _trials(trials: Sequence[Trial]) -> Iterator[str]:
    run = trials[0][0]
    experiment = run.experiment
    yield paragraph(
        f"{run.system.name} on {len(run.system.machines)} local processes, "
        f"{experiment.duration:g} time units of {experiment.time_unit:g} s, the same jobs for "
        "every policy. The twin is the simulator with the run's own jobs. A run this short tells "
        "how near the two worlds are, not which policy is best."
    )
    rows = []
    for each, twin in trials:
        real = each.statistics().overall
        gap = 100 * (real.response / twin.overall.response - 1)
        figures = [f"{real.response:.3f}", f"{twin.overall.response:.3f}", f"{gap:+.1f} %"]
        rows.append([str(each.about["policy"]), f"{real.finished}", *figures])
    heads = ["policy", ">jobs finished", ">mean response", ">of its twin", ">gap"]
    yield table("Policies, for real", heads, rows)
    for each, _ in trials:
        words = f"Every job under {each.about['policy']}: its response, where it ended"
        yield picture(lambda path, run=each: draw_run(run, path), words)  # type: ignore[misc]
