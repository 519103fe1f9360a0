"""Place tasks from the scheduler's side: ``dask scheduler --preload gridwright.dask``.

Options that are not given come from Dask's configuration, under ``gridwright``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import click
from distributed import Scheduler, SchedulerPlugin

import dask

from ..model import InputError
from ..model.error import did_you_mean
from .learning import GROUPS, Memory
from .placement import Placement

LOG = logging.getLogger("distributed.gridwright")
"""Written to the log of the scheduler."""
SETTINGS = ("policy", "groups", "memory", "compare")
"""What may be given as an option or in Dask's configuration."""


def placement_of(**given: Any) -> Placement:
    """Return the plugin of these options; those that are None are taken from the configuration."""
    configured = dask.config.get("gridwright", None) or {}
    if not isinstance(configured, dict):
        raise InputError(f"gridwright is {configured!r} in Dask's configuration; expected a table")
    for name in configured:
        if name not in SETTINGS:
            hint = did_you_mean(name, SETTINGS) or f"; expected {', '.join(SETTINGS)}"
            raise InputError(f"gridwright.{name} in Dask's configuration is unknown{hint}")
    found = {**configured, **{name: value for name, value in given.items() if value is not None}}
    plugin = Placement(**{name: value for name, value in found.items() if value is not None})
    Memory(plugin.memory)  # it can be read
    return plugin


class PreloadCommand(click.Command):
    """Refuses wrong settings where Dask reads the command line, before a scheduler is started.

    Dask starts a scheduler even if a preload fails. So errors that are found when it starts go to
    `dask_setup`, which stops the scheduler.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, and check them together with Dask's configuration."""
        try:
            rest = super().parse_args(ctx, args)
            placement_of(**ctx.params)
        except (InputError, click.UsageError) as error:
            text = error.format_message() if isinstance(error, click.UsageError) else str(error)
            if not _is_starting():
                raise click.UsageError(text) from None
            ctx.params, rest = {"wrong": text}, []
        return rest


@click.command(cls=PreloadCommand)
@click.option("--gridwright-policy", "policy", metavar="POLICY", help="Chooses the workers.")
@click.option(
    "--gridwright-groups", "groups", metavar="|".join(GROUPS), help="Which workers are alike."
)
@click.option("--gridwright-memory", "memory", metavar="PATH", help="Keeps what was learnt.")
@click.option(
    "--gridwright-compare", "compare", metavar="SHARE", help="Share of decisions to compare."
)
async def dask_setup(scheduler: Any, wrong: str = "", **given: Any) -> None:
    """Let a policy choose the workers of a scheduler that starts; stop it if a setting is wrong."""
    if not isinstance(scheduler, Scheduler):
        LOG.warning("gridwright.dask does nothing in a %s", type(scheduler).__name__)
        return
    if wrong and click.get_current_context(silent=True) is not None:  # this is `dask scheduler`
        click.echo(f"Error: {wrong}", err=True)
        asyncio.get_running_loop().call_soon(sys.exit, 2)
        await asyncio.Event().wait()  # until then
    plugin = Refusal(wrong) if wrong else placement_of(**given)
    scheduler.add_plugin(plugin)  # the scheduler starts it
    if not wrong:
        LOG.info("  Tasks are placed by: %s", plugin.policy)


class Refusal(SchedulerPlugin):  # type: ignore[misc]
    """Stops a scheduler that starts in a program of the user's."""

    name = "gridwright"

    def __init__(self, text: str) -> None:
        self.text = text

    async def start(self, scheduler: Any) -> None:
        """Raise the error in the program."""
        raise InputError(self.text)


def _is_starting() -> bool:
    """Tell whether a scheduler is starting, and Dask has read its command line."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
