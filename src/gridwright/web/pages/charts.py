"""Line charts, the bars that show when machines fail, and charts as pictures to download."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from nicegui import ui

from ...grid import Interruptions

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Colours that colour-blind people tell apart."""


FAINT = {"splitLine": {"lineStyle": {"color": "rgba(128, 128, 128, .3)"}}}
"""Lines of an axis that suit a light and a dark page."""
SHARP = {"textBorderColor": "transparent", "textBorderWidth": 0}
"""Without the white rim of texts beside bars and points, which blurs them on a dark page."""


def make_chart(options: dict[str, Any]) -> ui.echart:
    """Make a chart as SVG, whose texts have the colours of the page, light or dark."""
    return ui.echart(options, renderer="svg").classes("gw-chart w-full min-w-0")


def draw(chart: ui.echart, options: dict[str, Any]) -> None:
    """Replace the options of a chart."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


PNG = """
(async (name, about, parts) => {
  const head = 28, row = 20, gap = 8, scale = 2, found = [];
  const css = (key) => getComputedStyle(document.body).getPropertyValue(key);
  let [ground, ink] = ["#fff", "#222"];
  for (const [title, id] of parts) {
    const root = getHtmlElement(id), svg = root.querySelector("svg");
    let picture = root.querySelector("canvas[role=img]");
    const box = (svg || picture).getBoundingClientRect();
    if (svg) {  // its texts are dark, as no style of the page applies to it
      const copy = svg.cloneNode(true);
      copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      copy.setAttribute("width", box.width);
      copy.setAttribute("height", box.height);
      picture = new Image();
      picture.src = "data:image/svg+xml;charset=utf-8,"
        + encodeURIComponent(new XMLSerializer().serializeToString(copy));
      await picture.decode();
    } else [ground, ink] = [css("--gw-card"), css("--gw-text")];
    const keys = [...root.querySelectorAll(".gw-legend > span")].map((each) => ({
      words: each.textContent.trim(), key: each.querySelector(".gw-key")}));
    found.push({title, picture, box, keys});
  }
  const width = Math.max(...found.map((each) => each.box.width));
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  pen.font = "12px sans-serif";
  for (const each of found) {  // a legend has as many lines as it needs
    let [across, line] = [8, 0];
    for (const key of each.keys) {
      const wide = 35 + pen.measureText(key.words).width;
      if (across > 8 && across + wide > width) [across, line] = [8, line + 1];
      [key.across, key.down] = [across, line * row];
      across += wide;
    }
    each.top = head + (each.keys.length ? (line + 1) * row + gap : 0);
  }
  const lines = [];
  for (const word of about.split(" ")) {  // it may be longer than the pictures are wide
    const last = lines.length - 1, longer = last < 0 ? word : `${lines[last]} ${word}`;
    if (last >= 0 && pen.measureText(longer).width < width - 16) lines[last] = longer;
    else lines.push(word);
  }
  const start = lines.length * row + gap;
  const height = found.reduce((sum, each) => sum + each.top + each.box.height + gap, start);
  [canvas.width, canvas.height] = [width * scale, height * scale];
  pen.scale(scale, scale);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = ink;
  pen.font = "12px sans-serif";
  lines.forEach((line, k) => pen.fillText(line, 8, (k + 1) * row - 4));
  let down = start;
  for (const {title, picture, box, keys, top} of found) {
    pen.fillStyle = ink;
    pen.font = "600 15px sans-serif";
    pen.fillText(title, 8, down + 19);
    pen.font = "12px sans-serif";
    for (const {words, key, across, down: lower} of keys) {
      pen.drawImage(key, across, down + lower + head + 2, 14, 12);
      pen.strokeStyle = ink;
      pen.lineWidth = 0.5;
      pen.strokeRect(across, down + lower + head + 2, 14, 12);
      pen.fillText(words, across + 19, down + lower + head + 12);
    }
    pen.drawImage(picture, 0, down + top, box.width, box.height);
    down += top + box.height + gap;
  }
  const link = document.createElement("a");
  [link.href, link.download] = [canvas.toDataURL("image/png"), name];
  link.click();
})
"""
"""Draw charts below each other, each with its title and legend, and download the picture."""


def download_png(name: str, about: str, parts: Sequence[tuple[str, ui.element]]) -> None:
    """Download charts, each with its title, as one picture; its first line says what it shows."""
    known = [[title, element.id] for title, element in parts]
    ui.run_javascript(f"{PNG}({', '.join(map(json.dumps, (name, about, known)))})")


def download_button(kind: str, title: str, click: Callable[[], Any]) -> None:
    """Make a small button that downloads what the title names."""
    made = ui.button(kind, icon="download", on_click=click).props("flat dense no-caps")
    made.props["aria-label"] = f"{title}: download {kind}"


MOST_AREAS = 8
"""Areas that a chart shows; the classes beyond are one area."""


def queue_chart(times: Any, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the numbers of jobs of each class against time, one above the other.

    Of many classes, the largest have areas of their own.
    """
    largest = sorted(numbers, key=lambda name: -float(sum(numbers[name])))
    kept = [name for name in numbers if name in largest[:MOST_AREAS] or len(numbers) == 1]
    areas = {f"class {name}": [int(each) for each in numbers[name]] for name in kept}
    rest = [numbers[name] for name in numbers if name not in kept]
    if rest:
        areas[f"{len(rest)} other classes"] = [int(sum(each)) for each in zip(*rest, strict=True)]
    series = []
    for k, (name, counts) in enumerate(areas.items()):
        data = [[round(float(at), 3), n] for at, n in zip(times, counts, strict=True)]
        looks = {"step": "end", "stack": "all", "areaStyle": {"opacity": 0.6}}
        series.append({**line_series(name, k, data), **looks, "lineStyle": {"width": 1}})
    return line_chart(series, "time units since the run began", "jobs")


