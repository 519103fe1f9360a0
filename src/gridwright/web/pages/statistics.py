"""Statistics of runs: charts first, then tables; and runs beside their simulated twins."""

from collections.abc import Callable
from html import escape
from typing import Any

from nicegui import run as background
from nicegui import ui

from ...grid import Statistics, statistics
from ...grid.journal_queries import Figures
from ...model import InputError
from ...testbed import Overview, Run, actual_rates, job_lengths
from ...testbed.twin import TWINS, UNEXPLAINED
from ..documents import plain
from ..run_figures import READ, Figure, Rows, RunFigures, compared, figures_of, waterfall
from ..runs import path_of
from ..services import Services
from ..tasks import ReportTask, kept_report
from .charts import make_chart
from .frame import errors_shown, figure, frame, heading, html_table, read_journal, run_number, tell
from .gantt import Gantt
from .run_charts import (
    compared_chart,
    figure_card,
    passed,
    response_chart,
    run_title,
    table_card,
    utilisation_chart,
    waterfall_chart,
)
from .runs import RunList, began_at

MOST_COMPARED = 8
MOST_ACTIONS = 200
Table = tuple[str, list[str], list[list[str]], Figure]
"""Title, heads and rows as shown, and its numbers to download."""
FIGURES = ("waiting", "communication", "execution", "notification", "response")


def statistics_page(services: Services) -> None:
    """List the runs."""
    with frame("Statistics"):
        RunList(services, "/statistics", "No runs yet: start one on the page Run.")
        chosen = ui.select([], label="Compare runs", multiple=True).classes("w-96 max-w-full")
        place = ui.column().classes("w-full")

        async def offer() -> None:
            known = {
                each.run: f"run {each.run}: {each.name or each.system}, {each.policy}"
                for each in await background.io_bound(services.runs.all) or []
            }
            chosen.set_options(known)
            chosen.set_visibility(len(known) > 1)

        chosen.props("use-chips").on_value_change(lambda: _compare(chosen.value or [], place))
        chosen.set_visibility(False)
        ui.timer(0.1, offer, once=True)


async def _compare(numbers: list[int], place: ui.column) -> None:
    """Compare runs, class by class."""
    found: dict[int, Statistics] = {}
    for number in sorted(numbers)[:MOST_COMPARED]:
        with errors_shown():
            read = await read_journal(number, statistics)
            if read is not None:
                found[number] = read
    names = dict.fromkeys(name for each in found.values() for name in each.classes)
    rows = [
        [name, *(_response(each.classes.get(name)) for each in found.values())] for name in names
    ]
    rows.append(["all", *(_response(each.overall) for each in found.values())])
    place.clear()
    with place:
        if found:
            heads = ["class", *(f"run {number}" for number in found)]
            html_table("Mean response in time units (jobs finished)", heads, rows)


def _response(figures: Figures | None) -> str:
    return "" if figures is None else f"{figure(figures.response) or '–'} ({figures.finished:,})"


def one_page(services: Services, number: str) -> None:
    """Show the statistics of a run."""
    known = run_number(number)
    with frame("Statistics"):
        ui.link("All runs", "/statistics")
        if known is None or not path_of(known).is_file():
            ui.label(f"There is no run {number[:40]}.")
            return
        _one_run(services, known)


def _one_run(services: Services, number: int) -> None:
    """Read a run's journal, and show it."""
    parts: list[str] = []
    with ui.column().classes("w-full gap-4") as place:
        words = ui.label(f"Run {number} is being read.").props("role=status")
        bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress of reading"')

    def look() -> None:
        if parts and not words.is_deleted:  # the page may have been left
            k = READ.index(parts[-1])
            words.text = f"Run {number} is being read: {parts[-1]}, part {k + 1} of {len(READ)}"
            bar.value = k / len(READ)

    async def read() -> None:
        found = await background.io_bound(services.runs.find, number)
        try:
            read = await background.io_bound(_read, number, parts.append)
        except InputError as error:
            read = None
            wrong = str(error)
        else:
            wrong = ""
        looking.cancel()
        place.clear()
        if found is None:  # it was just deleted, or the server is shutting down
            return
        with place:
            if read is None:
                _head(found)
                ui.label(wrong)
                return
            figures, tables, kept = read
            said = _head(found, found_in_short(figures, kept))
            _show_figures(found, figures)
            show_gap(services, found, figures, kept, said)
            for title, heads, rows, data in tables:
                table_card(title, found, heads, rows, data, NOTES[data.name])

    looking = ui.timer(0.3, look)
    ui.timer(0.01, read, once=True)


def _head(found: Overview, words: str = "") -> ui.label:
    """Show what the run is and what it has found; return the label of the latter."""
    heading(run_title(found))
    said = ui.label(words).classes("font-bold")
    length = f"{passed(found)} time units of {found.time_unit:g} s"
    ui.label(f"Began {began_at(found)}; {length}; {found.state}")
    with ui.row().classes("gap-4"):
        ui.link("Export as CSV (zip)", f"/api/runs/{found.run}/export").props("download")
        name = f"run-{found.run}.json"
        ui.link("Export as JSON", f"/api/runs/{found.run}").props(f"download={name}")
        ui.link("Watch", f"/run/{found.run}")
    return said


