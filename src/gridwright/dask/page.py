"""The page ``/gridwright`` of a scheduler's dashboard, and ``/json/gridwright.json``."""

from __future__ import annotations

from html import escape
from typing import Any

from tornado.web import RequestHandler

from ..grid.executors import dask_internals as internals
from .status import Table, status

MOST_WORKERS, MOST_CLASSES = 100, 24
"""How many rows and columns the page shows."""
UNSURE = 0.3
"""Rates with a larger relative error are shown in grey."""


class StatusPage(RequestHandler):
    """Shows the status to people."""

    def initialize(self, scheduler: Any) -> None:
        """Remember the scheduler."""
        self.scheduler = scheduler

    def get(self) -> None:
        """Answer with the page."""
        self.set_header("Cache-Control", "no-store")
        self.write(page(status(self.scheduler)))


class StatusJson(StatusPage):
    """Gives the status to programs."""

    def get(self) -> None:
        """Answer with one JSON object."""
        self.set_header("Cache-Control", "no-store")
        self.write(status(self.scheduler))


def add_to(scheduler: Any) -> None:
    """Add both pages to the dashboard of a scheduler, if it has one."""
    given = {"scheduler": scheduler}
    pages = [("gridwright", StatusPage, given), ("json/gridwright.json", StatusJson, given)]
    internals.add_pages(scheduler, pages)


def page(found: Table) -> str:
    """Return the page of a status."""
    return SHELL.replace("CONTENT", _content(found), 1)


def _content(found: Table) -> str:
    policy = escape(found["policy"] or "")
    if not found["on"]:
        was = f" The policy was <b>{policy}</b>." if policy else ""
        return (
            "<h1>Placement <span class='off'>off</span></h1>"
            f"<p>Dask places the tasks itself.{was}</p><p>Why: {escape(found['why_off'])}</p>"
        )
    since = escape(found["since"].replace("T", " ").removesuffix("+00:00"))
    return (
        f"<h1>Placement by {policy} <span class='on'>on</span></h1>"
        f"<p class='small'>since {since} UTC · Gridwright {escape(found['version'])} · "
        f"distributed {escape(found['distributed'])}</p>{_tiles(found)}{_matrix(found)}"
        f"{_comparison(found['compared'])}"
    )


def _tiles(found: Table) -> str:
    placed, classes = found["placed"], found["classes"]
    tiles = [
        ("waiting", f"{sum(each['waiting'] for each in classes):,}"),
        ("running", f"{sum(each['running'] for each in classes):,}"),
        ("decisions a second", f"{found['placed_per_second']:.3g}"),
        ("placed by the policy", f"{placed['gridwright']:,}"),
        ("placed by Dask", f"{placed['dask']:,}"),
        ("plans", f"{found['plans']:,}"),
        ("longest call", f"{found['longest_call_ms']:.3g} ms"),
    ]
    items = (f"<div><b>{value}</b><span>{name}</span></div>" for name, value in tiles)
    return f"<section class='tiles'>{''.join(items)}</section>"


def _matrix(found: Table) -> str:
    """Return the table of workers and classes."""
    classes, workers = found["classes"][:MOST_CLASSES], found["workers"][:MOST_WORKERS]
    if not classes:
        return "<p>No task has come yet.</p>"
    if not workers:
        return "<p>There is no worker yet.</p>"
    heads = "".join(f"<th>{escape(each['name'])}</th>" for each in classes)
    lines = [
        ("waiting", [f"{each['waiting']:,}" for each in classes]),
        ("running", [f"{each['running']:,}" for each in classes]),
        ("arrivals a second", [f"{each['arrivals_per_second'] or 0.0:.3g}" for each in classes]),
    ]
    above = "".join(
        f"<tr class='count'><th colspan='3'>{name}</th>"
        f"{''.join(f'<td>{value}</td>' for value in values)}</tr>"
        for name, values in lines
    )
    best = [max((rate or 0.0 for rate in row), default=0.0) for row in found["rates"]]
    rows = []
    for k, worker in enumerate(workers):
        cells = "".join(_cell(found, i, k, best[i]) for i in range(len(classes)))
        name = escape(worker["name"]) + ("" if worker["takes_tasks"] else " <i>paused</i>")
        ahead = f" + {worker['ahead']}" if worker["ahead"] else ""
        rows.append(
            f"<tr><th title='{escape(worker['address'])}'>{name}</th>"
            f"<td>{worker['busy']}{ahead} of {worker['threads']}</td>"
            f"<td>{escape(worker['good_for'] or '–')}</td>{cells}</tr>"
        )
    more = len(found["workers"]) - len(workers), len(found["classes"]) - len(classes)
    hidden = f"<p>Not shown: {more[0]} workers, {more[1]} classes.</p>" if any(more) else ""
    return (
        "<div class='wide'><table><thead>"
        f"<tr><th>worker</th><th>busy threads</th><th>good for</th>{heads}</tr></thead>"
        f"<tbody>{above}</tbody><tbody>{''.join(rows)}</tbody></table></div>{hidden}{LEGEND}"
    )


