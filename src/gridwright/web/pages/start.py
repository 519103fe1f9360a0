"""The start page: three ways in, and what has happened here lately."""

from typing import NamedTuple

from nicegui import ui

from ..findings import list_documents
from ..services import Services
from .frame import frame, heading


class Way(NamedTuple):
    """A way in: who takes it, what it leads to, and its steps, each a text, a path and a hint."""

    who: str
    what: str
    icon: str
    steps: tuple[tuple[str, str, str], ...]


WAYS = (
    Way(
        "Study policies",
        "Which policy is best on which system, and what the literature says.",
        "query_stats",
        (
            ("Compare policies", "/simulate", "on one system and the same arrivals"),
            ("A system of your own", "/define", "typed, pasted or imported"),
            ("Printed numbers", "/published", "beside ours, with a verdict for each"),
        ),
    ),
    Way(
        "Teach and learn",
        "Why the fastest machine can be the wrong one, and what prices say.",
        "school",
        (
            ("Guided stops", "/learn", "watch tasks flow, predict, and check"),
            ("An allocation by hand", "/learn/2", "change a rate, and the polygon follows"),
            ("A lesson of ninety minutes", "/learn/8", "a notebook, and notes for the teacher"),
            ("What words mean", "/help#words", "load, capacity, stable, and others"),
        ),
    ),
    Way(
        "Run work on machines",
        "Experiments on machines that differ, fail, and are shared with others.",
        "dns",
        (
            ("Start and watch a run", "/run", "operate one machine or many"),
            ("Past runs", "/statistics", "beside their simulated twins"),
            ("Prepare an experiment", "/define", "machines, failure periods, availability"),
        ),
    ),
)


def start_page(services: Services) -> None:
    """Show the ways in."""
    with frame("Start"):
        ui.label("Gridwright schedules work on machines that are fast at different things.")
        with ui.element("div").classes("w-full grid md:grid-cols-3 gap-4"):
            for way in WAYS:
                _show(way)
        found = list_documents(5)
        if found:
            heading("Latest simulations").classes("text-lg")
            for each in found:
                names = ", ".join(each["policies"])
                with ui.row().classes("gap-2"):
                    ui.link(f"{each['system']}: {names}", f"/simulate/{each['address']}")
                    ui.label(" ".join(each["conclusions"]))


def _show(way: Way) -> None:
    with ui.card().classes("w-full h-full"):
        with ui.row().classes("items-center gap-2 no-wrap"):
            ui.icon(way.icon).classes("text-2xl").props("aria-hidden=true")
            heading(way.who).classes("text-lg font-bold")
        ui.label(way.what)
        for name, path, hint in way.steps:
            with ui.row().classes("gap-2"):
                ui.link(name, path).classes("font-bold")
                ui.label(hint)
