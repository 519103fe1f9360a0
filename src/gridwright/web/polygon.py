"""The allocation LP of two classes as a polygon: the arrivals that the machines can serve."""

from html import escape

import numpy as np

from ..allocation import Allocation
from ..model import Floats

WIDE, HIGH, LEFT, LOW = 360, 300, 44, 36
"""The size of the picture and the space for its axes."""
BOX = " The dashed box is what they can serve if each class only uses its fastest machine."
Point = tuple[float, float]


def frontier(rates: Floats) -> list[Point]:
    """Return the corners of the largest arrivals, from class 1 alone to class 2 alone.

    From one corner to the next, one machine changes from class 1 to class 2: first the machine that
    loses least of class 1 for each task of class 2 that it gains.

    >>> frontier(np.array([[8.0, 3.0], [4.0, 10.0]]))
    [(11.0, 0.0), (8.0, 10.0), (0.0, 14.0)]
    """
    first, second = rates
    gain = np.divide(second, first, out=np.full(len(first), np.inf), where=first > 0)
    x, y = float(first.sum()), 0.0
    corners = [(x, y)]
    for j in np.argsort(-gain, kind="stable"):
        if first[j] > 0 or second[j] > 0:
            x, y = max(x - float(first[j]), 0.0), y + float(second[j])
            corners.append((round(x, 9), round(y, 9)))
    return corners


def polygon(found: Allocation) -> str:
    """Draw what the machines can serve, the arrivals, how far they can grow, and the prices."""
    system = found.system
    corners = frontier(system.rates)
    arrivals = (float(system.arrival_rates[0]), float(system.arrival_rates[1]))
    limit = (arrivals[0] * found.capacity, arrivals[1] * found.capacity)
    box = _box(system.rates)
    most = 1.1 * max(max(corner) for corner in (*corners, arrivals, limit))

    def at(point: Point) -> str:
        x = LEFT + point[0] / most * (WIDE - LEFT - 8)
        return f"{x:.1f},{HIGH - LOW - point[1] / most * (HIGH - LOW - 8):.1f}"

    def line(start: Point, end: Point, more: str) -> str:
        return f'<path d="M{at(start)} L{at(end)}" {more}/>'

    price = found.class_prices / float(np.hypot(*found.class_prices)) * 0.16 * most
    tip = (limit[0] + float(price[0]), limit[1] + float(price[1]))
    grown = " ".join(at(corner) for corner in [(0.0, 0.0), *corners])
    marks = "".join(
        f'<text x="{x}" y="{HIGH - LOW + 16}" text-anchor="middle">{value:g}</text>'
        f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>'
        for value in _ticks(most)
        for x, y in [map(float, at((value, value)).split(","))]
    )
    names = [escape(name) for name in system.classes]
    return (
        f'<svg class="gw-polygon" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="'
        f'{escape(words(found), quote=True)}">'
        f'<polygon points="{grown}" fill="#0072b2" fill-opacity=".2" stroke="#0072b2" '
        'stroke-width="2"/>'
        f'<polyline points="{" ".join(at(corner) for corner in box)}" fill="none" '
        'stroke="currentColor" stroke-dasharray="5 4"/>'
        + line((0, 0), (most, 0), 'stroke="currentColor"')
        + line((0, 0), (0, most), 'stroke="currentColor"')
        + line(arrivals, limit, 'stroke="#d55e00" stroke-width="2" stroke-dasharray="2 3"')
        + line(limit, tip, 'stroke="#009e73" stroke-width="3"')
        + _dot(at(arrivals), "#d55e00")
        + _dot(at(limit), "#009e73")
        + marks
        + f'<text x="{WIDE - 8}" y="{HIGH - 4}" text-anchor="end">'
        f"arrivals of class {names[0]}</text>"
        f'<text x="{LEFT + 6}" y="12">arrivals of class {names[1]}</text></svg>'
        + _legend(bool(box))
    )


def _legend(has_box: bool) -> str:
    """Return the list of what is drawn."""
    line = '<path d="M2,7 L26,7" fill="none"'
    marks = {
        "what the machines can serve": '<rect x="3" y="1" width="22" height="12" fill="#0072b2" '
        'fill-opacity=".2" stroke="#0072b2" stroke-width="2"/>',
        "the arrivals per time unit": _dot("14,7", "#d55e00"),
        "their limit: λ* times the arrivals": _dot("14,7", "#009e73"),
        "the prices of the classes, as a direction": f'{line} stroke="#009e73" stroke-width="3"/>',
    }
    if has_box:
        mark = f'{line} stroke="currentColor" stroke-dasharray="5 4"/>'
        marks["each class on its fastest machine only"] = mark
    return (
        '<ul class="gw-polygon-legend" aria-label="Legend">'
        + "".join(
            f'<li><svg width="28" height="14" aria-hidden="true">{mark}</svg>{text}</li>'
            for text, mark in marks.items()
        )
        + "</ul>"
    )


def words(found: Allocation) -> str:
    """Say in words what the picture shows."""
    system = found.system
    corners = ", ".join(f"({x:.3g}, {y:.3g})" for x, y in frontier(system.rates))
    x, y = (float(each) for each in system.arrival_rates)
    first, second = (float(each) for each in found.class_prices)
    ratio = f"{second / first:.2f}" if first > 0 else "∞"
    limit = f"({x * found.capacity:.3g}, {y * found.capacity:.3g})"
    growth = (
        f"can grow {found.capacity:.2f} times, to {limit}"
        if found.capacity >= 1
        else f"are too many: {found.capacity:.2f} of them can be served, {limit}"
    )
    up = "" if system.failures is None else " while none has failed"
    return (
        "The machines can serve all arrivals in the polygon with the corners (0, 0), "
        f"{corners}{up}. "
        f"The arrivals ({x:.3g}, {y:.3g}) {growth}. There a task of class "
        f"{system.classes[1]} is worth {ratio} of class {system.classes[0]}."
        + (BOX if _box(system.rates) else "")
    )


def _box(rates: Floats) -> list[Point]:
    """Return the corners of what classes can have on their fastest machines, if these differ."""
    if rates[0].argmax() == rates[1].argmax():
        return []
    x, y = float(rates[0].max()), float(rates[1].max())
    return [(0.0, y), (x, y), (x, 0.0)]


def _ticks(most: float) -> list[float]:
    steps = (each * 10.0**k for k in range(-3, 6) for each in (1, 2, 5))
    step = next(each for each in steps if most / each <= 6)
    return [step * k for k in range(int(most / step) + 1)]


def _dot(place: str, colour: str) -> str:
    x, y = place.split(",")
    return f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}" stroke="currentColor"/>'
