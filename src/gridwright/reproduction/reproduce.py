"""``reproduce``: the published tables and figures beside our own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..catalogue import Cell
from ..statistics import Estimate
from . import benchmarks, chains, decentralised, question
from .account import Judged, by_reading
from .laboratory import Laboratory, Run
from .question import Answer, Question, is_of_testbed
from .reading import printed_cell
from .target import Target, choose
from .testbed_runs import sighting
from .verdict import (
    Judgement,
    Verdict,
    allowed,
    contradictions,
    judge,
    judge_stability,
    tally,
    words,
)


class Outcome(NamedTuple):
    """A printed cell, our answer to it, and the verdict."""

    cell: Cell
    ours: Estimate | None
    stable: bool | None
    judgement: Judgement
    undecided: bool = False
    """Whether our runs are too short to tell if they are stable."""

    @property
    def reading(self) -> str:
        """The name of its reading; empty for the primary one."""
        return str(self.cell.get("reading", ""))

    @property
    def published(self) -> str:
        """The cell as it is printed."""
        return words(self.cell)

    @property
    def found(self) -> str:
        """Our answer in words: neither an exact one nor an unstable one has an interval."""
        number = ""
        if self.ours is not None:
            exact = self.ours.low == self.ours.high
            grows = self.stable is False  # a longer run would give a larger number
            number = f"{self.ours.mean:.6g}" if exact else str(self.ours)
            number = number.partition(" ± ")[0] if grows else number
        return f"{number} {self.stability}".strip()

    @property
    def stability(self) -> str:
        """``unstable`` or ``undecided``; empty for a stable policy."""
        return "unstable" if self.stable is False else "undecided" if self.undecided else ""

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as ``--json`` prints it."""
        return {
            **{key: value for key, value in self.cell.items() if key != "note"},
            "published": self.published,
            "ours": None if self.ours is None else self.ours.as_json(),
            "stable": self.stable,
            "verdict": str(self.judgement.verdict),
            "reason": self.judgement.reason,
        }


class Reproduction(NamedTuple):
    """A target with the outcome of each of its cells."""

    target: Target
    outcomes: tuple[Outcome, ...]

    @property
    def picture(self) -> str:
        """The file that it is drawn into; empty if it is no figure, or has no numbers."""
        if "Figure" not in self.target.name or not any(each.ours for each in self.outcomes):
            return ""
        return f"{self.target.name.lower().replace(':', '-').replace(' ', '-')}.svg"

    def as_json(self) -> dict[str, Any]:
        """Return the table as ``--json`` prints it."""
        return {
            "name": self.target.name,
            "about": self.target.about,
            "cells": [outcome.as_json() for outcome in self.outcomes],
            "summary": summary([self]),
            "readings": by_reading(judged([self])),
        }


def reproduce(
    *tables: str | Target, laboratory: Laboratory | None = None
) -> tuple[Reproduction, ...]:
    """Reproduce published tables and figures, all of them if none is named.

    >>> (found,) = reproduce("LP")
    >>> {str(outcome.judgement.verdict) for outcome in found.outcomes}
    {'agrees'}
    """
    laboratory = laboratory or Laboratory()
    chosen = [] if tables else choose([])
    for each in tables:
        chosen += [each] if isinstance(each, Target) else choose([each])
    return tuple(
        Reproduction(target, tuple(_outcome(cell, laboratory) for cell in target.cells))
        for target in chosen
    )


def runs_of(targets: Sequence[Target]) -> list[Run]:
    """List the simulations that targets need, each once, in the order they come up."""
    found: dict[Run, None] = {}
    for target in targets:
        for cell in target.cells:
            if not is_of_testbed(cell):
                found |= dict.fromkeys(ask(cell).runs)
    return list(found)


def summary(found: Iterable[Reproduction]) -> dict[str, int]:
    """Count the verdicts of the primary reading."""
    return tally(o.judgement.verdict for each in found for o in each.outcomes if not o.reading)


def judged(found: Sequence[Reproduction]) -> list[Judged]:
    """Return the verdict of every cell, with its source and reading."""
    primary = primary_verdicts(found)
    return [
        Judged(
            each.target.name.partition(":")[0],
            outcome.reading,
            str(outcome.judgement.verdict),
            primary.get(printed_cell(outcome.cell), "") if outcome.reading else "",
        )
        for each in found
        for outcome in each.outcomes
    ]


def primary_verdicts(found: Iterable[Reproduction]) -> dict[tuple[object, ...], str]:
    """Return the verdict of every printed cell in the primary reading."""
    return {
        printed_cell(outcome.cell): str(outcome.judgement.verdict)
        for each in found
        for outcome in each.outcomes
        if not outcome.reading
    }


def _outcome(cell: Cell, laboratory: Laboratory) -> Outcome:
    if is_of_testbed(cell):
        return _seen(cell)
    runs, answer = ask(cell)
    found = answer(tuple(laboratory.result(run) for run in runs))
    return Outcome(cell, found.ours, found.stable, judgement_of(cell, found), found.undecided)


def _seen(cell: Cell) -> Outcome:
    """Answer a cell of the testbed from runs of our own, if there are any."""
    found, words = sighting(cell)
    if found is None:
        errata = [
            f"known erratum: {remark.text}"
            for remark in contradictions(cell)
            if remark.kind != "difference"  # differences concern only the model
        ]
        return Outcome(cell, None, None, Judgement(Verdict.not_run, "; ".join([words, *errata])))
    if cell.get("status") == "none_executed" or found.ours is None:
        same = (cell.get("status") == "none_executed") == (found.ours is None)
        judgement = Judgement(Verdict.agrees if same else Verdict.differs, found.detail)
    else:
        judgement = judgement_of(cell, found)
    reason = "; ".join(filter(None, [judgement.reason, words]))
    judgement = judgement._replace(reason=reason)
    return Outcome(cell, found.ours, found.stable, judgement, found.undecided)


def judgement_of(cell: Cell, found: Answer) -> Judgement:
    """Judge an answer to a cell."""
    remarks = contradictions(cell)
    status = cell.get("status")
    if status == "blank":
        if found.worse:
            return Judgement(Verdict.agrees, "unstable" if found.stable is False else "")
        if found.undecided:
            return judge_stability(None, status)
        return Judgement(Verdict.differs, "ours is neither unstable nor ten times worse than Gcmu")
    if status is not None:
        judgement = judge_stability(found.stable, status, remarks)
        if judgement.verdict == Verdict.differs and found.detail:
            return Judgement(Verdict.differs, f"{judgement.reason} {found.detail}")
        return judgement
    assert found.ours is not None
    percent = str(cell["metric"]).endswith("_pct")
    return judge(found.ours, allowed(cell), remarks, value=cell.get("value"), percent=percent)


CENTRAL = {**question.QUESTIONS, **chains.QUESTIONS, **benchmarks.QUESTIONS}


def ask(cell: Cell) -> Question:
    """Return the question of a cell."""
    if "length" in cell:
        return question.one_run(cell)
    if "share" in cell:
        changed = ("share", "settings", "reading")
        stated = {key: value for key, value in cell.items() if key not in changed}
        return question.shifted(cell, ask(stated))
    known = decentralised.QUESTIONS if decentralised.is_decentralised(cell) else CENTRAL
    return known[cell["metric"]](cell)
