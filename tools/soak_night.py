"""A night of a grid in virtual time, on machines without processes: all faults at once."""

import asyncio
import math
import random
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gridwright.grid import Journal, Mapper, Settings, Stage
from gridwright.grid.event import Entry
from gridwright.grid.executors import Ended, MachineDown
from gridwright.grid.executors.virtual import FakeExecutor, run_virtually
from gridwright.grid.export_tables import job_rows
from gridwright.grid.job import Options
from gridwright.grid.journal import IN_MEMORY
from gridwright.grid.journal_queries import known_jobs
from gridwright.grid.operators import Operators
from gridwright.grid.turn import Submission
from gridwright.policies import find

__all__ = ["NIGHTS", "night", "show_nights"]

NIGHTS = [
    ("fail", "pas_dg"),
    ("fail", "mct"),
    ("resubmit", "fcfs"),
    ("resubmit", "guided_lpas"),
    ("duplicate", "lpas_dg"),
    ("duplicate", "lpas"),
    ("wait", "gcmu"),
    ("wait", "pas"),
]
"""What is done about time-outs, and the policy: one that pulls and one that pushes for each."""

WORK = {"small": 5.0, "medium": 15.0, "large": 30.0}
"""Mean seconds of the jobs of each class on the fastest machine."""
SLOW = [1.0, 1.0, 1.3, 1.3, 1.6, 2.0, 2.5, 3.0]
"""How much slower each machine is."""
LONGEST = 90.0
LIMIT = 150.0
"""The time limit of some innocent jobs, which is more than they take anywhere."""
SHORT = 60.0
"""The time limit of jobs that never end."""
TIRED = 1200.0
"""Seconds until an operator cancels a job that nothing else ends."""
PACE = 0.15
"""Jobs a second."""
CALM = 600.0
"""Mean seconds from the end of one fault of a machine to the next."""
DRAIN = 6 * 3600.0
"""Seconds in which everything must end after the night."""
KINDS = {"innocent": 0.94, "raises": 0.03, "poison": 0.02, "endless": 0.01}
LATE = 0.3
"""The share of the jobs that answer although they were stopped."""
AHEAD = 3
"""How many jobs a machine may have ahead, though they are not short."""
RETRIES = 20
"""How often innocent jobs are tried again, whose machines die of other causes."""


class Task(NamedTuple):
    """A job of the night."""

    number: int
    at: float
    kind: str
    task_class: int
    work: float
    options: Options
    key: str | None
    needs: tuple[int, ...]
    cancelled_at: float
    """When an operator cancels it; infinite: never."""


class Machines(FakeExecutor):
    """Machines whose jobs raise, kill their process, never end, or answer though stopped."""

    def __init__(self, tasks: list[Task], rng: random.Random) -> None:
        names = [f"m{j}" for j in range(len(SLOW))]
        super().__init__(names, self._seconds, 0.02, 0.02, most_ahead=AHEAD)
        self.tasks, self.rng = tasks, rng

    def _seconds(self, job: int, machine: int, attempt: int) -> float:
        task = self.tasks[job]
        return 1e9 if task.kind == "endless" else min(task.work * SLOW[machine], LONGEST)

    def cancel(self, job: int, machine: int, attempt: int) -> None:
        """Stop an attempt; the answer of some jobs is already on its way."""
        runs = self._running.get(machine, ((-1, -1),))[0] == (job, attempt)
        super().cancel(job, machine, attempt)
        if runs and self.rng.random() < LATE:
            loop = asyncio.get_running_loop()
            loop.call_later(0.5, self.tell, Ended(machine, job, attempt, loop.time(), b"", ""))

    def die(self, machine: int, why: str) -> None:
        """Let the process of a machine die; another takes its place soon."""
        if machine in self._away:
            return
        busy = machine in self._running
        self.fail(machine, silent=True)
        self.tell(MachineDown(machine, why, died=busy))
        asyncio.get_running_loop().call_later(self.rng.uniform(0.5, 5), self.repair, machine)

    def _end(self, ended: Ended) -> None:
        kind = self.tasks[ended.job].kind
        if kind == "poison":
            self.die(ended.machine, "its process was ended by signal 11")
        else:
            super()._end(ended._replace(error="ValueError" if kind == "raises" else ""))


