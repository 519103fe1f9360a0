"""``gridwright demo``: allocation, simulation and real processes in one report."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from .allocate import show_allocation
from .options import option
from .output import console, progress_bar, show
from .packages import allocation, experiments, grid, model, report, testbed
from .simulate import show_comparison

POLICIES = ("fcfs", "gcmu", "lpas_dg")
HORIZON = 1000.0
EXPERIMENT = "MGST-2"
TIME_UNIT = 0.5
DURATION = 20.0


def demo(
    output: Annotated[Path, option("Folder for the report.", "FOLDER")] = Path("gridwright-demo"),
) -> None:
    """Try everything: allocate, simulate and run policies, and write one HTML report."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise model.InputError(f"--output {output} cannot be made: {error.strerror}") from None
    out = console()
    system = testbed.Experiment.find(EXPERIMENT).system
    allocated = allocation.allocate(system)
    show_allocation(allocated)
    out.print("")
    with progress_bar() as tell:
        found = experiments.compare(
            system, POLICIES, horizon=HORIZON, replications=10, progress=tell
        )
    show_comparison(found, reference="gcmu")
    with TemporaryDirectory() as folder, ExitStack() as open_runs:
        trials = [_try(policy, Path(folder)) for policy in POLICIES]
        for run, _ in trials:
            open_runs.enter_context(run)
        _show(trials)
        path = output / "report.html"
        report.write_demonstration(allocated, found, trials, path)
    out.print(f"\nEverything, with pictures: {path}", markup=False)


def _try(policy: str, folder: Path) -> tuple[testbed.Run, grid.Statistics]:
    """Run a small experiment on local processes; return it and its simulated twin."""
    chosen = testbed.Experiment.find(
        EXPERIMENT, policy=policy, time_unit=TIME_UNIT, duration=DURATION
    )
    with progress_bar() as tell:

        def watch(mapper: grid.Mapper) -> None:
            tell(policy, min(mapper.now() / DURATION, 1.0), note="on local processes")

        run = testbed.conduct(chosen, path=folder / f"{policy}.sqlite", watch=watch)
    return run, testbed.twin(run)


def _show(trials: list[tuple[testbed.Run, grid.Statistics]]) -> None:
    out, first = console(), trials[0][0]
    out.print(
        "\nThe same system for real: "
        f"[bold]{first.system.name}[/bold] on {len(first.system.machines)} local processes: "
        f"{DURATION:g} time units of {TIME_UNIT:g} s, the same jobs for every policy\n"
    )
    rows = []
    for run, simulated in trials:
        real, twin = run.statistics().overall, simulated.overall
        gap = f"{100 * (real.response / twin.response - 1):+.1f} %"
        figures = (f"{real.response:.3f}", f"{twin.response:.3f}", gap)
        rows.append((str(run.about["policy"]), str(real.finished), *figures))
    show(("policy", ">jobs finished", ">response time", ">of its simulated twin", ">gap"), rows)
