"""Count, for many rules that choose a vertex of the allocation LP, the printed cells they meet.

    python tools/vertex_rules.py still            # every rule, on systems that never fail
    python tools/vertex_rules.py fail             # the rules of the table, on systems that fail
    python tools/vertex_rules.py table            # write the table of rules × systems

Results are kept in a file (``--kept``): what is there is not simulated again, so both searches can
be stopped and continued. ``--seconds`` stops a search after some time.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from math import hypot
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from textbook_simplex import FORMS, PRICING, SMALL, Floats, Rule, rules, solve

from gridwright.allocation import Situation, allocate, make_workspace, vertex
from gridwright.allocation.allocation import groups_of, situation
from gridwright.allocation.highs import solve_highs
from gridwright.allocation.planner import solve as solve_groups
from gridwright.catalogue import Cell
from gridwright.experiments import Result, Store, simulate
from gridwright.policies import find
from gridwright.reproduction import Run, Scale, read_data, targets
from gridwright.reproduction.question import is_of_testbed, run_of
from gridwright.reproduction.verdict import allowed, contradictions, judge, words
from gridwright.statistics import Estimate, estimate, plus

Planner = Callable[[Situation], Floats]

LONG = Scale(30, 1 / 4)
STILL = Scale(30, 1 / 10)
FAILING = Scale(10, 1 / 40)
TOO_LARGE = 100
"""Machines from which on a dense tableau is too slow to be solved at every failure."""
BEST = 12
"""Rules that the search without failures hands on to the search with failures."""


class Row(NamedTuple):
    """The printed cells that one simulation answers."""

    run: Run
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """The system, and whether availabilities are hidden from the policy."""
        return self.run.system + (" a=1" if "use_availability" in self.run.policy else "")

    @property
    def fails(self) -> bool:
        """Whether machines fail, so that a rule makes many plans."""
        return self.run.changed().failures is not None

    @property
    def differ(self) -> bool:
        """Whether machines of a group differ in availability."""
        now = situation(self.run.changed())
        pairs = set(zip(now.group.tolist(), now.availability.tolist(), strict=True))
        return len(pairs) > len(set(now.group.tolist()))


@cache
def rows() -> tuple[Row, ...]:
    """Find every simulated row of LPAS_DG on a system with groups of equal machines."""
    found: dict[Run, list[Cell]] = {}
    for target in targets().values():
        for cell in target.cells:
            if cell.get("policy") != "LPAS_DG" or is_of_testbed(cell) or "reading" in cell:
                continue
            if cell["metric"] in ("W_mean", "W_class", "Delta_pct") and "changes" not in cell:
                found.setdefault(run_of(cell), []).append(cell)
    return tuple(
        Row(run, tuple(cells))
        for run, cells in found.items()
        if max(np.bincount(groups_of(run.changed().nominal))) > 1
    )


def filled(way: str) -> Planner:
    """Fill the machines of every group one after the other, class by class, in some order."""

    def plan(now: Situation) -> Floats:
        space = make_workspace(now)
        solve_groups(now, space)
        found = np.zeros(now.rates.shape)
        for g in range(space.time.shape[1]):
            own = np.flatnonzero(now.group == g).tolist()
            own.sort(key=lambda j: KEYS[way](j, float(now.availability[j])))
            left = now.availability.copy()
            for i in range(len(found)):
                wanted = float(space.time[i, g])
                for j in own:
                    part = min(wanted, left[j])
                    if part > SMALL:
                        found[i, j] = part
                        wanted -= part
                        left[j] -= part
        return found

    return plan


KEYS: dict[str, Callable[[int, float], Any]] = {
    "machines backwards": lambda j, a: -j,
    "slowest first": lambda j, a: (a, j),
    "fastest first": lambda j, a: (-a, j),
}


def highs(now: Situation) -> Floats:
    """Ask HiGHS, whose default is a dual simplex method after presolving."""
    up = np.flatnonzero(now.availability > 0)
    weights = now.rates[:, up] * now.availability[up] / now.arrivals[:, None]
    _, shares, _ = solve_highs(weights)
    found = np.zeros(now.rates.shape)
    found[:, up] = np.where(shares > SMALL, shares, 0) * now.availability[up]
    return found


def textbook(rule: Rule) -> Planner:
    """Plan with the vertex that a rule finds."""
    return lambda now: solve(rule, now)[1]


@cache
def planners() -> dict[str, Planner]:
    """Return every planner of the search by its name."""
    return OTHERS | {str(rule): textbook(rule) for rule in rules(every=True)}


OTHERS: dict[str, Planner] = {
    "groups filled, machines on": vertex,
    **{f"groups filled, {way}": filled(way) for way in KEYS},
    "HiGHS": highs,
}


def tried(*, every: bool = False) -> list[str]:
    """Name the rules of the search without failures."""
    return [*OTHERS, *map(str, rules(every=every))]


def plain() -> list[str]:
    """Name the rules that are tried on every system, whatever the search finds."""
    textbooks = [Rule(form, pricing) for form in FORMS for pricing in PRICING]
    names = map(str, (*textbooks, Rule(ties="last")))
    return [*OTHERS, *(name for name in names if name in planners())]


class Kept:
    """Verdicts by system and planner, or plan, in a file to which lines are added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                each = json.loads(line)
                self.found[each["system"], each["plan"]] = each["cells"]

    def verdicts(self, row: Row, plan: str, make: Callable[[], list[dict[str, Any]]]) -> None:
        """Keep the verdicts on a row under a plan, unless they are there."""
        if (row.name, plan) in self.found:
            return
        self.found[row.name, plan] = cells = make()
        with self.path.open("a", encoding="utf-8") as file:
            line = {"system": row.name, "plan": plan, "cells": cells}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