def _cell(found: Table, i: int, k: int, best: float) -> str:
    rate, error, plan = found["rates"][i][k], found["errors"][i][k], found["plan"][i][k]
    weight = f"plan {plan:.2f}" if plan else "not planned"
    if rate is None:
        return f"<td class='rate'>–<small>not tried · {weight}</small></td>"
    words = ["rate"]
    if error > UNSURE:
        words.append("unsure")
    if found["workers"][k]["good_for"] == found["classes"][i]["name"]:
        words.append("best")
    measured = f"{found['measured'][i][k]:.0f} tasks counted"
    return (
        f"<td class='{' '.join(words)}' style='--r:{rate / best if best else 0:.3f}' "
        f"title='{measured}'><b>{rate:.3g}</b> ± {100 * error:.0f} %<small>{weight}</small></td>"
    )


def _comparison(compared: Table | None) -> str:
    if compared is None:
        return ""
    if not compared["sampled"]:
        return "<h2>Compared with Dask</h2><p>No decision has been compared yet.</p>"
    share = f"{100 * compared['same'] / compared['sampled']:.0f} %"
    saved = compared["seconds_saved"] / max(compared["judged"], 1)
    how = "earlier" if saved >= 0 else "later"
    return (
        f"<h2>Compared with Dask</h2><p>Of {compared['sampled']:,} sampled decisions "
        f"({100 * compared['share']:g} % of all), Dask would have chosen the same worker in "
        f"{compared['same']:,} ({share}) and let the task wait in {compared['dask_waits']:,}. By "
        f"the measured rates, a task ends <b>{abs(saved):.3g} s {how}</b> than on the worker that "
        f"Dask would have chosen (mean of {compared['judged']:,}).</p>"
    )


LEGEND = (
    "<p class='small'>Rates: tasks a second of one thread, as measured; the greener, the closer to "
    "the best worker of the class. ± is the standard error, if times vary as much as exponential "
    "ones; grey: above 30 %. Plan: what the policy's planner says of the pair; for price affinity, "
    "1 wastes nothing. A frame marks what the worker is good for.</p>"
)

SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gridwright placement</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<noscript><meta http-equiv="refresh" content="5"></noscript>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #5c6370; --green: 32 150 90; }
@media (prefers-color-scheme: dark) { :root { --soft: #a2a9b4; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem;
  max-width: 76rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.5rem 0 0; }
.on, .off { font-size: .8rem; padding: .1rem .5rem; border-radius: 1rem; color: #fff;
  background: rgb(24 120 72); vertical-align: middle; } .off { background: #a33; }
.small, small, .tiles span { color: var(--soft); font-size: .82rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0; }
.tiles div { border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .9rem; }
.tiles b { display: block; font-size: 1.25rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
thead th { border-bottom: 2px solid var(--line); }
.count th { font-weight: normal; color: var(--soft); }
.rate { background: rgb(var(--green) / calc(var(--r, 0) * .5)); border-left: 3px solid Canvas; }
.rate small { display: block; } .unsure { color: var(--soft); }
.best { outline: 2px solid rgb(var(--green)); outline-offset: -3px; }
#gone { color: #c33; }
</style></head><body>
<p class="small"><a href="status">Dask's dashboard</a> · <a href="json/gridwright.json">JSON</a>
<b id="gone" hidden>The scheduler does not answer.</b></p>
<main>CONTENT</main>
<script>
async function refresh() {
  let gone = true;
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const left = document.querySelector(".wide")?.scrollLeft ?? 0;
      document.querySelector("main").replaceWith(page.querySelector("main"));
      if (left) document.querySelector(".wide").scrollLeft = left;
      gone = false;
    }
  } catch {}
  document.getElementById("gone").hidden = !gone;
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}
setTimeout(refresh, 2000);
</script></body></html>
"""
