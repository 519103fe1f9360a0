"""``gridwright demo``: allocation, simulation and real processes in one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .options import option
from .output import console, progress_bar, show, table

if TYPE_CHECKING:
    from ..grid import Mapper, Statistics
    from ..testbed import Run

SYSTEM = "3.A:alpha1:5"
POLICIES = ("fcfs", "gcmu", "lpas_dg")
HORIZON = 1000.0
EXPERIMENT = "MGST-1"
TIME_UNIT = 0.5
DURATION = 20.0


def demo(
    output: Annotated[Path, option("Folder for the report.", "FOLDER")] = Path("gridwright-demo"),
) -> None:
    """Try everything: allocate, simulate and run policies, and write one HTML report."""
    from contextlib import ExitStack
    from tempfile import TemporaryDirectory

    from ..allocation import allocate
    from ..catalogue import load
    from ..experiments import compare
    from ..model import InputError
    from ..report import write_demonstration
    from .allocate import show_allocation
    from .simulate import show_comparison

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}") from None
    out = console()
    allocation = allocate(load(SYSTEM))
    show_allocation(allocation)
    out.print("")
    with progress_bar() as report:
        found = compare(SYSTEM, POLICIES, horizon=HORIZON, replications=10, progress=report)
    show_comparison(found, reference="gcmu")
    with TemporaryDirectory() as folder, ExitStack() as open_runs:
        trials = [_try(policy, Path(folder)) for policy in POLICIES]
        for run, _ in trials:
            open_runs.enter_context(run)
        _show(trials)
        path = output / "report.html"
        write_demonstration(allocation, found, trials, path)
    out.print(f"\nEverything, with pictures: {path}", markup=False)


def _try(policy: str, folder: Path) -> tuple[Run, Statistics]:
    """Run a small experiment on local processes; return it and its simulated twin."""
    from ..testbed import Experiment, conduct, twin

    chosen = Experiment.find(EXPERIMENT, policy=policy, time_unit=TIME_UNIT, duration=DURATION)
    with progress_bar() as report:

        def watch(mapper: Mapper) -> None:
            report(policy, min(mapper.now() / DURATION, 1.0), note="on local processes")

        run = conduct(chosen, path=folder / f"{policy}.sqlite", watch=watch)
    return run, twin(run)


def _show(trials: list[tuple[Run, Statistics]]) -> None:
    out, first = console(), trials[0][0]
    out.print(
        f"\nAnother published system, small enough to run here for real:\n"
        f"[bold]{first.system.name}[/bold] on {len(first.system.machines)} local processes: "
        f"{DURATION:g} time units of {TIME_UNIT:g} s, the same jobs for every policy\n"
    )
    rows = table("policy", ">jobs finished", ">response time", ">of its simulated twin", ">gap")
    for run, simulated in trials:
        real, twin = run.statistics().overall, simulated.overall
        gap = f"{100 * (real.response / twin.response - 1):+.1f} %"
        figures = (f"{real.response:.3f}", f"{twin.response:.3f}", gap)
        rows.add_row(str(run.about["policy"]), str(real.finished), *figures)
    show(out, rows)
