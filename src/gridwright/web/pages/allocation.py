"""The allocation beside a system: capacity, load, who serves whom, and what limits it."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from nicegui import background_tasks, ui

from ...allocation import Allocation, Change, allocate
from ...model import InputError, System
from ...statistics import share_text
from ..queue import solved
from .frame import heading

MOST_CHOICES = 300
FEW_PAIRS = 200
"""Pairs of a class and a group up to which an allocation is solved at once."""
MOST_CELLS = 400
"""Pairs up to which their shares are shown as a table; more are colours of the cells."""
MOST_NAMES = 3
TIGHT = 0.9
"""The load from which a system is close to its capacity."""
LOOKS = "gw-fine gw-tight gw-over"
Solution = tuple[Allocation, str, Change | None]
"""An allocation, its verdict, and what changes with the machines that are switched off."""


class AllocationCard:
    """The capacity of a system, with some of its machines switched off."""

    def __init__(self, found: Callable[[Allocation | None], Any]) -> None:
        """Show an allocation; ``found`` hears of each one, and of None while there is none."""
        self.system: System | None = None
        self._found, self._is_solving = found, False
        with ui.card().classes("min-w-0"):
            heading("Allocation").classes("text-lg")
            self.capacity = ui.label().classes("text-xl gw-steady").mark("capacity")
            self.words = ui.label().classes("gw-steady")
            self.down = ui.select([], label="Switched off", multiple=True, on_change=self._solve)
            self.down.classes("w-72").props("use-chips")
            self.change = ui.label().classes("gw-steady")
            self.map = ui.html("", sanitize=False).classes("gw-scroll")
            self.limits = ui.label().classes("gw-quiet")

    def show(self, system: System | None) -> None:
        """Show a system; None means that the cells are not valid yet."""
        self.system = system
        if system is not None:
            names = list(system.machines[:MOST_CHOICES])
            kept = [name for name in self.down.value or [] if name in names]
            if names != self.down.options:
                self.down.set_options(names, value=kept)
        self._solve()

    def switch_off(self, machine: str) -> None:
        """Switch a machine off."""
        if machine in self.down.options:
            self.down.value = [*self.down.value, machine]

    def switch_on(self) -> None:
        """Switch every machine on."""
        self.down.set_options([], value=[])

    def _solve(self) -> None:
        if self.system is None:
            self._blank("Fix the marked cells to see the capacity.")
            return
        down = tuple(self.down.value or ())
        if self.system.rates.size > FEW_PAIRS:
            self.capacity.text, self.words.text = "λ* …", "The allocation is being solved."
            if not self._is_solving:
                background_tasks.create(self._solve_in_thread())
            return
        try:
            self._show(*_solution(self.system, down))
        except InputError as error:
            self._blank(str(error))

    async def _solve_in_thread(self) -> None:
        """Solve without blocking the page, until the solution is that of what is shown."""
        self._is_solving = True
        try:
            while (system := self.system) is not None:
                down, found, wrong = tuple(self.down.value or ()), None, ""
                try:
                    found = await solved(partial(_solution, system, down))
                except InputError as error:
                    wrong = str(error)
                if self.system is system and down == tuple(self.down.value or ()):
                    self._blank(wrong) if found is None else self._show(*found)
                    return
        finally:
            self._is_solving = False

    def _blank(self, words: str) -> None:
        self.capacity.text, self.words.text = "λ* unknown", words
        self.map.content = self.change.text = self.limits.text = ""
        self.capacity.classes(remove=LOOKS)
        self._found(None)

    def _show(self, found: Allocation, words: str, changed: Change | None) -> None:
        self.capacity.text = f"λ* = {found.capacity:.4f}, load {100 * found.load:.1f} %"
        over, tight = found.verdict.stabilisable is False, found.load >= TIGHT
        self.capacity.text += ": overload" if over else ""
        look = "gw-over" if over else "gw-tight" if tight else "gw-fine"
        self.capacity.classes(look, remove=LOOKS.replace(look, ""))
        self._found(found)
        self.words.text = words
        self.change.text = ""
        if changed is not None:
            pairs = ", ".join(f"{i} on {j}" for i, j in changed.gained[:6])
            words = f"λ* goes from {changed.before:.4f} to {changed.after:.4f}."
            if changed.left_out:
                words = (
                    f"λ* of the classes that can run is {changed.after:.4f}; otherwise "
                    f"that of all classes is {changed.before:.4f}."
                )
            used = f"Newly used: {pairs}." if pairs else "No pair is newly used."
            self.change.text = f"{words} {used}"
        self.map.content = heat_map(found)
        classes, machines = found.bottleneck_classes, found.bottleneck_machines
        what = "class" if len(classes) == 1 else "classes"
        where = "machine" if len(machines) == 1 else "machines"
        self.limits.text = f"Limited by {what} {_few(classes)} on {where} {_few(machines)}."


def _few(names: Sequence[str]) -> str:
    """Name at most four; of more name three, and count the others.

    >>> _few(["a", "b", "c", "d", "e"]), _few(["a", "b", "c", "d"])
    ('a, b, c and 2 more', 'a, b, c, d')
    """
    rest = len(names) - MOST_NAMES
    return f"{', '.join(names[:MOST_NAMES])} and {rest} more" if rest > 1 else ", ".join(names)


def _solution(system: System, down: tuple[str, ...]) -> Solution:
    found = allocate(system, down=down)
    return found, found.verdict.words, allocate(system).change(found) if down else None


def heat_map(found: Allocation) -> str:
    """Draw δ* as a table, the larger the share the darker; of a large system say where it is."""
    system = found.system
    firsts = np.unique(system.column, return_index=True)[1]
    alike = len(firsts) < len(system.machines) and not found.down
    head = ""
    shown = firsts if alike else np.arange(len(system.machines))
    if len(shown) * len(system.classes) > MOST_CELLS:
        return "The colours <i>allocation</i> of the table show who serves whom."
    for j in shown:
        count = system.sizes[system.column[j]] if alike else 1
        name = system.groups[system.column[j]] if alike else system.machines[j]
        head += f'<th scope="col">{escape(name)}{f" ×{count}" if count > 1 else ""}</th>'
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(float(found.shares[i, j])) for j in shown)
        + "</tr>"
        for i, name in enumerate(system.classes)
    )
    caption = "<caption>δ*: the share of each machine for each class</caption>"
    above = f'<tr><td></td><th colspan="{len(shown)}" scope="colgroup">machine</th></tr>'
    head = f'<thead>{above}<tr><th scope="col" class="gw-left">class</th>{head}</tr></thead>'
    return f'<table class="gw">{caption}{head}{body}</table>'


def _cell(share: float) -> str:
    if share == 0:
        return "<td>·</td>"
    words = escape(share_text(share, 3))
    return f'<td style="background: rgba(31, 119, 180, {0.12 + 0.5 * share:.2f})">{words}</td>'
