"""The leaderboard: all push and pull policies on published, random and recorded systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, comb, inf, isfinite, log, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..allocation import allocate
from ..catalogue import find as find_system
from ..experiments import FAMILIES, Bout, contest, lower_bound, optimum, random_systems
from ..model import InputError, System
from ..model.error import file_errors
from ..policies import Policy
from ..policies import find as find_policy
from ..policies import policies as known_policies
from ..traces import Replay, Workload, replay

PUBLISHED = ("2.B", "2.C1", "2.D", "2.E", "2.F1", "2.F2", "2.G", "2.I1", "3.A:alpha1:2")
"""Systems of the theses, the last of them with failures; those with longer queues need more
time."""
FOREIGN = ("QGym-N", "QGym-5x5")
"""Systems of QGym that a policy can keep up with, and that settle in a run."""
LOADS = (0.3, 0.9)
"""Loads of the random systems."""
ACCURACY = 1e-3
"""Share by which an optimum may be off."""
MOST_STATES = 100_000
"""States up to which an optimum is computed; it starts with enough room for its queues."""
TRACE = "trace"
PER_TASK = "CPU µs"


class Score(NamedTuple):
    """One policy on one system."""

    suite: str
    system: str
    policy: str
    kind: str
    stable: bool | None
    mean: float
    """Mean number in system, mean cost if the system has costs, or mean response of a trace."""
    ratio: float
    """To the least mean of all stable policies; NaN unless stable."""
    above: float
    """To the optimum of pull and push, or to a lower bound; NaN if neither is known."""
    exact: bool
    """Whether that is the optimum."""
    p99: float
    """To the least 99th percentile of the response of all stable policies."""
    messages: float
    """Per task; NaN on a trace."""
    micros: float
    """CPU time of the simulator per task, decision included; NaN on a trace."""


class Standing(NamedTuple):
    """One policy on several systems; means of ratios are geometric."""

    policy: str
    kind: str
    best: float
    """Share of the systems where it has the least mean, or is within 1 % of it."""
    mean: float
    worst: float
    worst_on: str
    above: float
    worst_above: float
    bound: float
    """Mean ratio to the lower bound, on systems whose optimum is not known."""
    p99: float
    messages: float
    micros: float
    unstable: int
    undecided: int


@dataclass(frozen=True)
class Leaderboard:
    """All scores, and the sizes that they were made with."""

    scores: tuple[Score, ...]
    sizes: dict[str, Any]

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites, in order."""
        return tuple(dict.fromkeys(score.suite for score in self.scores))

    def standings(self, suite: str | None = None) -> list[Standing]:
        """Return how every policy did: those unstable on fewest systems first, then by ratio."""
        chosen = [each for each in self.scores if suite in (None, each.suite)]
        names = dict.fromkeys(each.policy for each in chosen)
        found = [_standing([each for each in chosen if each.policy == name]) for name in names]
        return sorted(found, key=lambda s: (s.unstable, inf if np.isnan(s.mean) else s.mean))

    def as_json(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            **self.sizes,
            "standings": [each._asdict() for each in self.standings()],
            "suites": {
                suite: [each._asdict() for each in self.standings(suite)] for suite in self.suites
            },
            "scores": [each._asdict() for each in self.scores],
        }

    def write_page(self, path: Path, command: str) -> None:
        """Write the page of the documentation."""
        with file_errors(path, "written"):
            path.write_text("\n".join(_page(self, command)) + "\n", encoding="utf-8")


def _standing(scores: Sequence[Score]) -> Standing:
    ranked = [each for each in scores if not np.isnan(each.ratio)]
    worst = max(ranked, key=lambda each: each.ratio, default=None)
    optima = [each.above for each in ranked if each.exact]
    return Standing(
        policy=scores[0].policy,
        kind=scores[0].kind,
        best=sum(each.ratio <= 1.01 for each in ranked) / len(scores),
        mean=_geometric([each.ratio for each in ranked]),
        worst=worst.ratio if worst else nan,
        worst_on=worst.system if worst else "",
        above=_geometric(optima),
        worst_above=max(optima, default=nan),
        bound=_geometric([each.above for each in ranked if not each.exact]),
        p99=_geometric([each.p99 for each in ranked]),
        messages=_mean([each.messages for each in scores]),
        micros=_mean([each.micros for each in scores]),
        unstable=sum(each.stable is False for each in scores),
        undecided=sum(each.stable is None for each in scores),
    )