@cache
def long_run(run: Run, policy: str) -> tuple[Estimate, ...]:
    """Return the mean responses of all tasks and of each class, from runs of published length.

    They are those of ``docs/reproduction.json``; what is not there is simulated, in shorter runs.
    """
    recorded = recorded_runs().get((run.system, policy), {})
    names = ["mean response", *(f"class {i + 1}" for i in range(len(run.changed().arrivals)))]
    if all(name in recorded for name in names):
        return tuple(recorded[name] for name in names)
    horizon = LONG.horizon(run.system)
    result = simulate(run.changed(), policy, horizon, LONG.replications, threads=1, store=Store())
    return tuple(estimate(values) for values in responses(result).T)


@cache
def recorded_runs() -> dict[tuple[str, str], dict[str, Estimate]]:
    """Return the recorded numbers of every system and policy, by what they are."""
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for section in read_data().sections:
        for row in section.rows:
            mean, _, half = row.ours.partition(" ± ")
            policy = {"LPAS_DG": "lpas_dg", "Gcmu": "gcmu"}.get(row.policy)
            if policy and half and "run " not in row.reason and "unstable" not in half:
                value, width = float(mean), float(half)
                ours = Estimate(value, value - width, value + width)
                found.setdefault((row.system, policy), {}).setdefault(row.what, ours)
    return found


def responses(result: Result) -> Floats:
    """Return the mean responses of all tasks and of each class, a row for each replication."""
    by_class = [each.response for each in result.replications]
    return np.column_stack([result.values("mean_response"), np.array(by_class)])


@cache
def short_run(run: Run, scale: Scale) -> Floats:
    """Return the mean responses with the usual planner in the replications of a rule's run."""
    horizon = scale.horizon(run.system)
    return responses(simulate(run.changed(), run.policy, horizon, scale.replications, threads=1))


def judged(row: Row, planner: Planner, scale: Scale) -> list[dict[str, Any]]:
    """Simulate a row with a planner, and judge its cells as ``reproduce`` does.

    The rule's short run is compared with that of the usual planner, replication by replication;
    with the same arrivals and failures both are off by nearly the same. The difference is added to
    the usual planner's long run. The interval counts the errors of both.
    """
    run = row.run
    policy = replace(find(run.policy), planner=planner, planning=MappingProxyType({}))
    horizon = scale.horizon(run.system)
    own = responses(simulate(run.changed(), policy, horizon, scale.replications, threads=1))
    differences = own - short_run(run, scale)
    found = [
        plus(usual, estimate(values))
        for usual, values in zip(long_run(run, run.policy), differences.T, strict=True)
    ]
    return [_judged(row, cell, found) for cell in row.cells]


def _judged(row: Row, cell: Cell, found: list[Estimate]) -> dict[str, Any]:
    ours = found[int(cell["class"]) if cell["metric"] == "W_class" else 0]
    if cell["metric"] == "Delta_pct":
        gcmu = long_run(row.run, "gcmu")[0]
        share = ours.mean / gcmu.mean
        half = share * hypot(ours.half_width / ours.mean, gcmu.half_width / gcmu.mean)
        ours = Estimate(*(100 * (1 - each) for each in (share, share + half, share - half)))
    judgement = judge(ours, allowed(cell), contradictions(cell))
    keys = ("src", "metric", "class")
    return {
        **{key: cell[key] for key in keys if key in cell},
        "published": words(cell),
        "ours": str(ours),
        "verdict": str(judgement.verdict),
    }


def canonical(now: Situation, plan: Floats) -> str:
    """Name the permitted pairs of a plan; machines of a group that are equally fast are alike."""
    columns = [
        (int(g), float(a), "".join("x" if share > 0 else "." for share in shares))
        for g, a, shares in zip(now.group, now.availability, plan.T, strict=True)
    ]
    return " ".join(pattern for _, _, pattern in sorted(columns))


@cache
def still_plan(name: str, run: Run) -> tuple[str, Floats]:
    """Return the plan of a rule for a system that never fails, with the name of its pattern.

    The name is empty where rounding kept a rule from an optimum: it went a long way around.
    """
    now = situation(run.changed())
    plan = planners()[name](now)
    work = (plan * now.rates).sum(axis=1) / now.arrivals
    return canonical(now, plan) if work.min() > best(run) * (1 - 1e-6) else "", plan