def plan(seconds: float, action: str, rng: random.Random) -> list[Task]:
    """Return the jobs of a night."""
    tasks: list[Task] = []
    at = 0.0
    while (at := at + rng.expovariate(PACE)) < seconds:
        number, task_class = len(tasks), rng.randrange(len(WORK))
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
        limit = SHORT if kind == "endless" else rng.choice([None, LIMIT])
        options = Options(
            priority=rng.choice([0, 0, 0, 0, 1, 5]),
            retries=None if kind in ("poison", "endless") else RETRIES,
            timeout=limit,
            machine=f"m{rng.randrange(len(SLOW))}" if rng.random() < 0.03 else "",
            client=rng.choice(["anna", "ben", "cleo"]),
        )
        needs: tuple[int, ...] = ()
        if number > 20 and rng.random() < 0.1:
            needs = tuple(sorted(rng.sample(range(number - 20, number), rng.randint(1, 3))))
        tired = at + TIRED if kind == "endless" and action == "wait" else math.inf
        whim = at + rng.uniform(0, 60) if rng.random() < 0.03 else math.inf
        key = f"key-{number}" if rng.random() < 0.1 else None
        work = rng.expovariate(1 / list(WORK.values())[task_class])
        about = (number, at, kind, task_class, work, options, key, needs, min(tired, whim))
        tasks.append(Task(*about))
    return tasks


@dataclass
class Night:
    """A night while it goes on."""

    seconds: float
    action: str
    policy: str
    rng: random.Random
    tasks: list[Task]
    executor: Machines
    journal: Journal
    answers: dict[int, Future[Any]] = field(default_factory=dict)
    taken_back: set[int] = field(default_factory=set)
    """Jobs that were cancelled before they had ended."""
    silent: list[list[tuple[float, float]]] = field(default_factory=lambda: [[] for _ in SLOW])
    """When each machine did not answer."""
    done: Counter[str] = field(default_factory=Counter)
    """What was done to the machines, and how often."""
    status: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    async def pass_by(self) -> None:
        """Let the night pass, and wait until everything has ended."""
        loop = asyncio.get_running_loop()
        self.mapper = Mapper(
            find(self.policy),
            self.executor,
            self.journal,
            list(WORK),
            [[1 / (work * slow) for slow in SLOW] for work in WORK.values()],
            [PACE / len(WORK)] * len(WORK),
            Settings(on_timeout=self.action, retries=2),
            clock=loop.time,
            zero=0.0,
        )
        self.mapper.book.ahead.short = self.mapper.book.ahead.span = LONGEST
        self.operators = Operators(self.mapper)
        await self.mapper.open()
        for task in self.tasks:
            loop.call_at(task.at, self.submit, task)
            if task.key:
                loop.call_at(task.at + self.rng.expovariate(1 / 300), self.submit_again, task)
            if task.cancelled_at < math.inf:
                loop.call_at(task.cancelled_at, self.cancel, task.number)
        await asyncio.gather(*map(self.harm, range(len(SLOW))))
        await asyncio.sleep(max(self.seconds - loop.time(), 0.0))
        end = loop.time() + DRAIN
        while self.mapper.book.jobs and loop.time() < end:
            await asyncio.sleep(1)
        await asyncio.sleep(10)  # the last answers, which are late
        self.status = self.operators.status()
        self.look_for_rests()
        await self.mapper.close()

    def submit(self, task: Task) -> None:
        """Submit a job."""
        future = self.answers[task.number] = Future()
        about = (task.number, task.task_class, b"", future)
        self.mapper.hear(Submission(*about, options=task.options, key=task.key, needs=task.needs))

    def submit_again(self, task: Task) -> None:
        """Look for a job by its key, as a grid does before it submits one."""
        assert task.key is not None
        is_pending = task.number in self.mapper.book.jobs
        ended = [each.number for each in known_jobs(self.journal, [task.key])]
        stage = self.mapper.stage_of(task.number)
        if is_pending == bool(ended) and stage not in (Stage.failed, Stage.cancelled):
            self.wrong.append(f"{task.key}: {stage}, and known as {ended}")
        self.done["key asked for again"] += 1

    def cancel(self, number: int) -> None:
        """Cancel a job, as its client does."""

        def withdraw(now: float) -> Any:
            found = self.mapper.withdraw(now, number)
            if found is not None:
                self.taken_back.add(number)
                self.answers[number].cancel()
            return found

        self.mapper.call(withdraw, Entry(self.mapper.now(), "cancelled", number))

    async def harm(self, machine: int) -> None:
        """Do one thing after the other to a machine until the night is over."""
        loop, name, operators = asyncio.get_running_loop(), f"m{machine}", self.operators
        while (calm := self.rng.expovariate(1 / CALM)) + loop.time() < self.seconds:
            await asyncio.sleep(calm)
            what = self.rng.choice(
                ["dies", "leaves", "silent", "taken", "killed", "closed", "busy"]
            )
            for_ = self.rng.uniform(20, 600)
            self.done[what] += 1
            if what == "dies":
                self.executor.die(machine, "its process was ended by signal 9")
                continue
            if what == "leaves":
                self.executor.fail(machine)
                await asyncio.sleep(for_)
                self.executor.repair(machine)
            elif what == "silent":
                since = loop.time()
                self.executor.fail(machine, silent=True)
                await asyncio.sleep(for_)
                self.silent[machine].append((since, loop.time()))
                self.executor.repair(machine)
            elif what == "taken":
                await operators.fail(name, for_, silent=False)
                await asyncio.sleep(for_ + 1)
            elif what == "killed":
                await operators.kill(name)
                await asyncio.sleep(for_)
                await operators.resume(name)
            elif what == "closed":
                await operators.pause(name)
                await asyncio.sleep(for_)
                await operators.resume(name)
            else:
                await operators.impose(name, self.rng.uniform(0.1, 0.9), for_)

    def look_for_rests(self) -> None:
        """Check that nothing is left of the night."""
        mapper, book = self.mapper, self.mapper.book
        rests: dict[str, list[Any]] = {
            "jobs in the book": list(book.jobs),
            "jobs sent ahead": [job for each in book.ahead.queues for job in each],
            "running jobs": [job for job in book.running if job is not None],
            "copies": list(book.held),
            "waiting jobs": [job for each in book.waiting for job in each],
            "jobs in queues": [job for each in book.own for job in each],
            "blocked jobs": list(book.blocked),
            "dependents": list(book.dependents),
            "futures": list(mapper.futures),
            "calls": list(mapper.works.at_hand),
            "timers": list(mapper.limits._timers),
            "machines that are down": [j for j, m in enumerate(book.machines) if not m.up],
            "machines that are paused": [j for j, closed in enumerate(book.closed) if closed],
            "errors": [mapper.broken] if mapper.broken else [],
        }
        for what, rest in rests.items():
            if rest:
                self.wrong.append(f"{what} are left: {rest[:10]}")


