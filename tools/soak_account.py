"""What a soak has come to: its acknowledgements, its journal and what its jobs wrote, compared."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gridwright.grid import Journal, Stage

__all__ = ["Account", "Keyed", "account", "keyed_account", "lines"]


class Account(NamedTuple):
    """How many jobs of each kind ended how, and what was wrong."""

    table: dict[str, dict[str, int]]
    longest_stall: float
    """Seconds in which innocent jobs waited and none ended, at most, while a client ran."""
    wrong: list[str]


class Keyed(NamedTuple):
    """A planned job of a soak with a service."""

    kind: str
    key: str
    clients: Sequence[int]
    """The clients that submit it."""
    outcome: str
    """What they should be told."""


def account(
    folder: Path, kinds: Sequence[str], finish: Collection[str], lives: Sequence[Sequence[float]]
) -> Account:
    """Compare what was acknowledged with what the journal has and what the jobs have written.

    Parameters
    ----------
    folder
        That of the soak.
    kinds
        The kind of every planned job.
    finish
        The kinds of jobs that end well.
    lives
        When each client was ready, and when it ended, in seconds since 1970.
    """
    acknowledged = [tuple(map(int, line.split())) for line in lines(folder / "acknowledged")]
    runs = Counter(map(int, lines(folder / "runs")))
    tries = Counter(map(int, lines(folder / "tried")))
    kept, ends, origin = read(folder / "journal.sqlite")
    wrong = [f"job {number} has ended {n} times" for number, n in ends.items() if n > 1]
    given = Counter(number for _, number in acknowledged)
    wrong += [f"number {number} was given to {n} jobs" for number, n in given.items() if n > 1]
    if len(acknowledged) < len(kinds):
        wrong.append(f"only {len(acknowledged)} of {len(kinds)} jobs were acknowledged")
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for k, number in acknowledged:
        row = table[kinds[k]]
        row["acknowledged"] += 1
        if number in kept:
            job = kept[number].job
            row.update({str(job.stage): 1, "attempts": job.attempt, "runs": runs[k]})
        found = kept.get(number)
        restarts = deaths_during(found.job, lives, origin) if found is not None else 0
        trouble = trouble_with(found, kinds[k] in finish, runs[k], tries[k], restarts)
        wrong += [f"job {number} ({kinds[k]}) {trouble}"] * bool(trouble)
    rows = {kind: dict(table[kind]) for kind in sorted(table)}
    return Account(rows, longest_stall(kept, lives, origin), wrong)


def keyed_account(
    folder: Path,
    journal: Path,
    jobs: Sequence[Keyed],
    finish: Collection[str],
    lives: Sequence[Sequence[float]],
) -> Account:
    """Compare what each client of a service was told of its keys with what the journal has.

    ``lives`` are those of the service; the other arguments are as for `account`.
    """
    runs = Counter(map(int, lines(folder / "runs")))
    kept, ends, origin = read(journal)
    wrong = [f"job {number} has ended {n} times" for number, n in ends.items() if n > 1]
    by_key: defaultdict[str, list[Any]] = defaultdict(list)
    for each in kept.values():
        by_key[each.job.key].append(each)
    heard: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for client in {client for job in jobs for client in job.clients}:
        for line in lines(folder / f"heard-{client}"):
            number, words = line.split(" ", 1)
            heard[client, int(number)].append(words)
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for k, planned in enumerate(jobs):
        row, found = table[planned.kind], by_key.pop(planned.key, [])
        row.update({"keys": 1, "jobs": len(found), "runs": runs[k]})
        if len(found) != 1:
            wrong.append(f"{planned.key} ({planned.kind}) has {len(found)} jobs in the journal")
            continue
        job = found[0].job
        row.update({str(job.stage): 1, "attempts": job.attempt})
        restarts = deaths_during(job, lives, origin)
        trouble = trouble_with(found[0], planned.kind in finish, runs[k], 1, restarts)
        if not trouble and planned.kind in finish and job.stage != Stage.finished:
            trouble = f"is {job.stage}: {found[0].error[-200:]}"
        wrong += [f"{planned.key} ({planned.kind}) {trouble}"] * bool(trouble)
        for client in planned.clients:
            said = heard[client, k]
            row["answers"] += len(said)
            if said != [f"{job.number} {planned.outcome}"]:
                wrong.append(f"client {client} was told of {planned.key}, job {job.number}: {said}")
    wrong += [f"nobody has planned {key}" for key in by_key]
    rows = {kind: dict(table[kind]) for kind in sorted(table)}
    return Account(rows, longest_stall(kept, lives, origin), wrong)


def trouble_with(kept: Any, finishes: bool, runs: int, tries: int, restarts: int) -> str:
    """Return what is wrong with an acknowledged job, if anything is.

    A job may run once more for each of the grid's ``restarts`` while it had not ended: the journal
    does not count a job as sent that was sent ahead and is not known to have begun.
    """
    if kept is None:
        return "was acknowledged and is not in the journal"
    job, lost = kept.job, kept.job.lost + kept.job.timed_out
    if not job.stage.is_final:
        return f"was acknowledged and is {job.stage}"
    if job.stage == Stage.finished and not finishes:
        return "has finished"
    if job.stage == Stage.finished and runs == 0:
        return "has finished without having run"
    if job.stage == Stage.failed and finishes and lost == 0:
        return f"has failed: {kept.error[-200:]}"
    # with several tries another job, not acknowledged, did the same
    if runs > job.attempt + restarts and tries == 1:
        return f"ran {runs} times and was sent {job.attempt} times"
    return ""


def deaths_during(job: Any, lives: Sequence[Sequence[float]], origin: float) -> int:
    """Count how often the grid ended between the submission and the end of a job."""
    return sum(job.submitted <= ended - origin <= job.settled for _, ended in lives)


def read(path: Path) -> tuple[dict[int, Any], Counter[int], float]:
    """Return the jobs of a journal, how often each has ended, and when the journal began."""
    journal = Journal(path)
    try:
        ends = Counter(
            entry.job
            for entry in journal.events()
            if entry.kind in ("finished", "failed", "cancelled") and entry.job is not None
        )
        kept = {each.job.number: each for each in journal.jobs()}
        return kept, ends, float(journal.about["origin"])
    finally:
        journal.close()


def longest_stall(kept: dict[int, Any], lives: Sequence[Sequence[float]], origin: float) -> float:
    """Return the longest time in which innocent jobs waited and none ended, while a client ran."""
    innocent = [each.job for each in kept.values() if each.task_class == "quick"]
    moments = [(job.submitted + origin, 1) for job in innocent]
    moments += [(job.settled + origin, -1) for job in innocent if job.stage.is_final]
    longest = 0.0
    for ready, ended in lives:
        waiting = sum(change for when, change in moments if when <= ready)
        since = ready
        for when, change in sorted(each for each in moments if ready < each[0] <= ended):
            if change < 0:
                longest, since = max(longest, when - since), when
            elif waiting == 0:
                since = when
            waiting += change
    return longest


def lines(path: Path) -> list[str]:
    """Return the whole lines of a file; none if there is no file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []
