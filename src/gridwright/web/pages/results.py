"""The results of a simulation: conclusions, a table, charts with sentences, and exports."""

from collections.abc import Callable
from typing import Any, NamedTuple

from nicegui import ui

from ...experiments.result import GROWING
from ..elsewhere import as_command, as_python
from ..findings import Document
from .charts import download_png, draw, make_chart
from .frame import columns_of, heading
from .result_charts import (
    class_chart,
    class_words,
    growth_chart,
    growth_words,
    interval,
    means_chart,
    means_words,
    tail_chart,
    tail_words,
)

MEASURES = {"mean_number": "number in system", "mean_response": "response time"}
TAILS = ("p95", "p99")


class Chart(NamedTuple):
    """A chart: its title, how it is drawn, and what is said beside it."""

    title: str
    options: Callable[[Document], dict[str, Any]]
    words: Callable[[Document], str]


CHARTS = (
    Chart("Means and intervals", means_chart, means_words),
    Chart("Number in system over time", growth_chart, growth_words),
    Chart("By class", class_chart, class_words),
    Chart("Tail of the response time", tail_chart, tail_words),
)


class Results:
    """What a simulation has found, so far or in the end."""

    def __init__(self) -> None:
        self.shown: Document = {}
        self.state = ui.label().classes("gw-steady").props("role=status")
        self.bar = ui.linear_progress(0, show_value=False).props("aria-label=Progress")
        self.words = ui.column().classes("gap-0")
        self.exports = ui.column().classes("gap-1 w-full")
        self.table = ui.table(columns=[], rows=[], row_key="policy").classes("w-full")
        self.table.props("flat dense").set_visibility(False)
        self.charts = []
        with ui.element("div").classes("w-full grid lg:grid-cols-2 gap-6"):
            for chart in CHARTS:
                with ui.element("section").classes("min-w-0"):
                    heading(chart.title, 3).classes("text-base font-bold")
                    made = make_chart({}).classes("h-72").props("role=img")
                    self.charts.append((chart, made, ui.label().classes("text-sm")))
        self._set_visible(False)

    def _set_visible(self, visible: bool) -> None:
        for _, made, words in self.charts:
            made.parent_slot.parent.set_visibility(visible)  # type: ignore[union-attr]
            words.set_visibility(visible)

    def show(self, found: Document) -> None:
        """Show a document."""
        before, self.shown = self.shown, found
        self.table.set_visibility(True)
        error = f": {found['error']}" if found["error"] else ""
        self.state.text = f"{about(found)}, {found['state']}{error}"
        self.bar.value = round(found["share"], 3)
        self._fill_table(found)
        has_any = any("numbers" in each for each in found["policies"])
        self._set_visible(has_any)
        if has_any:
            for chart, made, words in self.charts:
                text = chart.words(found)
                words.text = text
                made.props["aria-label"] = f"{chart.title}. {text}"
                draw(made, chart.options(found))
        if before.get("address") != found["address"] or ("rows" in before) != ("rows" in found):
            self._conclude(found)

    def _fill_table(self, found: Document) -> None:
        measures = dict(MEASURES)
        if found["metric"] and found["metric"]["name"] not in measures:
            measures[found["metric"]["name"]] = found["metric"]["words"]
        tails = TAILS if found["tails"] else ()
        names = ("policy", "replications", *measures.values(), *tails, "stability")
        columns = columns_of(names, align="right")
        columns[0]["align"] = "left"
        self.table.columns = columns
        self.table.rows = [row_of(each, measures, tails) for each in found["policies"]]

    def _conclude(self, found: Document) -> None:
        self.words.clear()
        self.exports.clear()
        if "rows" not in found:  # it is not over
            return
        with self.words:
            if not found["conclusions"]:
                tasks = sum(each["tasks"] for each in found["result"]["results"])
                ui.label(f"{found['state']} after {tasks:,} tasks")
            for line in found["conclusions"]:
                ui.label(line).classes("font-bold")
            for line in found["differences"]:
                ui.label(line)
        with self.exports:
            self._offer(found)

    def _offer(self, found: Document) -> None:
        address = found["address"]
        with ui.row().classes("gap-4 items-center"):
            ui.link("Permanent address of these results", f"/simulate/{address}")
            csv, whole = f"/api/results/{address}/csv", f"/api/results/{address}"
            ui.link("CSV", csv).props('download aria-label="Export as CSV"')
            ui.link("JSON", whole).props(
                f'download="simulation-{address}.json" aria-label="Export as JSON"'
            )
            ui.button("PNG", on_click=self._download).props(
                'flat dense aria-label="Export the charts as PNG"'
            )
        for title, text, language in (
            ("The same in Python", as_python(found), "python"),
            ("The same on the command line", as_command(found), "bash"),
        ):
            with ui.expansion(title).props("dense").classes("w-full gw-same"):
                made = ui.code(text, language=language).classes("w-full")
                made.copy_button.props("color=primary").tooltip("Copy")
                made.copy_button.props["aria-label"] = f"Copy: {title}"

    def _download(self) -> None:
        name = f"simulation-{self.shown['address']}.png"
        policies = ", ".join(each["policy"] for each in self.shown["policies"])
        parts = [(chart.title, made) for chart, made, _ in self.charts]
        download_png(name, f"{about(self.shown)}: {policies}", parts)


def about(found: Document) -> str:
    """Say what was simulated, in a line."""
    loaded = [each for each in found["policies"] if each.get("long_run_load")]
    load = ""
    if loaded:
        words = loaded[0].get("load_words") or f"{100 * loaded[0]['long_run_load']:.1f} %"
        load = f", long-run load {words}"
    runs = f"{found['replications']} replication{'s' * (found['replications'] > 1)}"
    return f"{found['system']}, {runs} of {found['length']}, seed {found['wanted']['seed']}{load}"


def row_of(
    line: dict[str, Any], measures: dict[str, str], tails: tuple[str, ...]
) -> dict[str, str]:
    """Return a row of the table."""
    figures = line.get("figures", {})
    grows, named = line.get("stable") is False, measures.items()
    return {
        "policy": line["policy"],
        "replications": str(line["replications"]),
        **{words: _cell(line.get(name), grows and name in GROWING) for name, words in named},
        **{name: _cell(figures.get(name), grows) for name in tails},
        "stability": line.get("verdict", ""),
    }


def _cell(found: dict[str, Any] | None, grows: bool) -> str:
    """Write a mean and its interval; no number if the policy is unstable, as it would mislead."""
    if found is None or found["mean"] is None:
        return ""
    return "grows" if grows else interval(found)
