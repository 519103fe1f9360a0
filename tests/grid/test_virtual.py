"""Ctrl-C where a loop runs already: what runs apart is stopped, whenever it is pressed."""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gridwright.grid.executors.virtual import Stop, run_apart, run_virtually


def in_a_notebook(function: Callable[[], Any]) -> None:
    async def cell() -> None:
        function()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()


def press() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


async def long(ended: list[str]) -> None:
    try:
        for _ in range(10_000_000):
            await asyncio.sleep(1e-5)
        ended.append("by itself")
    except asyncio.CancelledError:
        ended.append("stopped")
        raise


def test_in_virtual_time() -> None:
    ended: list[str] = []

    async def run() -> None:
        press()
        await long(ended)

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(lambda: run_virtually(run()))
    assert ended == ["stopped"]


def test_before_the_loop_has_begun() -> None:
    ended: list[str] = []
    stop = Stop()

    async def until_stopped() -> None:
        stop.cancels(asyncio.current_task())
        await long(ended)

    def run() -> None:
        press()
        assert stop.wanted.wait(60)
        asyncio.run(until_stopped())

    with pytest.raises(KeyboardInterrupt):
        in_a_notebook(lambda: run_apart(run, stop))
    assert ended == ["stopped"]


def test_after_the_loop_has_ended() -> None:
    stop = Stop()

    async def short() -> str:
        stop.cancels(asyncio.current_task())
        return "ended"

    assert asyncio.run(short()) == "ended"
    stop()
    assert stop.wanted.is_set()
