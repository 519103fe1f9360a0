"""Run the replications of several later calls of ``simulate`` together.

A GPU runs thousands of replications in the time of one. So a comparison, a sweep or a contest gives
it all of its replications at once, and then goes its usual way: each call of ``simulate`` finds its
replications here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ..model import System
from ..model.error import positive_numbers
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import Job, Pieces, Replication, in_pieces, joined, launch
from .device import GPU, find_device, job_of
from .rehearsal import prepare
from .result import Result
from .results_by_kind import result_of
from .simulate import (
    HORIZON,
    PolicyGiven,
    SystemGiven,
    check_numbers,
    options_of,
    resolve,
    seeds_of,
    simulate,
)
from .store import Kept, text_of


class Wanted(NamedTuple):
    """A call of ``simulate`` to come."""

    system: SystemGiven
    policy: PolicyGiven
    horizon: float | None
    replications: int
    seed: int
    warmup: float = 0.0
    tails: bool = False
    pieces: Pieces | None = None
    """How every replication is cut; then ``simulate_in_pieces`` finds it."""


class Ahead:
    """Replications in memory, and those of a store behind it."""

    def __init__(self, store: Kept | None = None) -> None:
        self.store = store
        self.found: dict[str, Replication] = {}
        self.kept: dict[str, str] = {}
        """Keys in the store."""

    def key(
        self, system: System, policy: Policy, seed: np.random.SeedSequence, options: dict[str, Any]
    ) -> str:
        """Return the key of a replication, of a user's policy too."""
        chosen = sorted(options.items())
        parts = (text_of(system), id(policy.decide), str(policy), chosen, seed.entropy)
        key = repr((*parts, seed.spawn_key))
        if self.store is not None and (kept := self.store.key(system, policy, seed, options)):
            self.kept[key] = kept
        return key

    def get(self, key: str) -> Replication | None:
        """Return a replication, or None if it is not there."""
        if key in self.found or self.store is None or key not in self.kept:
            return self.found.get(key)
        return self.store.get(self.kept[key])

    def put(self, key: str, replication: Replication) -> None:
        """Keep a replication, in the store too."""
        self.found[key] = replication
        if self.store is not None and key in self.kept:
            self.store.put(self.kept[key], replication)


def together(
    calls: Iterable[Wanted],
    options: dict[str, Any],
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Return the options of calls of ``simulate`` whose replications were run together.

    Options that all calls have in common are taken from them. Nothing is run if it was before.
    """
    store = options.get("store")
    if isinstance(store, Ahead):
        return options
    tails = bool(options.get("tails")) or len(options.get("within") or ()) > 0
    warmup, delays = options.get("warmup"), options.get("delays")

    def in_full(each: Wanted) -> Wanted:
        system, horizon = resolve(each.system, each.horizon)
        system = system if delays is None else system.replace(delays=delays)
        each = each._replace(system=system, horizon=horizon, tails=tails)
        return each if warmup is None else each._replace(warmup=warmup)

    asked = [in_full(each) for each in calls]
    _check(options, asked)
    ahead = simulate_ahead(asked, store, progress or (lambda share: None))
    return {**options, "store": ahead}


def _check(options: dict[str, Any], asked: Sequence[Wanted]) -> None:
    """Refuse before a long run what ``simulate`` would refuse after it."""
    signature(simulate).bind(None, None, **options)
    numbers = options.get("precision"), options.get("threads")
    check_numbers(HORIZON, 1, 0, 0.0, *numbers)
    positive_numbers("within", options.get("within") or (), "time units")
    chosen = {name: options[name] for name in ("trace", "rng") if name in options}
    for each in asked[:1]:
        system, horizon = resolve(each.system, each.horizon)
        options_of(system, find_policy(each.policy), horizon, on=GPU, **chosen)


def simulate_ahead(
    wanted: Iterable[Wanted],
    store: Kept | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Ahead:
    """Run all replications that some calls of ``simulate`` will need on the GPU, together."""
    ahead = store if isinstance(store, Ahead) else Ahead(store)
    jobs: list[Job] = []
    keys: list[list[str]] = []
    cuts: list[Pieces | None] = []
    prepared: dict[Any, Policy] = {}
    asked: set[str] = set()
    for each in wanted:
        system, policy, options, found = _named(each, ahead)
        missing = {k: s for k, s in found.items() if k not in asked and ahead.get(k) is None}
        asked.update(missing)
        if missing:
            if not policy.is_shipped and policy.decide not in prepared:
                prepared[policy.decide] = prepare(system, policy, options["rng"])
            if prepared.get(policy.decide, policy).allocating:
                policy = prepared[policy.decide]
            job = job_of(system, policy, list(missing.values()), options)
            jobs.append(job if each.pieces is None else in_pieces(job, each.pieces))
            keys.append(list(missing))
            cuts.append(each.pieces)
    parts: defaultdict[str, dict[int, Replication]] = defaultdict(dict)

    def on_done(job: int, number: int, replication: Replication) -> None:
        cut = cuts[job]
        if cut is None:
            ahead.put(keys[job][number], replication)
            return
        key, piece = keys[job][number // cut.number], number % cut.number
        parts[key][piece] = replication
        if len(parts[key]) == cut.number:
            every = parts.pop(key)
            ahead.put(key, joined(jobs[job], [every[k] for k in range(cut.number)]))

    if jobs:
        launch(find_device(), jobs, on_done, progress)
    return ahead


def simulate_in_pieces(
    wanted: Wanted,
    store: Kept | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Result:
    """Simulate long replications on the GPU, each in pieces, unless they were run ahead.

    The number in system is noted as a mean over the pieces, from the start of their warm-up.
    """
    ahead = simulate_ahead([wanted], store, progress)
    system, policy, options, found = _named(wanted, ahead)
    runs: Any = tuple(map(ahead.get, found))
    return result_of(system, policy, options["horizon"], 0.0, wanted.seed, runs, ())


def _named(
    each: Wanted, ahead: Ahead
) -> tuple[System, Policy, dict[str, Any], dict[str, np.random.SeedSequence]]:
    """Return what a call runs, under which conditions, and the seed of each key."""
    system, horizon = resolve(each.system, each.horizon)
    policy = find_policy(each.policy)
    warmup = each.warmup if each.pieces is None else each.pieces.warmup
    check_numbers(horizon, each.replications, each.seed, warmup)
    options = options_of(system, policy, horizon, each.warmup, tails=each.tails, on=GPU)
    where = {**options, "on": GPU if each.pieces is None else (GPU, *each.pieces)}
    seeds = seeds_of(each.seed, 0, each.replications)
    return system, policy, options, {ahead.key(system, policy, s, where): s for s in seeds}
