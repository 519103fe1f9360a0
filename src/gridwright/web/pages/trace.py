"""The failures that a run is to have: a bar for each machine, what is still to come in grey."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["failure_trace"]

BAR = (
    "position: relative; flex: 1; height: .8rem; background: rgba(0, 114, 178, .25); "
    "border-radius: .2rem; overflow: hidden"
)


def failure_trace(
    machines: Sequence[str], faults: Sequence[Sequence[float]], now: float, end: float
) -> str:
    """Draw faults (machine, start, end) over the length of a run; nothing where there are none.

    >>> failure_trace(["1"], [], 0.0, 10.0)
    ''
    """
    if not faults or end <= 0:
        return ""
    lines = []
    for number, name in enumerate(machines):
        own = [fault for fault in faults if int(fault[0]) == number]
        words = ", ".join(f"{start:.1f} to {stop:.1f}" for _, start, stop in own) or "none"
        spans = "".join(_span(start, min(stop, end), now, end) for _, start, stop in own)
        spans += f'<span style="position: absolute; left: {100 * min(now / end, 1):.2f}%; '
        spans += 'width: 2px; height: 100%; background: currentColor"></span>'
        label = escape(f"failures of machine {name}: {words}", quote=True)
        lines.append(
            '<div style="display: flex; align-items: center; gap: .5rem; margin: .15rem 0">'
            f'<span style="width: 4rem; overflow: hidden">{escape(name)}</span>'
            f'<div role="img" aria-label="{label}" title="{label}" style="{BAR}">{spans}</div>'
            "</div>"
        )
    return "<div>Failures, planned (grey: still to come)</div>" + "".join(lines)


def _span(start: float, stop: float, now: float, end: float) -> str:
    if start >= end:
        return ""
    colour = "#d55e00" if start <= now else "#999"
    left, width = 100 * start / end, max(100 * (stop - start) / end, 0.3)
    place = f"position: absolute; left: {left:.2f}%; width: {width:.2f}%; height: 100%"
    return f'<span style="{place}; background: {colour}"></span>'