def _geometric(values: Sequence[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return float(np.exp(np.log(known).mean())) if known else nan


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if isfinite(value)]
    return float(np.mean(known)) if known else nan


class Recorded(NamedTuple):
    """A trace to replay: its workload, and the system that runs it."""

    system: System
    work: Workload


def leaderboard(
    policies: Sequence[str | Policy] | None = None,
    *,
    published: Sequence[str] | None = None,
    families: Sequence[str] = tuple(FAMILIES),
    random: int = 3,
    recorded: Recorded | None = None,
    tasks: float = 10_000,
    replications: int = 5,
    seed: int = 1,
    progress: Callable[[str, float], None] = lambda doing, done: None,
    **options: Any,
) -> Leaderboard:
    """Simulate policies on all suites with common random numbers, and compute the optima.

    Parameters
    ----------
    policies
        By default every push and pull policy that ships with Gridwright.
    published, families, random
        Systems of the catalogue by name, and how many are drawn of which families.
    recorded
        A trace that is replayed once.
    tasks, replications, seed, options
        As for ``contest``; the seed also draws the systems.
    progress
        Called with what is done next, and the share done.
    """
    shipped = (each for each in known_policies().values() if each.is_shipped)
    central = [each for each in shipped if each.kind.is_central]
    chosen = [find_policy(each) for each in policies] if policies is not None else central
    suites: dict[str, list[System]] = {}
    for name in PUBLISHED + FOREIGN if published is None else published:
        suite = "QGym" if name.startswith("QGym") else "published"
        suites.setdefault(suite, []).append(find_system(name).system)
    for family in families:
        suites[family] = list(random_systems(random, seed, family, loads=LOADS))
    total, done = sum(map(len, suites.values())) + (recorded is not None), 0
    scores: list[Score] = []
    for suite, systems in suites.items():
        for system in systems:
            progress(system.name, done / max(total, 1))
            found = contest(
                [system], chosen, None, replications, seed, tasks=tasks, tails=True, **options
            )
            scores += _scores(suite, found.bouts[0])
            done += 1
    if recorded is not None:
        progress(recorded.system.name, done / total)
        scores += _replayed(recorded, chosen)
    if not scores:
        raise InputError("a leaderboard needs at least one system")
    sizes = {"random": random, "tasks": tasks, "replications": replications, "seed": seed}
    return Leaderboard(tuple(scores), sizes)


def _scores(suite: str, bout: Bout) -> Iterator[Score]:
    least, exact = _least(bout.system)
    results = bout.comparison.results
    tails = [each.figure("p99").mean for each in results]
    ranked = [tail for tail, each in zip(tails, results, strict=True) if each.stable]
    for result, mean, ratio, tail in zip(results, bout.means, bout.ratios, tails, strict=True):
        stable = result.stable
        yield Score(
            suite=suite,
            system=bout.system.name,
            policy=str(result.policy),
            kind=result.policy.kind.name,
            stable=stable,
            mean=float(mean),
            ratio=float(ratio),
            above=float(mean / least) if stable else nan,
            exact=exact,
            p99=tail / min(ranked) if stable else nan,
            messages=result.messages.mean * len(result.replications) / result.tasks,
            micros=1e6 * result.seconds / result.tasks,
        )


def _least(system: System) -> tuple[float, bool]:
    """Return the optimum of pull and push, or a lower bound, and whether it is the optimum."""
    if system.failures is not None or not 0 < (load := allocate(system).load) < 1:
        return nan, False
    (classes, machines), tasks = system.shape, log(0.0007) / log(load)
    if comb(max(8, ceil(tasks)) + classes, classes) * (classes + 1) ** machines > MOST_STATES:
        return lower_bound(system), False
    found = optimum(system, [], accuracy=ACCURACY)
    return (found.pull.mean_cost, True) if found.pull else (found.bound, False)


def _replayed(recorded: Recorded, policies: Sequence[Policy]) -> Iterator[Score]:
    runs: list[Replay] = [
        replay(recorded.system, recorded.work.jobs(), policy) for policy in policies
    ]
    means = np.array([run.responses.mean() for run in runs])
    tails = np.array([np.quantile(run.responses, 0.99) for run in runs])
    for run, mean, tail in zip(runs, means, tails, strict=True):
        yield Score(
            suite=TRACE,
            system=recorded.system.name,
            policy=str(run.policy),
            kind=run.policy.kind.name,
            stable=True,
            mean=float(mean),
            ratio=float(mean / means.min()),
            above=nan,
            exact=False,
            p99=float(tail / tails.min()),
            messages=nan,
            micros=nan,
        )


ABOUT = {
    "published": "systems of the theses, 3.A with failures",
    "QGym": "the N-model and the five-by-five system, by cost",
    TRACE: "jobs of a log, replayed once; by mean response",
    **{name: family.about for name, family in FAMILIES.items()},
}


def _page(board: Leaderboard, command: str) -> Iterator[str]:
    sizes = board.sizes
    yield "# The leaderboard\n"
    yield (
        "All push and pull policies on the same systems, with the same arrivals and amounts of "
        f"work. One command makes this page: `{command}`.\n"
    )
    yield (
        f"Every run has {sizes['tasks']:,.0f} tasks on average, of which the first tenth does not "
        f"count; there are {sizes['replications']} replications, and the seed is {sizes['seed']}. "
        f"{sizes['random']} systems are drawn of each family, with loads from {LOADS[0]} to "
        f"{LOADS[1]} ([families](how-to/make-random-systems.md)). So small a contest has noise: "
        "differences of a few percent may be chance. No policy here interrupts a task.\n"
    )
    yield "## All systems\n"
    yield from _table(board, None)
    yield ""
    yield (
        "- **ratio**: the mean number in system, or the mean cost where tasks have costs, or the "
        "mean response on a trace, over the least of all stable policies on the same system. "
        "Means are geometric, and over the systems where the policy is stable. *best on* is the "
        "share of all systems where the ratio is at most 1.01."
    )
    yield (
        "- **to the optimum**: the same over the least possible without interrupting tasks, on the "
        f"{_count(board, True)} systems where it can be computed "
        "([how](how-far-from-the-best.md)). **to the bound**: on "
        f"the {_count(board, False)} others with exponential times, over a lower bound that no "
        "policy may reach. Runs are short and start empty, so at a high load a ratio may be below "
        "1 by chance."
    )
    yield (
        "- **p99**: the 99th percentile of the response over the least of all stable policies. "
        "**messages**: per task; a request and an answer for every machine that is asked, or that "
        f"asks. **{PER_TASK}**: CPU time of the simulator per task, the decision included."
    )
    yield (
        "- Policies that are unstable on fewest systems come first, then by mean ratio. On an "
        "*undecided* system the runs are too short to tell whether the policy is stable; it has no "
        "ratio there.\n"
    )
    for suite in board.suites:
        names = dict.fromkeys(each.system for each in board.scores if each.suite == suite)
        yield f"## {suite[0].upper()}{suite[1:].replace('_', '-')}\n"
        yield f"{ABOUT.get(suite, '')[:1].upper()}{ABOUT.get(suite, '')[1:]}: {', '.join(names)}.\n"
        yield from _table(board, suite)
        yield ""
        if suite == TRACE:
            yield "[A day of a grid](a-day-of-a-grid.md) thanks those who provide such logs.\n"
    yield "## Enter your own policy\n"
    yield (
        "Write a policy ([how](how-to/add-a-policy.md)) and try it against the others: "
        "`gridwright research leaderboard --policies ./mine.py,pas,pas_dg,pas_late,maxweight`. To "
        "enter it, open one pull request with three changes: the policy in a file of its own in "
        "`src/gridwright/policies/`, named like its function, at most 45 lines, with its source in "
        "the docstring; its row in `docs/reference/policies.md`; and this page, made again by the "
        "command above. The tests find the policy by themselves."
    )


def _count(board: Leaderboard, exact: bool) -> int:
    known = {
        each.system
        for each in board.scores
        if each.exact is exact and each.stable and not np.isnan(each.above)
    }
    return len(known)


def _table(board: Leaderboard, suite: str | None) -> Iterator[str]:
    heads = ["policy", "kind", "best on", "mean ratio", "worst ratio", "on", "to the optimum"]
    heads += ["worst", "to the bound", "p99", "messages", PER_TASK, "unstable", "undecided"]
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|--:|--:|--:|---|" + "--:|" * (len(heads) - 6)
    for each in board.standings(suite):
        cells = [f"`{each.policy}`", each.kind, f"{100 * each.best:.0f} %"]
        cells += [_number(each.mean), _number(each.worst), each.worst_on]
        cells += [_number(each.above), _number(each.worst_above), _number(each.bound)]
        cells += [_number(each.p99), _number(each.messages, ".1f"), _number(each.micros, ".2f")]
        cells += [str(each.unstable), str(each.undecided)]
        yield f"| {' | '.join(cells)} |"


def _number(value: float, form: str = ".3f") -> str:
    if np.isnan(value):
        return "–"
    return f"{value:{form}}" if value < 100 else f"{value:,.0f}"
