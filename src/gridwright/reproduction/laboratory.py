"""Run published experiments: each once, at one scale; the results are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..allocation import dantzig, dual
from ..catalogue import find
from ..experiments import (
    GPU,
    HORIZON,
    Kept,
    Result,
    Wanted,
    simulate,
    simulate_ahead,
    simulate_in_pieces,
)
from ..model import System
from ..policies import find as find_policy
from ..simulation import Pieces, is_planned_in_python


class Run(NamedTuple):
    """One simulation: a published system, perhaps changed, under a policy."""

    system: str
    policy: str
    changes: str = "{}"
    """Parts of the system that are changed, as JSON."""
    bodies: int = 1
    """Replications that a published run is the sum of; these are short and never shortened."""
    length: float | None = None
    """The length of the one published run that it is compared with; it is never shortened."""
    share: float = 1.0
    """Of the usual length, for a run that is only compared with another of the same share."""

    def changed(self) -> System:
        """Return the system as it is to be simulated."""
        return find(self.system).system.replace(**json.loads(self.changes))

    def __str__(self) -> str:
        return f"{self.system} {self.policy}"


class Scale(NamedTuple):
    """How long and how often an experiment is run, against the published 30 times its length."""

    replications: int
    share: float
    """Of the published length, for every system."""
    shares: tuple[tuple[str, float], ...] = ()
    """A further share for systems whose published length takes hours, by how names begin."""
    pieces: tuple[tuple[str, Pieces], ...] = ()
    """How a GPU cuts the runs of such systems, by how names begin."""

    def horizon(self, system: str) -> float:
        """Return the length of a run of a published system."""
        return float((find(system).horizon or HORIZON) * self.share * self.extra(system))

    def length(self, run: Run) -> float | None:
        """Return the length of a run."""
        if run.length is not None:
            return run.length
        if run.bodies > 1:
            return find(run.system).horizon
        return self.horizon(run.system) * run.share

    def times(self, run: Run) -> int:
        """Return how many replications a run needs: of several bodies, a third as many times."""
        return self.replications if run.bodies == 1 else run.bodies * max(2, self.replications // 3)

    def extra(self, system: str) -> float:
        """Return the further share of a system's length."""
        return next((share for start, share in self.shares if system.startswith(start)), 1.0)

    def pieces_of(self, system: str) -> Pieces | None:
        """Return how the runs of a system are cut; None if they are not."""
        return next((cut for start, cut in self.pieces if system.startswith(start)), None)

    def __str__(self) -> str:
        times = f"{self.replications} replications"
        length = "of the published length"
        if self.share != 1:
            length = f"of 1/{1 / self.share:g} of the published length"
        others = [f"{name} at 1/{1 / share:g}" for name, share in self.shares]
        return f"{times} {length}" + (f" ({', '.join(others)} of that)" if others else "")


LONG = (("3.F", 1 / 10), ("3.G", 1 / 100), ("4.B", 1 / 100))
PIECES = (("3.F", Pieces(128, 20.0)), ("3.G", Pieces(128, 2e6)))
"""A piece is much longer than its warm-up, and that is longer than the system takes to settle. The
mean uptime and repair of 3.F are 20 and 4. 3.G settles in 5 × 10⁵ time units (40 to 60 runs of 10⁷
under each policy). Under FCFS, 3.G2 with alpha2 does not: it still grew after 2 × 10⁸."""
PARTS = 3
"""In which the replications of long runs are simulated: what is done is kept after each."""
FULL = Scale(30, 1.0)
FULL_ON_GPU = Scale(30, 1.0, pieces=PIECES)
PUBLISHED = Scale(30, 1.0, LONG)
QUICK = Scale(5, 1 / 20, LONG)