def _read(
    number: int, note: Callable[[str], None]
) -> tuple[RunFigures, list[Table], dict[str, Any] | None]:
    """Read figures and tables from a journal, which may be long, and the twin if it was kept."""
    with Run.find(number) as run:
        figures = figures_of(run, note)
        note("classes")
        classes = _classes(run)
        note("rates")
        return figures, [classes, _rates(run)], kept_report(number)


BATCHES = "Lines are 95 % intervals from batches of successive jobs; few jobs have none."
GROWS = "Jobs pile up: responses grow for as long as it runs, so they have no intervals."
UTILISATION = (
    "Lost: attempts that did not finish. Taken away: by an operator. Paused: by an operator, "
    "without a job."
)
COARSE = "The run is long: each stretch shows what the machine did for most of it."


def found_in_short(figures: RunFigures, kept: dict[str, Any] | None) -> str:
    """Say in a sentence or two what a run has found, and how far it is from its twin."""
    _, finished, mean, *_ = figures.responses.rows[-1]
    if mean is None:
        return "No job has finished yet."
    words = f"{finished:,} jobs finished, with a mean response of {figure(mean)} time units"
    words += ", and jobs pile up." if figures.grows else "."
    relative = None if kept is None else kept["gap"]["relative"]
    if kept is None or relative is None:
        return words
    causes = kept["gap"]["shares"]
    most = f"; {_largest(causes)}" if causes else ""
    return f"{words} That is {times_the_twin(relative)}{most}."


def _largest(causes: dict[str, float]) -> str:
    """Name the largest cause of the difference between a run and its twin.

    >>> _largest({"failures": -2.0, "overhead": 1.0})
    'the largest cause is failures'
    >>> _largest({"failures": 0.1, UNEXPLAINED: 0.2})
    'the largest part of the difference is unexplained'
    """
    most = max(causes, key=lambda name: abs(causes[name]))
    if most == UNEXPLAINED:
        return "the largest part of the difference is unexplained"
    return f"the largest cause is {most}"


def times_the_twin(relative: float) -> str:
    """Say how a mean response compares with that of the twin.

    >>> times_the_twin(10.16)
    '11.2 times that of the simulated twin'
    >>> times_the_twin(-0.2)
    '20.0 % below that of the simulated twin'
    """
    whose = "that of the simulated twin"
    if relative >= 1:
        return f"{1 + relative:.3g} times {whose}"
    return f"{100 * abs(relative):.1f} % {'above' if relative >= 0 else 'below'} {whose}"


def _show_figures(run: Overview, found: RunFigures) -> None:
    overall = found.responses.rows[-1]
    busy = [row[1] + row[2] for row in found.utilisation.rows]
    mean = figure(overall[2]) or "unknown"
    spread = ""
    if overall[2] is not None:
        half, most, nearly_all = map(figure, overall[5:8])
        spread = f", half below {half}, 95 % below {most}, 99 % below {nearly_all}"
    words = f"All classes: mean response {mean} time units{spread}. "
    words += GROWS if found.grows else BATCHES
    with ui.element("div").classes("w-full grid lg:grid-cols-2 gap-4"):
        figure_card(
            *("Response by class", words, run, found.responses),
            lambda: make_chart(response_chart(found.responses)).classes("h-72"),
        )
        words = f"Machines ran jobs for {100 * sum(busy) / max(len(busy), 1):.0f} % of the time. "
        words += UTILISATION
        figure_card(
            *("Utilisation", words, run, found.utilisation),
            lambda: make_chart(utilisation_chart(found.utilisation)).classes("h-72"),
        )

    def gantt() -> Gantt:
        made = Gantt("Gantt chart of the whole run")
        made.show(found.machines, found.classes, found.spans, 0.0, found.until)
        return made

    words = f"{len(found.timeline.rows):,} attempts to run jobs. {COARSE if found.coarse else ''}"
    figure_card("The whole run", words, run, found.timeline, gantt)


def _classes(run: Run) -> Table:
    found, rates, lengths = run.statistics(), run.system.arrival_rates, job_lengths(run)
    heads = ["class", "jobs", "finished", "unfinished", "lost", "timed out", "arrivals desired"]
    heads += ["arrivals actual", "length desired", "length actual", *FIGURES]
    rows: Rows = []
    named = [*found.classes.items(), ("all", found.overall)]
    for (name, each), rate in zip(named, [*rates, rates.sum()], strict=True):
        counts = (each.arrived, each.finished, each.unfinished, each.lost, each.timed_out)
        means = [getattr(each, key) for key in FIGURES]
        rows.append([name, *counts, float(rate), each.arrival_rate, 1, lengths[name], *means])
    title = (
        "By class (times in time units, arrivals in jobs per time unit, lengths of jobs as shares "
        "of the mean)"
    )
    return title, heads, _shown(rows), Figure("classes", heads, rows)


def _shown(rows: Rows) -> list[list[str]]:
    """Write the cells of a table."""
    return [[each if isinstance(each, str) else figure(each) for each in row] for row in rows]


