"""How the customers of chains were served, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..experiments import Result

__all__ = ["show_customers"]


def show_customers(result: Result) -> None:
    """Print a row for every customer; one without a limit has no margin."""
    from math import isnan

    from rich.markup import escape

    from ..experiments import ChainResult
    from .output import console, show, table

    assert isinstance(result, ChainResult)
    if not result.system.customers:
        return
    rows = table("customer", ">jobs", ">too late", ">share", ">least δ", ">mean δ", "adequate")
    for each in result.customers:
        limited = not isnan(each.least_margin.mean)
        word = "yes" if each.adequate.mean == 1 else f"in {100 * each.adequate.mean:.0f} % of runs"
        rows.add_row(
            escape(each.name),
            str(each.jobs),
            str(each.failures),
            str(each.failure_share),
            str(each.least_margin) if limited else "",
            str(each.mean_margin) if limited else "",
            word if limited else "no limit",
        )
    show(console(), rows)
    print()