@dataclass
class Laboratory:
    """Run experiments, each once; ``show`` is told what is run, and how many runs are done."""

    scale: Scale = PUBLISHED
    seed: int = 1
    threads: int | None = None
    on: str | None = None
    store: Kept | None = None
    show: Callable[[str, float], None] = lambda what, done: None
    results: dict[Run, Result] = field(default_factory=dict)
    ahead: set[Run] = field(default_factory=set)
    """Runs that were simulated before their results are asked for."""
    whole: set[Run] = field(default_factory=set)
    """Runs that are not cut, because their pieces are too short to tell whether they settle."""
    discarded: float = 0.0
    """Seconds of the GPU for pieces that did not tell."""

    def work(self) -> str:
        """Say how much was simulated."""
        found = self.results.items()
        there = sum((r.seconds for run, r in found if self._place(run) == GPU), self.discarded)
        here = sum(r.seconds for run, r in found if self._place(run) != GPU)
        return _work(len(found), sum(r.tasks for _, r in found), here, there)

    def simulate_ahead(self, runs: Sequence[Run]) -> None:
        """Simulate on the GPU those of some runs that can; others are left.

        All that are whole run together, then all that are cut. These take long and end together, so
        a part of their replications is run after the other: what is done is kept.
        """
        there = [run for run in runs if self._place(run) == GPU]
        whole = [run for run in there if self.cut_of(run) is None]
        cut = [run for run in there if self.cut_of(run) is not None]
        for some, kind, parts in ((whole, "run", 1), (cut, "long run", PARTS)):
            if some:
                what = f"{len(some)} {kind}{'' if len(some) == 1 else 's'} on the GPU"
                self._simulate_together(some, what, parts)

    def _simulate_together(self, runs: Sequence[Run], what: str, parts: int) -> None:
        """Simulate runs on the GPU, all of them together, their replications in some parts."""
        before, every = len(self.ahead), list(map(self._wanted, runs))
        for part in range(parts):

            def tell(share: float, done: int = part) -> None:
                self.show(what, before + (done + share) / parts * len(runs))

            some = [
                each._replace(replications=-(-each.replications * (part + 1) // parts))
                for each in every
            ]
            self.store = simulate_ahead(some, self.store, tell)
            tell(1.0)
        self.ahead.update(runs)

    def result(self, run: Run) -> Result:
        """Return the result of a run."""
        if run not in self.results:
            self.results[run] = self._simulated(run)
        return self.results[run]

    def cut_of(self, run: Run) -> Pieces | None:
        """Return how a run is cut; None if it is not, or not any more."""
        return self.scale.pieces_of(run.system) if self._place(run) == GPU else None

    def _simulated(self, run: Run) -> Result:
        cut = self.cut_of(run)
        if cut is not None:
            found = simulate_in_pieces(
                self._wanted(run), self.store, lambda done: self._tell(run, done)
            )
            if found.stable is not None:
                return found
            self.whole.add(run)
            self.ahead.discard(run)
            self.discarded += found.seconds
        return simulate(
            *self._call(run),
            threads=self.threads,
            on=self._place(run),
            store=self.store,
            progress=lambda done, runs: self._tell(run, done),
        )

    def _tell(self, run: Run, share: float) -> None:
        """Show how many runs are done, with a share of one that is being simulated."""
        more = 0.0 if run in self.ahead else share
        self.show(str(run), len(self.results.keys() | self.ahead) + more)

    def _wanted(self, run: Run) -> Wanted:
        """Return what the GPU is to simulate for a run."""
        return Wanted(*self._call(run), pieces=self.cut_of(run))

    def _call(self, run: Run) -> tuple[System, str, float | None, int, int]:
        """Return what a run is, how long and how often it is run, and its seed."""
        length, times = self.scale.length(run), self.scale.times(run)
        return run.changed(), run.policy, length, times, self.seed

    def _place(self, run: Run) -> str | None:
        """Return where a run is simulated: a GPU runs push and pull policies that it can plan.

        One of its threads takes a quarter of a second for a new plan with a textbook's tableau.
        """
        policy = find_policy(run.policy)
        if self.on != GPU:
            return self.on
        if run in self.whole or not policy.kind.is_central or is_planned_in_python(policy):
            return None
        is_textbook = policy.planner in (dantzig, dual)
        return None if is_textbook and run.changed().failures is not None else GPU


def _work(runs: int, tasks: int, here: float, there: float = 0.0) -> str:
    """Say how much that is, in units that fit it; a GPU's seconds are those of its launches.

    >>> _work(1, 4321, 0.0123)
    '1 run, 4,321 tasks, 0.012 CPU seconds in the simulator'
    >>> _work(825, 27_720_000_000, 8100)
    '825 runs, 27.72 billion tasks, 135 CPU minutes in the simulator'
    >>> _work(2, 2_000_000, 0.0, 98.7)
    '2 runs, 2.00 million tasks, 99 seconds of the GPU in the simulator'
    """
    many = f"{tasks:,}" if tasks < 1e6 else f"{tasks / 1e6:.2f} million"
    many = many if tasks < 1e9 else f"{tasks / 1e9:.2f} billion"
    long = [f"{here:.2g} CPU seconds" if here < 99 else f"{here / 60:.0f} CPU minutes"]
    if there > 0.0:
        long = [*long[: here > 0.0], f"{there:.0f} seconds of the GPU"]
    return f"{runs} run{'' if runs == 1 else 's'}, {many} tasks, {', '.join(long)} in the simulator"
