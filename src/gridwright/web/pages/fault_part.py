"""The failure periods tab of Define: draw, show and edit the faults of each machine."""

from functools import partial

from nicegui import ui

from ...model import InputError
from ...testbed import Fault, spells
from ..documents import drawn_faults, redrawn
from ..fields import as_number
from ..form import TRACE, FaultCells, Place
from .cells import Cells, Part
from .charts import failure_trace
from .frame import figure, offer, table_row

MOST_SHOWN = 50
"""Periods of a machine that can be edited here; the others are kept."""
MOST_DRAWN = 60
MEANS = ("Mean up-time of this machine", "Mean repair time of this machine")


class FaultPart(Part):
    """A trace for each machine, with its mean up- and down-times."""

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells)
        with ui.row().classes("gap-2"):
            ui.button("Fill traces for all", on_click=self.fill).props("outline dense").tooltip(
                "draws periods from the mean up-time, repair time and seed of the experiment"
            )
            ui.button("Clear all", on_click=self.clear).props("outline dense")
        self.words = ui.label().classes("gw-steady gw-quiet")
        self.bars = ui.html("", sanitize=False).classes("w-full max-w-3xl")
        with ui.row().classes("gap-2 items-end"):
            self.chosen = ui.select([], label="Periods of machine", on_change=self._periods)
            self.chosen.classes("w-64").props("dense")
            ui.button("Add a period", on_click=self.add).props("outline dense")
        with ui.row().classes("gap-2 items-end"):
            self.times = [ui.number(label, min=0) for label in MEANS]
            for made in self.times:
                made.classes("w-48").props("dense")
            ui.button("Apply", on_click=self.apply).props("outline dense").tooltip(
                "draws the periods of this machine with these mean times"
            )
        self.means = ui.label().classes("gw-steady")
        self.place = ui.column().classes("gap-1 max-w-full")

    def lay_out(self) -> None:
        """Draw the periods of the chosen machine."""
        offer(self.chosen, list(self.cells.shown()))
        self._periods()

    def refresh(self) -> None:
        """Draw the bars, and show the mean up- and down-time of the chosen machine."""
        form = self.cells.form
        names = list(self.cells.shown())
        offer(self.chosen, names)
        used = form.cells["failures"] == TRACE
        faults = self._faults()
        self.words.text = (
            f"{len(faults)} periods; "
            + ("the run uses them" if used else "not used: Failures has another choice")
            if faults
            else "No periods yet: fill them from the mean times, or add them by hand."
        )
        end = as_number(form.cells["duration"])
        end = end if isinstance(end, float) and end > 0 else 1.0
        self.bars.content = failure_trace(names[:MOST_DRAWN], faults, 0.0, end)
        if (chosen := str(self.chosen.value or "")) in names:
            found = spells(faults, names.index(chosen))
            self.means.text = (
                f"Machine {chosen}: {found.faults} periods, mean up-time "
                f"{figure(found.up) or '–'}, mean down-time {figure(found.down) or '–'}"
            )

    def fill(self) -> None:
        """Draw periods for all machines."""

        def change() -> None:
            self.cells.form.cells["failures"] = "generated"  # ignores periods that are not valid
            self.cells.form.take_faults(drawn_faults(self.cells.experiment()))

        self.cells.act(change)

    def apply(self) -> None:
        """Draw the periods of the chosen machine with its own mean times."""
        chosen, times = str(self.chosen.value or ""), [made.value for made in self.times]

        def change() -> None:
            for label, value in zip(MEANS, times, strict=True):
                if value is None:
                    raise InputError(f"{label} is empty; expected a number of time units")
            if not chosen:
                raise InputError("choose a machine")
            found = redrawn(self.cells.experiment(), chosen, *times)
            self.cells.form.take_faults(found.faults())

        self.cells.act(change)

    def clear(self) -> None:
        """Remove all periods."""
        self.cells.act(self.cells.form.faults.clear)

    def add(self) -> None:
        """Add a period after the last of the machine."""
        place = self._place()
        if place is None:
            return
        ends = [as_number(each.end) for each in self.cells.form.faults if each.machine == place]
        last = max((end for end in ends if isinstance(end, float)), default=0.0)

        def change() -> None:
            made = FaultCells(place, f"{last + 1:g}", f"{last + 2:g}")
            self.cells.form.faults.append(made)
            self.cells.form.cells["failures"] = TRACE

        self.cells.act(change)

    def _place(self) -> Place | None:
        return self.cells.form.at(str(self.chosen.value or ""))

    def _faults(self) -> list[Fault]:
        """Return the valid periods, for the picture and the means."""
        order = {place: j for j, place in enumerate(self.cells.form.sheet.machines())}
        found = []
        for each in self.cells.form.faults:
            start, end = as_number(each.start), as_number(each.end)
            if each.machine in order and isinstance(start, float) and isinstance(end, float):
                found.append(Fault(order[each.machine], start, end))
        return found

    def _periods(self) -> None:
        """Draw the periods of the chosen machine."""
        form, place = self.cells.form, self._place()
        self.place.clear()
        self.inputs = {}
        own = [(k, each) for k, each in enumerate(form.faults) if each.machine == place]
        with self.place:
            if own:
                with ui.element("table").classes("gw"):
                    table_row("Start", "End", "")
                    for number, (k, each) in enumerate(own[:MOST_SHOWN], start=1):
                        self._period(number, k, each)
            if len(own) > MOST_SHOWN:
                ui.label(f"and {len(own) - MOST_SHOWN} more").classes("gw-quiet")
        self.cells.check()

    def _period(self, number: int, k: int, each: FaultCells) -> None:
        def drop() -> None:
            self.cells.form.faults.remove(each)

        with ui.element("tr"):
            for column, key in ((1, "start"), (2, "end")):
                with ui.element("td"):
                    made = self.cells.field(
                        f"{key.capitalize()} of period {number}",
                        getattr(each, key),
                        partial(setattr, each, key),
                        cell=True,
                    )
                self.inputs["failures", k, column] = made
            with ui.element("td"):
                remove = ui.button(icon="close", on_click=lambda: self.cells.act(drop))
                remove.props(f'flat dense aria-label="Remove period {number}"')
