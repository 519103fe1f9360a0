"""The report of ``gridwright demo``: a system, its allocation, policies simulated and for real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ..plots import draw_allocation, draw_results, draw_runs
from .document import made, paragraph, picture, section, table, write_document

if TYPE_CHECKING:
    from ..allocation import Allocation
    from ..experiments import Comparison, Result
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
    words = " ".join(found(comparison, trials))
    yield f"<p><strong>What was found.</strong> {escape(words)}</p>"
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
    words = "" if first.long_run_load is None else f"The long-run load is {first.load_words}."
    rows = [
        (str(each.policy), *(_mean(each, name) for name in MEANS), each.verdict)
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
                "The same, drawn; an unstable policy has no mean, as a longer run has a larger one",
                shows="By policy: means with intervals, classes, and the number over time",
            ),
        ],
    )
    if trials:
        yield section("The same system and policies, for real", _trials(trials))
    yield section("Made with", [made([("seed", str(first.seed))])])


MEANS = ("mean_number", "mean_response")


def _mean(result: Result, name: str) -> str:
    return result.written(name) if result.has_interval(name) else "grows"


def found(comparison: Comparison, trials: Sequence[Trial]) -> list[str]:
    """Say in sentences what the simulations and the runs have shown."""
    lines = [each if each.endswith(".") else f"{each}." for each in comparison.conclusions]
    lines += comparison.statements
    means = [
        (str(run.about["policy"]), run.statistics().overall.response, twin.overall.response)
        for run, twin in trials
    ]
    if means:
        gaps = sorted(100 * (real / simulated - 1) for _, real, simulated in means)
        best, other = (min(means, key=lambda each: each[k])[0] for k in (1, 2))
        agreed = f"{best} was the fastest" if best == other else f"{best}, not {other}, was fastest"
        lines.append(
            f"On real processes {agreed}; mean responses were {gaps[0]:+.0f} % to "
            f"{gaps[-1]:+.0f} % compared with the simulator given the same jobs."
        )
    return lines


def _trials(trials: Sequence[Trial]) -> Iterator[str]:
    run = trials[0][0]
    experiment = run.experiment
    yield paragraph(
        f"{run.system.name} on {len(run.system.machines)} local processes, "
        f"{experiment.duration:g} time units of {experiment.time_unit:g} s, the same jobs for "
        "every policy. The twin is the simulator with the run's own jobs; the gap is what sending "
        "jobs, the operating system and other programs on this computer add. A run this short "
        "tells how near the two worlds are, not which policy is best."
    )
    rows = []
    for each, twin in trials:
        real = each.statistics().overall
        gap = 100 * (real.response / twin.overall.response - 1)
        figures = [f"{real.response:.3f}", f"{twin.overall.response:.3f}", f"{gap:+.1f} %"]
        rows.append([str(each.about["policy"]), f"{real.finished}", *figures])
    heads = ["policy", ">jobs finished", ">mean response", ">of its twin", ">gap"]
    yield table("Policies, for real", heads, rows)
    words = "Every job: its response, where it ended. All runs have one scale."
    yield picture(lambda path: draw_runs([each for each, _ in trials], path), words)