@cache
def best(run: Run) -> float:
    """Return the largest capacity of a system."""
    return allocate(run.changed()).capacity


def search_still(kept: Kept, names: Iterable[str], chosen: Iterable[Row]) -> Iterator[None]:
    """Try rules on systems that never fail: every pattern is simulated once."""
    for row in chosen:
        for name in names:
            pattern, plan = still_plan(name, row.run)
            if not pattern:
                continue
            kept.verdicts(row, pattern, lambda r=row, p=plan: judged(r, lambda _: p, STILL))  # type: ignore[misc]
            yield


def search_failing(kept: Kept, names: Iterable[str], chosen: Iterable[Row]) -> Iterator[None]:
    """Try rules on systems whose machines fail."""
    for name in names:
        for row in chosen:
            kept.verdicts(row, name, lambda r=row, n=name: judged(r, planners()[n], FAILING))  # type: ignore[misc]
            yield


def score(kept: Kept, name: str, row: Row) -> tuple[int, int] | None:
    """Return how many cells of a row agree under a rule, and how many have a verdict."""
    key = name if row.fails else still_plan(name, row.run)[0]
    cells = kept.found.get((row.name, key))
    if cells is None:
        return None
    verdicts = [each["verdict"] for each in cells if each["verdict"] in ("agrees", "differs")]
    return verdicts.count("agrees"), len(verdicts)


def total(kept: Kept, name: str, chosen: Iterable[Row]) -> int:
    """Return how many cells of some rows agree under a rule."""
    return sum((score(kept, name, row) or (0, 0))[0] for row in chosen)


def finalists(kept: Kept) -> list[str]:
    """Return the plain rules and the best ones of the search without failures."""
    chosen = [row for row in rows() if row.differ and not row.fails]
    seen: set[tuple[str, ...]] = set()
    found = []
    for name in sorted(tried(), key=lambda name: -total(kept, name, chosen)):
        patterns = tuple(still_plan(name, row.run)[0] for row in chosen)
        if patterns not in seen:
            seen.add(patterns)
            found.append(name)
    return list(dict.fromkeys(plain() + found[:BEST]))


def write_table(kept: Kept, names: Iterable[str]) -> None:
    """Print rules × systems: how many cells agree; rules with the same numbers share a line."""
    chosen = [r for r in rows() if any(score(kept, name, r) for name in names)]
    lines: dict[tuple[int | None, ...], list[str]] = {}
    printed = [max((score(kept, n, r) or (0, 0))[1] for n in names) for r in chosen]
    for name in names:
        found = [score(kept, name, row) for row in chosen]
        lines.setdefault(tuple(each and each[0] for each in found), []).append(name)
    print("| rule | all | " + " | ".join(map(short, chosen)) + " |")
    print("|---|---:|" + "---:|" * len(chosen))
    print(f"| *printed cells* | {sum(printed)} | " + " | ".join(map(str, printed)) + " |")
    whole = [cells for cells in lines if None not in cells]
    rest = [cells for cells in lines if None in cells]
    for cells in (*sorted(whole, key=lambda cells: -sum(c or 0 for c in cells)), *rest):
        words = ["" if each is None else str(each) for each in cells]
        total = str(sum(each or 0 for each in cells)) if None not in cells else ""
        print(f"| {'; '.join(lines[cells])} | {total} | " + " | ".join(words) + " |")


def short(row: Row) -> str:
    """Shorten the name of a system for the head of a column.

    >>> short(Row(Run("3.A:table_3_11:3:deterministic", "lpas_dg"), ()))
    '3.11 deterministic'
    """
    system, _, rest = row.name.partition(":")
    if rest.startswith("table_3_11"):
        return f"3.11 {rest.rpartition(':')[2]}"
    if system.startswith("MGST"):
        return f"MGST {rest}"
    return f"{system} {rest.replace('alpha', 'α').replace(':', ', ')}"


def main() -> None:
    """Search, or write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("still", "fail", "table", "rows"))
    parser.add_argument("--kept", type=Path, default=Path("vertex_rules.jsonl"))
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--rules", nargs="*", help="names of rules, in place of the chosen ones")
    parser.add_argument("--systems", nargs="*", help="in place of those whose machines differ")
    parser.add_argument("--every", action="store_true", help="with choices that change nothing")
    given = parser.parse_args()
    kept = Kept(given.kept)
    wanted = [r for r in rows() if (r.name in given.systems if given.systems else r.differ)]
    wanted = [row for row in wanted if len(row.run.changed().machines) < TOO_LARGE]
    if given.what == "rows":
        for row in rows():
            print(row.name, len(row.cells), "fails" * row.fails, "differ" * row.differ)
    elif given.what == "table":
        write_table(kept, given.rules or finalists(kept))
    else:
        fails = given.what == "fail"
        chosen = [row for row in wanted if row.fails == fails]
        names = given.rules or (finalists(kept) if fails else tried(every=given.every))
        search = (search_failing if fails else search_still)(kept, names, chosen)
        start = time.monotonic()
        for _ in search:
            if time.monotonic() - start > given.seconds:
                break


if __name__ == "__main__":
    main()
