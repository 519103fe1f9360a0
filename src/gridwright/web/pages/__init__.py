"""The pages: each a small module that shows what the Python API can do."""

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import app, ui

from ...reproduction import shipped
from ..services import Services
from .define import define_page
from .help import help_page
from .learn import FIGURES, LAB, learn_page, reading_page
from .published import published_page
from .runs import run_page, watch_page
from .simulate import simulate_page
from .start import start_page
from .statistics import one_page, statistics_page

PAGES: dict[str, Callable[..., Any]] = {
    "/": start_page,
    "/define": define_page,
    "/help": help_page,
    "/simulate": simulate_page,
    "/learn": learn_page,
    "/learn/{number}": learn_page,
    "/learn/read/{name}": reading_page,
    "/simulate/{address}": simulate_page,
    "/published": published_page,
    "/run": run_page,
    "/run/{number}": watch_page,
    "/statistics": statistics_page,
    "/statistics/{number}": one_page,
}


def make_pages(services: Services) -> None:
    """Make every page known to NiceGUI."""
    app.add_static_files(FIGURES, shipped("figures"))
    for name in LAB:
        app.add_static_file(local_file=shipped(f"../notebooks/{name}"), url_path=f"/lab/{name}")
    for path, draw in PAGES.items():
        ui.page(path)(partial(draw, services))