def _rates(run: Run) -> Table:
    actual = actual_rates(run)
    names = list(run.about["machines"])
    shown, rows = [], []
    for name, desired, found in zip(run.system.classes, run.system.effective, actual, strict=True):
        pairs = list(zip(map(float, desired), map(float, found), strict=True))
        shown.append([name, *(f"{want:.4g} / {figure(got) or '–'}" for want, got in pairs)])
        rows += [[name, machine, *pair] for machine, pair in zip(names, pairs, strict=True)]
    data = Figure("rates", ["class", "machine", "desired", "actual"], rows)
    return "Execution rates in jobs per time unit: desired / actual", ["class", *names], shown, data


NOTES = {
    "classes": "The response ends when the job does: notification comes after it.",
    "rates": (
        "Actual rates count jobs by their lengths. The page Run shows the rates that the grid has "
        "learnt, or counts jobs of any length."
    ),
}
"""What is said below the tables, by their names."""


def show_gap(
    services: Services,
    run: Overview,
    figures: RunFigures,
    kept: dict[str, Any] | None,
    said: ui.label,
) -> None:
    """Make a button that compares a run with its twin, which takes a while, and show how far it is.

    A comparison that was begun before a reload is shown, and one that was kept beside the run.
    ``said`` is the label of what was found, in short.
    """
    queue, number = services.queue, run.run
    begun = [each for each in queue.all(ReportTask) if each.run_number == number]
    watched: list[ReportTask] = [each for each in begun[:1] if not each.is_over or each.report]
    if kept is not None:
        watched.clear()
    with ui.card().classes("w-full"):
        heading("Beside its simulated twin")
        with ui.column().classes("w-full") as place:
            if kept is None:
                ui.label(PAST)
            else:
                _show(run, kept, figures)
        words = ui.label().classes("gw-steady").props("role=status")
        bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress of the twin"')

        def compare() -> None:
            with errors_shown():
                watched.append(queue.start(ReportTask(number)))
                look()

        def look() -> None:
            task = watched[-1] if watched else None
            going = task is not None and not task.is_over
            button.set_enabled(not going)
            bar.set_visibility(going)
            if task is None:
                return
            bar.value = round(task.share, 3)
            words.text = ""
            if going and task is not None:
                done = f"{100 * task.share:.0f} % of {TWINS} simulations{task.left}"
                words.text = f"The twin is being simulated: {done}"
                return
            watched.clear()
            if task.report is None:
                tell(task.error or f"the report on run {number} was stopped")
                return
            button.set_visibility(kept_report(number) is None)  # else it is as new as it can be
            place.clear()
            with place:
                _show(run, plain(task.report), figures)
            said.text = found_in_short(figures, plain(task.report))

        button = ui.button("Set beside its twin", on_click=compare)
        button.set_visibility(kept is None)
        look()
        ui.timer(0.3, look)


PAST = (
    "The twin runs the same jobs and failures in virtual time. It is simulated with each cause of "
    f"differences, and with small timing changes: {TWINS} times. A long run takes minutes."
)


def _show(run: Overview, found: dict[str, Any], figures: RunFigures) -> None:
    gap, twin = found["gap"], found["simulated"]
    if gap["relative"] is None:
        ui.label("Too few jobs have finished to compare the run with its twin.")
        return
    responses = [figure(each["mean_response"]) for each in (found, twin)]
    low, high = figure(gap["low"]), figure(gap["high"])
    steady = f"Small timing changes do not affect the twin ({low})."
    ui.label(
        f"Until {found['until']:.1f} time units: mean response {responses[0]} time units, "
        f"{times_the_twin(gap['relative'])} ({responses[1]}). "
        + (steady if low == high else f"With small timing changes the twin has {low} to {high}.")
    )
    beside, steps = compared(found), waterfall(found, figures.operated)
    with ui.element("div").classes("w-full grid lg:grid-cols-2 gap-4"):
        words = "Mean responses by class. A published range is drawn at its middle."
        figure_card(
            *("Run, twin and published", words, run, beside),
            lambda: make_chart(compared_chart(beside)).classes("h-72"),
        )
        causes = {name: change for name, change, _ in steps.rows if change is not None}
        said = _largest(causes)
        words = f"{said[0].upper()}{said[1:]}."
        figure_card(
            *("From the twin to the run, by cause", words, run, steps),
            lambda: make_chart(waterfall_chart(steps)).classes("h-72"),
        )
    if figures.actions:
        number = len(figures.actions)  # also failures, which count under that cause
        title = f"What operators did: {number} action{'s' * (number > 1)}"
        with ui.expansion(title).classes("w-full"):
            lines = "".join(f"<li>{escape(each)}</li>" for each in figures.actions[:MOST_ACTIONS])
            ui.html(f"<ul>{lines}</ul>", sanitize=False)
    rows = [[name, figure(value, "+.3g")] for name, value in causes.items()]
    html_table("Causes of the gap", ["cause", "time units"], rows)
    html_table("Mean response in time units", beside.heads, _shown(beside.rows))
