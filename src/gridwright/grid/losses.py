"""Write down what a turn of the mapper has lost, and tell whoever waits for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..model import JobLostError
from .event import Entry
from .future import RemoteError
from .job import Stage
from .turn import Turn

if TYPE_CHECKING:
    from .mapper import Mapper


def note_losses(mapper: Mapper, turn: Turn) -> None:
    """Note jobs that were lost with a machine, and jobs without retries left."""
    book, now, names = mapper.book, mapper.now(), mapper.executor.machines
    losses, book.losses = book.losses, []
    for number, attempt, machine in losses:
        turn.note(Entry(now, "lost", number, attempt, names[machine]))
    given_up, book.given_up = book.given_up, []
    for job, machine in given_up:
        error, number = JobLostError(job.why_given_up()), job.number
        mapper.given_up += 1
        turn.note(Entry(now, "failed", number, job.attempt, names[machine]))
        turn.results.append((number, b"", str(error)))
        turn.done.append(partial(mapper.settle, number, b"", error))
    _note_fallen(mapper, turn)
    unblocked, book.unblocked = book.unblocked, []
    for job in unblocked:
        turn.add(mapper.beliefs.arrived(job.task_class, now))
    released, book.released = book.released, []
    for machine in released:
        turn.note(Entry(now, "up", machine=names[machine]))


def _note_fallen(mapper: Mapper, turn: Turn) -> None:
    """Note jobs that ended because a job whose result they need failed or was cancelled."""
    known = {number: (result, error) for number, result, error in turn.results}
    fallen, mapper.book.fallen = mapper.book.fallen, []
    for job, cause in fallen:
        number = job.number
        if job.stage == Stage.cancelled:
            turn.note(Entry(mapper.now(), "cancelled", number, fields={"why": f"job {cause}"}))
            turn.done.append(partial(mapper.end_cancelled, number))
            continue
        if cause not in known:
            found = mapper.journal.select("result, error FROM job WHERE number=?", (cause,))
            known[cause] = (found[0][0] or b"", found[0][1] or "") if found else (b"", "")
        result, error = known[number] = known[cause]
        turn.note(Entry(mapper.now(), "failed", number, fields={"why": f"job {cause}"}))
        turn.results.append((number, result, error))
        wrong = RemoteError(error.rstrip(), result)
        turn.done.append(partial(mapper.settle, number, b"", wrong))


def note_stuck(mapper: Mapper, turn: Turn) -> None:
    """Note once that no machine can run a class that has waiting jobs."""
    able = mapper.book.able()
    for i, name in enumerate(mapper.classes):
        stuck = not able[i] and bool(mapper.book.waiting[i])
        if stuck and i not in mapper.stuck:
            mapper.stuck.add(i)
            turn.note(Entry(mapper.now(), "nobody", fields={"task_class": name}))
        elif not stuck:
            mapper.stuck.discard(i)
