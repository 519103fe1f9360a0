"""A run at a glance: without its jobs, so that a list of many long runs is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..grid import Journal
from ..model import InputError
from .experiment import Experiment

__all__ = ["Overview", "overview"]


class Overview(NamedTuple):
    """What there is to say of a run in a line."""

    run: int
    state: str
    """``running``, ``paused``, ``done``, ``stopped`` before its end, or ``unreadable``."""
    name: str
    system: str = ""
    policy: str = ""
    time_unit: float = 1.0
    duration: float = 0.0
    time_units: float = 0.0
    """How far it has come."""
    began: float = 0.0
    """By the clock, in seconds since 1970."""
    arrived: int = 0
    finished: int = 0
    mean_response: float | None = None


def overview(path: Path) -> Overview:
    """Glance at a run."""
    number = int(path.stem) if path.stem.isdigit() else 0
    try:
        journal = Journal(path, new=False)
    except InputError as error:
        return Overview(number, "unreadable", str(error))
    try:
        with journal.blamed():
            about = journal.told("kind", "experiment", "policy", "origin", "ended", "paused")
            if about.get("kind") != "run":
                return Overview(number, "unreadable", "not the journal of an experiment")
            return _overview(number, journal, about)
    except InputError as error:
        return Overview(number, "unreadable", str(error))
    finally:
        journal.close()


def _overview(number: int, journal: Journal, about: dict[str, Any]) -> Overview:
    words, fields = about["experiment"], Experiment.model_fields
    arrived, finished, mean = journal.tally()
    left = "done" if "ended" in about else "stopped"
    there = "paused" if about.get("paused") else "running"
    state = there if journal.is_claimed() else left
    return Overview(
        number,
        state,
        str(words.get("name", "")),
        str(words["system"].get("name", "")),
        str(about.get("policy", "")),
        float(words.get("time_unit", fields["time_unit"].default)),
        float(words.get("duration", fields["duration"].default)),
        float(about.get("ended") or journal.last()),
        float(about.get("origin", 0.0)),
        arrived,
        finished,
        mean,
    )
