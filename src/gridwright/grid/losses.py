"""Record which machines came or went, and which jobs were lost; tell the futures of these jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..model import DeadlineError, JobLostError
from .event import Entry
from .executors import MachineDown, Reading
from .future import RemoteError
from .job import Stage
from .slots import hosts_of
from .turn import Turn
from .worker import cut

if TYPE_CHECKING:
    from .mapper import Mapper


def keep_paused(mapper: Mapper, machines: Sequence[int]) -> None:
    """Give no jobs to those of some machines that the journal has as paused."""
    paused = {each.machine: each.kind for each in mapper.journal.events("paused", "resumed")}
    for machine in machines:
        if paused.get(mapper.executor.machines[machine]) == "paused":
            mapper.book.close(mapper.now(), machine)


def note_up(mapper: Mapper, turn: Turn, machine: int) -> None:
    """Note that a machine is up; it may be new."""
    book, now = mapper.book, mapper.now()
    if machine >= len(book.machines):
        host = hosts_of(mapper.executor)[machine]
        mapper.beliefs.add_machine(np.ones(len(mapper.classes)), host)
        keep_paused(mapper, [machine])
    name = mapper.executor.machines[machine]
    turn.note(Entry(now, "up", machine=name))
    book.machine_found(name, machine)
    turn.out += book.machine_down(now, machine)  # if the grid missed that it was gone
    turn.out += book.machine_up(now, machine, mapper.beliefs.availability(machine))


def note_down(mapper: Mapper, turn: Turn, word: MachineDown) -> None:
    """Note that a machine is gone."""
    machine, book, now = word.machine, mapper.book, mapper.now()
    name, why = mapper.executor.machines[machine], cut(word.why)
    turn.note(Entry(now, "down", machine=name, fields={"why": why}))
    died = word.died and book.running[machine] is not None
    mapper.deaths += died
    turn.out += book.machine_down(now, machine, died=f"{why} on machine {name}" if died else "")


def note_reading(mapper: Mapper, turn: Turn, word: Reading) -> None:
    """Note the measured CPU availability of a machine."""
    now, name = mapper.now(), mapper.executor.machines[word.machine]
    fields = {"measured": round(word.measured, 4), "predicted": round(word.predicted, 4)}
    turn.note(Entry(now, "availability", machine=name, fields=fields))
    turn.out += mapper.beliefs.read(word.machine, word.predicted, now)


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
    discarded, book.discarded = book.discarded, []
    for job in discarded:
        late, number = DeadlineError(job.why_discarded()), job.number
        turn.note(Entry(now, "failed", number, fields={"why": "its deadline had passed"}))
        turn.results.append((number, b"", str(late)))
        turn.done.append(partial(mapper.settle, number, b"", late))
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
