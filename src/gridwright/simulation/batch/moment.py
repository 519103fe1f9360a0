"""A moment of a run: how surely what the machines hold is done on time."""

from __future__ import annotations

from ...model import GridPmf, Robustness, robustness
from .state import State
from .table import Pmfs

__all__ = ["judge"]


def judge(state: State, pmfs: Pmfs, now: float) -> Robustness:
    """Return the robustness of the allocation as it stands at a time between two events."""
    machines = []
    for j, server in enumerate(state.server):
        tasks: list[tuple[GridPmf, float]] = []
        place = int(server.head)
        while place >= 0:
            ticket = state.ticket[place]
            pmf = pmfs[int(ticket.task_class)][j]
            assert pmf is not None
            if not tasks:
                pmf = pmf.shift(float(server.begun))
                pmf = pmf.after(now) if pmf.by(now) < 1 else GridPmf(pmf.width, [1.0], now)
            tasks.append((pmf, float(ticket.deadline)))
            place = int(ticket.next)
        machines.append(tasks)
    return robustness(*machines)