def night(hours: float, action: str, policy: str, seed: int) -> dict[str, Any]:
    """Let a night pass in virtual time; return its account and everything that was wrong."""
    rng = random.Random(f"{seed} {action} {policy}")
    tasks = plan(3600 * hours, action, rng)
    now = Night(3600 * hours, action, policy, rng, tasks, Machines(tasks, rng), Journal(IN_MEMORY))
    try:
        run_virtually(now.pass_by())
        return account(now)
    finally:
        now.journal.close()


def account(night: Night) -> dict[str, Any]:
    """Compare what was planned with the journal, the futures and the status."""
    wrong, kept = night.wrong, {each.job.number: each for each in night.journal.jobs()}
    ends = Counter(entry.job for entry in night.journal.events("finished", "failed", "cancelled"))
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for task in night.tasks:
        found = kept.get(task.number)
        if found is None:
            wrong.append(f"job {task.number} is not in the journal")
            continue
        job = found.job
        table[task.kind].update({"jobs": 1, str(job.stage): 1, "attempts": job.attempt})
        table[task.kind].update(lost=job.lost, timed_out=job.timed_out, deaths=job.deaths)
        fell = any(kept[each].job.stage != Stage.finished for each in task.needs)
        if job.stage == Stage.failed and task.kind == "innocent":
            table[task.kind]["fell" if fell else "silent"] += 1
        expected = expected_end(night, task, kept)
        if job.stage not in expected:
            wrong.append(f"job {task.number} ({task.kind}) is {job.stage}: {found.error[-200:]}")
        if ends[task.number] != 1:
            wrong.append(f"job {task.number} has ended {ends[task.number]} times")
        if outcome(night.answers[task.number]) != job.stage:
            wrong.append(f"job {task.number} is {job.stage}, and its future differs")
    if len(kept) != len(night.tasks):
        wrong.append(f"{len(kept)} jobs are in the journal; {len(night.tasks)} were submitted")
    wrong += differences(night, kept)
    return {
        "hours": night.seconds / 3600,
        "on_timeout": night.action,
        "policy": night.policy,
        "kinds": {kind: dict(row) for kind, row in table.items()},
        "done": {**night.done, "late answer": night.status["late_answers"]},
        "longest_response": round(longest(night, kept), 1),
        "wrong": wrong,
    }


