"""Published: every printed number beside ours, and whether they agree."""

import re

from nicegui import ui

from ...reproduction import Row, Verdict, counted, explanations
from ..api.background import last_rerun, published
from ..services import Services
from ..tasks import TableTask
from .frame import Picker, columns_of, errors_shown, frame, tell

EVERY = "all tables"
MARKS = {
    "agrees": "✓",
    "differs": "✗",
    "errata": "!",
    "not printed": "·",
    "undecided": "?",
    "not run": "–",
}
"""Marks for readers who cannot tell the colours apart."""
BADGE = """
<q-td :props="props">
  <q-btn dense no-caps unelevated size="sm" text-color="white"
    :color="{'✓': 'blue-8', '✗': 'deep-orange-10', '!': 'purple-7'}[props.value[0]] || 'grey-7'"
    :label="props.value" :aria-label="props.value + ': say why'"
    @click="$parent.$emit('explain', props.row.id)" />
</q-td>
"""
"""Most colour-blind people can tell blue from orange."""
COLUMNS = ("table", "system", "policy", "what", "reading", "published", "ours", "verdict", "reason")
READINGS = {"": "as the source says", "every": "every reading"}
"""Other readings are hypotheses, tried on the same printed cells: they are not more cells."""


def published_page(services: Services) -> None:
    """Show the page; a table that was run again here shows the new results."""
    data, shipped = published()
    queue = services.queue
    sections = dict(shipped)
    with frame("Published"):
        with ui.row().classes("w-full gap-2 items-end"):
            names = {EVERY: EVERY} | {
                each.name: f"{each.name} – {each.about[:90]}" for each in sections.values()
            }
            table = Picker(names, "Table or figure", next(iter(sections)))
            table.classes("w-96 max-w-full")
            kinds = ["any verdict", *(str(each) for each in Verdict)]
            verdict = ui.select(kinds, label="Verdict", value=kinds[0]).classes("w-40")
            reading = ui.select(READINGS, label="Reading", value="").classes("w-44")
            words = ui.input("Search").props("debounce=250 clearable")
            scale = ui.select(
                {"quick": "short runs", "full": "runs of full length"}, label="Scale", value="quick"
            ).classes("w-44")
            ui.button("Run again", on_click=lambda: again()).props("outline")
            ui.button("Stop", on_click=lambda: stop()).props("outline")
        running = ui.label().classes("gw-steady").props("role=status")
        summary = ui.label().classes("gw-steady").props("role=status")
        columns = columns_of(COLUMNS, sortable=True)
        for column in columns:
            wraps = column["name"] in ("what", "reason")
            column["style"] = "" if wraps else "white-space: nowrap"
            column["headerStyle"] = "white-space: nowrap"  # else some arrows are below their words
        rows = ui.table(columns=columns, rows=[], row_key="id", pagination=25).classes("w-full")
        rows.props('flat dense wrap-cells no-data-label="No cells match."')
        rows.add_slot("body-cell-verdict", BADGE)
        rows.on("explain", lambda event: explain(str(event.args)))
        ui.markdown(data.settings, extras=["code-friendly"]).classes("gw-quiet")  # x86_64
        dialog = ui.dialog()

        def show() -> None:
            for name in shipped:
                rerun = last_rerun(queue, name)
                if rerun is not None and rerun.section is not None:
                    sections[name] = rerun.section
            chosen = [table.value] if table.value in sections else list(sections)
            found = [
                {"id": f"{name} {k}", "table": name, **row._asdict()}
                for name in chosen
                for k, row in enumerate(sections[name].rows)
                if reading.value or not row.reading
            ]
            wanted = str(words.value or "").lower()
            shown = [
                row
                for row in found
                if verdict.value in (kinds[0], row["verdict"])
                and wanted in " ".join(map(str, row.values())).lower()
            ]
            rows.rows = [
                {
                    **row,
                    "ours": _apart(row["ours"]),
                    "verdict": f"{MARKS[row['verdict']]} {row['verdict']}",
                }
                for row in shown
            ]
            counts = {str(each): sum(r["verdict"] == each for r in shown) for each in Verdict}
            said = counted({name: count for name, count in counts.items() if count})
            summary.text = f"{len(shown)} of {len(found)} cells: {said or 'none'}"

        def explain(cell: str) -> None:
            name, _, number = cell.rpartition(" ")
            if name in sections and number.isdigit() and int(number) < len(sections[name].rows):
                _explain(dialog, name, sections[name].rows[int(number)])

        def again() -> None:
            with errors_shown():
                queue.start(TableTask(table.chosen(), scale.value == "quick"))

        def stop() -> None:
            rerun = last_rerun(queue, str(table.value))
            if rerun is None or rerun.is_over:
                tell("this table is not being run again", "info")
            else:
                queue.stop(rerun)

        def look() -> None:
            rerun = last_rerun(queue, str(table.value))
            said = ""
            if rerun is not None:
                said = f"{rerun.table} run again: {rerun.state}, {100 * rerun.share:.0f} %"
                if rerun.state == "done" and rerun.quick:
                    said += "; short runs start empty: busy systems come out low"
                said += f": {rerun.error}" if rerun.error else ""
            if said != running.text:
                running.text = said
                show()

        ui.timer(0.5, look)
        for each in (table, verdict, reading, words):
            each.on_value_change(show)
        show()


def _apart(words: str) -> str:
    """Write the thousands of large numbers apart.

    >>> _apart("16203 unstable"), _apart("0.12345 ± 2")
    ('16,203 unstable', '0.12345 ± 2')
    """
    return re.sub(r"(?<![\d.])\d{5,}", lambda found: f"{int(found[0]):,}", words)


def _explain(dialog: ui.dialog, table: str, row: Row) -> None:
    """Show a cell, its verdict and the explanations."""
    dialog.clear()
    with dialog, ui.card().classes("max-w-2xl"):
        ui.label(f"{table}: {row.system}, {row.policy}, {row.what}").classes("text-lg")
        ui.label(f"Published {row.published or 'nothing'}; ours {row.ours or 'not run'}.")
        ui.label(f"{MARKS[row.verdict]} {row.verdict}" + (f": {row.reason}" if row.reason else ""))
        if row.verdict in (Verdict.differs, Verdict.errata):
            for title, text in explanations(table, row):
                ui.label(title).classes("font-bold")
                ui.markdown(text)
        ui.button("Close", on_click=dialog.close).props("flat")
    dialog.open()
