"""The pages: each a small module that shows what the Python API can do."""

from __future__ import annotations

from fastapi import Request
from nicegui import ui

from ..guard import may_run_code
from ..services import Services
from .define import define_page
from .published import published_page
from .runs import run_page, watch_page
from .simulate import simulate_page
from .statistics import one_page, statistics_page


def make_pages(services: Services) -> None:
    """Make every page known to NiceGUI."""

    @ui.page("/")
    async def define(request: Request) -> None:
        await define_page(services, trusted=may_run_code(request))

    @ui.page("/simulate")
    def simulate(request: Request) -> None:
        simulate_page(services, trusted=may_run_code(request))

    @ui.page("/published")
    def published() -> None:
        published_page(services)

    @ui.page("/run")
    def run(request: Request) -> None:
        run_page(services, trusted=may_run_code(request))

    @ui.page("/run/{number}")
    def watch(number: int) -> None:
        watch_page(services, number)

    @ui.page("/statistics")
    def statistics() -> None:
        statistics_page(services)

    @ui.page("/statistics/{number}")
    def one(number: int) -> None:
        one_page(services, number)