def outcome(future: Future[Any]) -> str:
    """Return the stage that a future tells of."""
    if not future.done():
        return "pending"
    if future.cancelled():
        return "cancelled"
    return "finished" if future.exception() is None else "failed"


def expected_end(night: Night, task: Task, kept: dict[int, Any]) -> set[Stage]:
    """Return the stages in which a job may end."""
    if task.number in night.taken_back:
        return {Stage.cancelled}
    fallen = {kept[each].job.stage for each in task.needs} - {Stage.finished}
    if fallen:
        return fallen
    if task.kind in ("raises", "poison", "endless"):
        return {Stage.failed}
    if night.action == "fail" and was_silent(night, kept[task.number]):
        return {Stage.finished, Stage.failed}  # nobody can tell this from an endless job
    return {Stage.finished}


def was_silent(night: Night, kept: Any) -> bool:
    """Tell whether the machine of a job fell silent while it ran the job."""
    if not kept.machine or not kept.job.timed_out:
        return False
    begin, end = kept.job.started, kept.job.settled
    return any(
        begin < until and since < end for since, until in night.silent[int(kept.machine[1:])]
    )


def differences(night: Night, kept: dict[int, Any]) -> list[str]:
    """Return where the status and the journal count differently."""
    status, jobs = night.status, [each.job for each in kept.values()]
    events = Counter(entry.kind for entry in night.journal.events())
    counts = {
        "finished": (status["ended"]["finished"], sum(j.stage == Stage.finished for j in jobs)),
        "failed": (status["ended"]["failed"], sum(j.stage == Stage.failed for j in jobs)),
        "cancelled": (status["ended"]["cancelled"], sum(j.stage == Stage.cancelled for j in jobs)),
        "deaths": (status["deaths"], sum(job.deaths for job in jobs)),
        "time-outs": (status["timed_out"], sum(job.timed_out for job in jobs)),
        "time-outs as events": (status["timed_out"], events["timed out"]),
        "late answers": (status["late_answers"], events["late answer"]),
        "losses": (events["lost"], sum(job.lost for job in jobs)),
        "given up": (status["given_up"], sum(was_given_up(each) for each in kept.values())),
    }
    night.journal.describe(origin=0.0)
    titles, *rows = job_rows(night.journal)
    exported = [dict(zip(titles, row, strict=True)) for row in rows]
    for name in ("finished", "failed", "cancelled"):
        counts[f"{name}, exported"] = (counts[name][0], sum(r["stage"] == name for r in exported))
    counts["deaths, exported"] = (status["deaths"], sum(r["deaths"] for r in exported))
    counts["time-outs, exported"] = (status["timed_out"], sum(r["timed out"] for r in exported))
    return [f"{what}: {a} and {b}" for what, (a, b) in counts.items() if a != b]


def was_given_up(kept: Any) -> bool:
    """Tell whether a job had no retries left; those that need its result have the same error."""
    return str(kept.error).startswith(f"job {kept.job.number} was given up")


def longest(night: Night, kept: dict[int, Any]) -> float:
    """Return the longest response of an innocent job that any machine may run."""
    return max(
        kept[task.number].job.settled - task.at
        for task in night.tasks
        if task.kind == "innocent" and not task.options.machine and not task.needs
    )


def show_nights(found: list[dict[str, Any]]) -> None:
    """Print the accounts of nights."""
    columns = ["jobs", "finished", "failed", "fell", "silent", "cancelled"]
    columns += ["attempts", "lost", "timed_out", "deaths"]
    print("fell: failed with a job that they need; silent: failed as their machine fell silent\n")
    for each in found:
        print(f"{each['hours']:g} hours, on_timeout={each['on_timeout']}, {each['policy']}:")
        print(f"{'kind':10}" + "".join(f"{column:>11}" for column in columns))
        for kind, row in each["kinds"].items():
            print(f"{kind:10}" + "".join(f"{row.get(column, 0):11,}" for column in columns))
        print(", ".join(f"{what} {count}×" for what, count in sorted(each["done"].items())))
        print(f"longest response of an innocent job: {each['longest_response']:g} s")
        for line in each["wrong"]:
            print(f"WRONG: {line}")
        print()
    rows = [row for each in found for row in each["kinds"].values()]
    totals = [f"{sum(row.get(c, 0) for row in rows):,} {c.replace('_', ' ')}" for c in columns]
    print(f"all: {', '.join(totals)}")