def line_series(name: str, number: int, data: list[Any]) -> dict[str, Any]:
    """Return a line in the colour of its number."""
    colour = COLOURS[number % len(COLOURS)]
    return {"name": name, "type": "line", "showSymbol": False, "data": data, "color": colour}


def line_chart(
    series: list[dict[str, Any]], across: str, up: str, *, scale: bool = False
) -> dict[str, Any]:
    """Return the options of a line chart, without animation."""
    return {
        "animation": False,
        "legend": {"top": 0, "type": "scroll"},
        "grid": {"left": 60, "right": 20, "top": 50, "bottom": 40},
        "xAxis": {
            "type": "value",
            "name": across,
            "nameLocation": "middle",
            "nameGap": 25,
            **FAINT,
        },
        "yAxis": {"type": "value", "name": up, "scale": scale, **FAINT},
        "series": series,
    }


BAR = (
    "position: relative; flex: 1; height: .8rem; background: rgba(0, 114, 178, .25); "
    "border-radius: .2rem; overflow: hidden"
)
FAILED, FUTURE, VEIL = "#b3261e", "#999", "rgba(153, 153, 153, .35)"
TAKEN = "repeating-linear-gradient(#6d3fc0 0 3px, #fff 3px 5px)"
HELD = "repeating-linear-gradient(-45deg, #111 0 2px, #ddd 2px 6px)"
LEAST = 0.003
"""The least width of a span, and of a gap between two, as a share of the bar."""
Spans = Sequence[tuple[float, float]]
NOTHING = Interruptions({}, {}, {}, {})


def failure_trace(
    machines: Sequence[str],
    faults: Sequence[Sequence[float]],
    now: float,
    end: float,
    seen: Interruptions = NOTHING,
) -> str:
    """Draw what happened to machines so far, and the faults (machine, start, end) still planned.

    Return an empty text if there is nothing to draw.

    >>> failure_trace(["1"], [], 0.0, 10.0)
    ''
    """
    failures, taking, *holding = (any(each.values()) for each in seen)
    if not (faults or failures or taking or any(holding)) or end <= 0:
        return ""
    lines = []
    for number, name in enumerate(machines):
        failed, taken, paused, slowed = (
            [(start, min(stop, now)) for start, stop in each.get(name, ())] for each in seen
        )
        held = sorted([*paused, *slowed])
        planned = [(start, stop) for machine, start, stop in faults if int(machine) == number]
        future = [(max(start, now), min(stop, end)) for start, stop in planned if stop > now]
        spans = _span((now, end), end, VEIL)
        drawn = ((held, HELD), (failed, FAILED), (taken, TAKEN), (future, FUTURE))
        for each, colour in drawn:
            spans += "".join(_span(span, end, colour) for span in _merged(each, end))
        said = f"machine {name}: failed {_words(failed)}; to come {_words(future)}"
        said += f"; taken away by an operator {_words(taken)}" if taken else ""
        said += f"; paused or slowed by an operator {_words(held)}" if held else ""
        label = escape(said, quote=True)
        lines.append(
            '<div style="display: flex; align-items: center; gap: .5rem; margin: .15rem 0">'
            f'<span style="width: 4rem; overflow: hidden">{escape(name)}</span>'
            f'<div role="img" aria-label="{label}" title="{label}" style="{BAR}">{spans}</div>'
            "</div>"
        )
    keys = ["grey: planned, still to come"]
    keys += ["red: failed"] * failures
    keys += ["violet with lines: taken away by an operator"] * taking
    keys += ["striped: paused or slowed by an operator"] * any(holding)
    return f"<div>Failures ({'; '.join(keys)})</div>" + "".join(lines)


def _words(spans: Spans, most: int = 20) -> str:
    words = [f"{start:.1f} to {stop:.1f}" for start, stop in spans[:most]]
    if len(spans) > most:
        words.append(f"and {len(spans) - most} more times")
    return ", ".join(words) or "never"


def _merged(spans: Spans, end: float) -> list[tuple[float, float]]:
    """Merge spans that are too close to be drawn apart."""
    found: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if found and start - found[-1][1] < LEAST * end:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        elif start < end:
            found.append((start, stop))
    return found


def _span(span: tuple[float, float], end: float, colour: str) -> str:
    start, stop = span
    left, width = 100 * min(start / end, 1), 100 * max((stop - start) / end, LEAST)
    place = f"position: absolute; left: {left:.2f}%; width: {width:.2f}%; height: 100%"
    return f'<span style="{place}; background: {colour}"></span>'
