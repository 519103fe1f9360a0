"""The allocation beside a system: capacity, load, who should serve whom, what limits it."""

from __future__ import annotations

from html import escape

import numpy as np
from nicegui import ui

from ...allocation import Allocation, allocate, change, verdict
from ...model import InputError, System

__all__ = ["AllocationCard"]

MOST_CHOICES = 300


class AllocationCard:
    """What a system can bear, with some of its machines switched off."""

    def __init__(self) -> None:
        self.system: System | None = None
        with ui.card().classes("min-w-0"):
            ui.label("Allocation").classes("text-lg").props("role=heading aria-level=2")
            self.capacity = ui.label().classes("text-xl gw-steady").mark("capacity")
            self.words = ui.label().classes("gw-steady")
            self.down = (
                ui.select([], label="Switched off", multiple=True, on_change=self._solve)
                .classes("w-72")
                .props("use-chips")
            )
            self.change = ui.label().classes("gw-steady")
            self.map = ui.html("", sanitize=False).classes("gw-scroll")
            self.limits = ui.label().classes("gw-quiet")

    def show(self, system: System | None) -> None:
        """Show a system; none where what is typed is not one yet."""
        self.system = system
        if system is not None:
            names = list(system.machines[:MOST_CHOICES])
            kept = [name for name in self.down.value or [] if name in names]
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
            self.capacity.text = "λ* unknown"
            self.words.text = "Mend what is marked, and the capacity shows here."
            self.map.content = self.change.text = self.limits.text = ""
            return
        try:
            down = list(self.down.value or [])
            found = allocate(self.system, down=down)
            self._tell(found, allocate(self.system) if down else None)
        except InputError as error:
            self.capacity.text, self.words.text = "λ* unknown", str(error)
            self.map.content = self.change.text = self.limits.text = ""

    def _tell(self, found: Allocation, before: Allocation | None) -> None:
        self.capacity.text = f"λ* = {found.capacity:.4f}, load {100 * found.load:.1f} %"
        self.words.text = verdict(found).words
        self.change.text = ""
        if before is not None:
            changed = change(before, found)
            pairs = ", ".join(f"{i} on {j}" for i, j in changed.gained[:6])
            self.change.text = (
                f"λ* goes from {changed.before:.4f} to {changed.after:.4f}. "
                f"{f'Newly used: {pairs}.' if pairs else 'No pair is newly used.'}"
            )
        self.map.content = heat_map(found)
        classes = ", ".join(found.bottleneck_classes[:12])
        machines = ", ".join(found.bottleneck_machines[:12])
        more = " …" if len(found.bottleneck_machines) > 12 else ""
        self.limits.text = f"Limited by class {classes} on machine {machines}{more}."


def heat_map(found: Allocation) -> str:
    """Draw δ* as a table: the darker, the larger the share, which stands there as a number too."""
    system = found.system
    firsts = np.unique(system.column, return_index=True)[1]
    alike = len(firsts) < len(system.machines) and not found.down
    shown = firsts if alike or len(system.machines) > 60 else np.arange(len(system.machines))
    heads = []
    for j in shown:
        count = system.counts[system.column[j]] if alike else 1
        name = system.groups[system.column[j]] if alike else system.machines[j]
        heads.append(escape(name) + (f" ×{count}" if count > 1 else ""))
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(float(found.shares[i, j])) for j in shown)
        + "</tr>"
        for i, name in enumerate(system.classes)
    )
    caption = "<caption>δ*: the share of each machine for each class</caption>"
    return f'<table class="gw">{caption}<thead><tr><th></th>{head}</tr></thead>{body}</table>'


def _cell(share: float) -> str:
    if share == 0:
        return "<td>·</td>"
    return f'<td style="background: rgba(31, 119, 180, {0.12 + 0.5 * share:.2f})">{share:.3f}</td>'
