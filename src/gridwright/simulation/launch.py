"""Run many replications of push and pull systems on a device, all at once.

The states are made here as for a CPU, one for all replications that start alike, and the device
gets as many copies as there are replications. It continues every run until the end of its slice. A
run that needs something comes back: it gets more room, fresh draws or a plan, and continues. What
is measured is read off as for a single run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from math import inf
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..allocation.planner import MANY_PLANS, compile_simplex
from ..compiler.philox import Philox
from ..model import InputError
from .central_state import TICKET, State
from .device_arrays import Arrays, Device, words_abreast
from .driver import (
    Replication,
    Streams,
    check_room,
    read_off_many,
)
from .interrupts import DRAWS, HELD, PLAN, POOL, SLICE
from .kernel import (
    GO,
    HOOKS_ABREAST,
    HOOKS_ABREAST_WITHOUT_EVENTS,
    IN_STEP,
    IN_STEP_WITHOUT_EVENTS,
)
from .on_device import HERE, Batch, Job, OnDevice, batches_of, parts_of

ENOUGH = 65_536
"""Programs run side by side until they have so many runs: these keep a large GPU busy."""
PAUSE = 0.0005
"""Seconds between two looks at whether a launch has ended."""
SECONDS = 0.3
"""About how long a launch takes, so that it can be stopped in time; it may have many slices."""
COUNT = State._fields.index("count")
MEASURED = ("plan", "memory", "tally", "server", "stream", "count", "responses")
FORGOTTEN = ("server", "stream", "count")
DRAWN = ("shapes", "table")
PLANNED = ("classes", "plan", "count", "present")
"""Arrays that results are read from; that change at the end of the warm-up, when draws are made and
when a plan is made."""


def launch(
    device: Device,
    jobs: Sequence[Job],
    on_done: Callable[[int, int, Replication], None],
    on_progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Simulate all jobs on a device; report every replication, and the share done.

    Random numbers are those of ``rng="philox"``: a CPU gives the same results. ``on_done`` gets the
    number of the job, that of the replication, and what was measured.
    """
    if len(jobs) > MANY_PLANS:  # each has one
        compile_simplex()
    waiting = [batch for number, job in enumerate(jobs) for batch in batches_of(number, job)]
    all_work, finished = sum(batch.work for batch in waiting), 0.0
    memory, until, done = device.free(), 0.0, 0.0
    while waiting:
        again: list[Batch] = []
        parts, running, are_more = parts_of(device, waiting), list[Fleet](), True
        while True:
            while are_more and _has_room(device, running, memory):
                if are_more := (part := next(parts, None)) is not None:
                    running.append(Fleet(device, part))
            if not running:
                break
            found = ready(running)
            while found:
                fleet = found.pop(0)
                fleet.side_by_side = sum(each.size for each in running)
                fleet.go_on()
                until = share_out(fleet, running, until)
                if fleet.is_done:
                    for batch, number, replication in fleet.results():
                        on_done(batch.job, number, replication)
                    left = list(fleet.left())
                    again += left
                    finished += fleet.work - sum(batch.work for batch in left)
                    running.remove(fleet)
            del fleet  # one that is done gives its memory back
            going = sum(each.share * each.work for each in running)
            done = max(done, (finished + going) / all_work)  # some may start again
            on_progress(done)
        waiting = again


def _has_room(device: Device, running: Sequence[Fleet], memory: int) -> bool:
    """Tell whether a device can run more beside what is running, and has half of its memory."""
    if not running:
        return True
    return sum(each.size for each in running) < ENOUGH and device.free() > memory / 2


def ready(running: Sequence[Fleet]) -> list[Fleet]:
    """Wait until one or more can go on; return these, as their launches ended.

    None waits for another: a launch of a slow program may take a hundred times as long.
    """
    while not (found := [fleet for fleet in running if fleet.is_ready]):
        sleep(PAUSE)
    return sorted(found, key=lambda fleet: fleet.ended)


def share_out(fleet: Fleet, running: Sequence[Fleet], until: float) -> float:
    """Add the time of a fleet's last launch to all that ran; return up to when time is counted.

    Time in which several run is shared by them: together, they get the time that the device worked.
    """
    others = [each for each in running if each is not fleet]
    begins = [fleet.span[0], *(each.began for each in others)]
    end = fleet.span[1]
    if end <= max(until, fleet.span[0]):
        return until
    own = [max(0.0, end - max(begin, until)) for begin in begins]
    for each, time in zip([fleet, *others], own, strict=True):
        each.seconds += max(own) * time / sum(own)
    return end


class Fleet:
    """Runs that are launched together."""

    def __init__(self, device: Device, batches: Sequence[Batch]) -> None:
        self.device, self.batches = device.beside(), batches
        device = self.device
        first = batches[0].mechanism
        self.counts_at_once = first.counts_at_once
        is_abreast = all(batch.is_abreast for batch in batches)
        hooks = HOOKS_ABREAST_WITHOUT_EVENTS if self.counts_at_once else HOOKS_ABREAST
        fields = IN_STEP_WITHOUT_EVENTS if self.counts_at_once else IN_STEP
        self.linked = device.link(first.kernel, first.hooks_there | (hooks if is_abreast else {}))
        self.arguments = tuple(
            device.put(each) if isinstance(each, np.ndarray) else each for each in first.arguments
        )
        counts = [len(batch.seeds) for batch in batches]
        self.begins = np.cumsum(counts) - counts
        self.batch_of = np.repeat(np.arange(len(batches)), counts)
        self.arrays = Arrays(
            device,
            [(batch.mechanism.arrays, len(batch.seeds)) for batch in batches],
            first.shared,
            [State._fields.index(name) for name in fields] if is_abreast else [],
        )
        self.words = np.concatenate([batch.words() for batch in batches])
        self.words_there = device.put(words_abreast(self.words) if is_abreast else self.words)
        limits = [batch.mechanism.conditions for batch in batches]
        self.warmup = np.array([each.warmup for each in limits])
        lengths = (self.warmup, np.array([each.horizon for each in limits]))
        self.lengths = [device.put(each) for each in lengths[: 2 if self.counts_at_once else 1]]
        rooms = np.array([len(batch.mechanism.state.ticket) for batch in batches])
        self.rooms, self.all_room = rooms[self.batch_of], int((rooms * counts).sum())
        self.size = sum(counts)
        self.reasons = np.full(self.size, SLICE)
        self.is_held, self.is_crowded = np.zeros((2, self.size), bool)
        self.schedules = [list(batch.mechanism.slices()) for batch in batches]
        self.steps = max(map(len, self.schedules))
        ends = [[end for end, _, _ in each] for each in self.schedules]
        self.until = np.array([each + each[-1:] * (self.steps - len(each)) for each in ends])
        self.until_there, self.batch_there = device.put(self.until), device.put(self.batch_of)
        self.done_there = device.put(np.zeros(self.size, np.int64))
        self.inside = np.zeros((self.steps, self.size), np.int64)
        self.inside_there = device.put(self.inside)
        self.reasons_there = device.put(self.reasons)
        self.work = sum(batch.work for batch in batches)
        self.seconds, self.share, self.span, self.began = 0.0, 0.0, (0.0, 0.0), inf
        self.side_by_side, self.is_done, self._going = self.size, False, self._run()

    @property
    def is_ready(self) -> bool:
        """Whether nothing of it is running now."""
        return self.device.has_ended()

    @property
    def ended(self) -> float:
        """When the last launch ended; 0 if there was none, or if it compiled."""
        return self.began + self.device.wait() if self.began < inf else 0.0

    def go_on(self) -> None:
        """Wait for the last launch, and start the next one, which begins at ``began``.

        ``span`` is when the last one ran; both leave out the launches that compile.
        """
        self.span = (0.0, 0.0)
        self.is_done = next(self._going, self) is self

    def _run(self) -> Iterator[None]:
        """Run all to their ends, some slices at a time; stop after each start of the device.

        The first slice is empty: it compiles. A launch stops where the warm-up of a batch ends.
        """
        stops = np.flatnonzero(((self.until == self.warmup[:, None]) & (self.until > 0)).any(0))
        begin, together = 0, 1
        while begin < self.steps:
            ahead = stops[stops >= begin] + 1
            last = min(begin + together, self.steps, *(() if self.counts_at_once else ahead[:1]))
            self.reasons[:] = np.where(self.is_held | self.is_crowded, SLICE, GO)
            took = 0.0
            while (self.reasons == GO).any():
                began = self._start(last)
                self.began = began if begin else inf
                yield
                seconds = self.device.wait()
                self.device.get(self.reasons_there, self.reasons)
                if begin:
                    self.span = (began, began + seconds)
                took += seconds
                self._serve()
            if begin:
                pace = SECONDS * (last - begin) / max(took, 1e-3)
                together = int(min(max(pace, 1), 4 * together))
            warm = np.flatnonzero(self._is_warm(last - 1)).tolist()
            with self._holding(FORGOTTEN if warm else (), changes=True):
                for number in warm:
                    self._forget(number)
            ends = [each[min(last, len(each)) - 1][2] for each in self.schedules]
            self.share = float(np.mean(ends))
            begin = last
        self.device.get(self.inside_there, self.inside)

    def _is_warm(self, step: int) -> NDArray[np.bool_]:
        """Tell whose warm-up ends with a slice, and must be forgotten."""
        until = self.until[:, step]
        is_on = np.array([step < len(each) for each in self.schedules])
        return is_on & (until == self.warmup) & (until > 0) & (not self.counts_at_once)

    def results(self) -> Iterator[tuple[Batch, int, Replication]]:
        """Read off what every run measured: its batch and its number too."""
        left = self.is_held | self.is_crowded
        with self._holding(MEASURED, changes=False):
            for number, batch in enumerate(self.batches):
                for k, found in self._results_of(number):
                    if not left[k]:
                        yield batch, batch.numbers[k - self.begins[number]], found

    def _results_of(self, number: int) -> Iterator[tuple[int, Replication]]:
        """Read off what the runs of a batch measured."""
        steps = [k for k, (_, is_sample, _) in enumerate(self.schedules[number]) if is_sample]
        times = np.array([0.0, *(self.schedules[number][k][0] for k in steps)])
        for first, count, mechanism in self._mechanisms(number, MEASURED):
            numbers = np.zeros((count, len(times)))
            numbers[:, 1:] = self.inside[steps, first : first + count].T
            found = read_off_many(mechanism, (times, numbers), self.seconds / self.size)
            yield from enumerate(found, first)

    def left(self) -> Iterator[Batch]:
        """Return what must start again: with an event list, or with more memory for each run."""
        for number, batch in enumerate(self.batches):
            places = slice(self.begins[number], self.begins[number] + len(batch.seeds))
            held, crowded = (
                np.flatnonzero(each[places]).tolist() for each in (self.is_held, self.is_crowded)
            )
            if held:
                yield batch.some(held).with_event_list()
            for room in np.unique(self.rooms[places][crowded]).tolist():
                alike = [k for k in crowded if self.rooms[places][k] == room]
                yield batch.some(alike).with_room(room)

    def _start(self, last: int) -> float:
        """Continue the runs that are to go on, to a slice; return when it began."""
        self.device.write(self.reasons_there, self.reasons, 0)
        began = perf_counter()
        self.device.start(
            self.linked,
            self.size,
            self.side_by_side,
            *self.arrays.there,
            self.arrays.where_there,
            self.arguments,
            self.batch_there,
            self.until_there,
            last,
            *self.lengths,
            self.words_there,
            self.done_there,
            self.inside_there,
            self.reasons_there,
        )
        return began

    def _serve(self) -> None:
        """Give the runs that came back what they need."""
        reasons = self.reasons.copy()
        self.is_held |= reasons == HELD
        self.reasons[reasons != SLICE] = GO
        self.reasons[reasons == HELD] = SLICE
        if (reasons == POOL).any():
            self._grow(np.flatnonzero(reasons == POOL))
        for k in np.flatnonzero(reasons == DRAWS).tolist():
            self._draw(k)
        for k in np.flatnonzero(reasons == PLAN).tolist():
            ((_, _, mechanism),) = self._mechanisms(self.batch_of[k], PLANNED, k)
            one = _single(mechanism, PLANNED)
            one.plan()
            self._write(one, ("plan", "count"), k)

    def _grow(self, needy: NDArray[np.int64]) -> None:
        """Double the room of some runs: they get tickets at the end of all of them.

        If the device has no memory for that, they start again later, fewer of them at a time.
        """
        field = State._fields.index("ticket")
        with self._holding(["count"], changes=False):
            count = self._counts()
        rooms = self.rooms[needy]
        for k in needy[rooms >= OnDevice.most][:1]:
            self._refuse(k, count[k].now)
        self.rooms[needy] *= 2
        total = int(rooms.sum())
        if (self.all_room + total) * TICKET.itemsize > self.device.free():
            if self.side_by_side == 1:
                raise InputError(
                    f"{self.batches[0]}: more than {rooms[0]:,} tasks are in the system at time "
                    f"{count[0].now:g}, and the GPU has no memory for more; a shorter horizon "
                    "needs less"
                )
            self.is_crowded[needy] = True
            self.reasons[needy] = SLICE
            return
        fresh = np.zeros(total, TICKET)
        begins = np.cumsum(rooms) - rooms + self.all_room - self.arrays.where[needy, field, 0]
        fresh["next"] = np.arange(total) - np.repeat(np.cumsum(rooms) - rooms - begins, rooms) + 1
        fresh["next"][np.cumsum(rooms) - 1] = count["free"][needy]
        count["free"][needy] = begins
        self.arrays.parts[field] = self.device.extend(self.arrays.parts[field], fresh)
        with self._holding(["count"], changes=True):
            self._set_counts(count)
        self.all_room += total

    def _refuse(self, k: int, now: float) -> None:
        """Refuse a run that has the largest room, and say which it is."""
        batch = self.batches[self.batch_of[k]]
        try:
            check_room(batch.mechanism, self.rooms[k], now)
        except InputError as error:
            raise InputError(f"{batch}: {error}") from None

    def _set_counts(self, count: Any) -> None:
        """Copy the counts of all runs to the device."""
        for begin, batch in zip(self.begins.tolist(), self.batches, strict=True):
            self.arrays.write(COUNT, count[begin : begin + len(batch.seeds), None], begin)

    def _holding(self, fields: Sequence[str], *, changes: bool) -> AbstractContextManager[None]:
        """Have some fields of all runs here, if there is room for them."""
        places = map(State._fields.index, fields)
        return self.arrays.holding(places, HERE // 8, changes=changes)

    def _counts(self) -> Any:
        """Copy the counts of all runs back."""
        parts = [
            self.arrays.get(COUNT, batch.mechanism.state.count, begin, len(batch.seeds))
            for begin, batch in zip(self.begins.tolist(), self.batches, strict=True)
        ]
        return np.concatenate(parts)[:, 0].view(np.recarray)

    def _draw(self, k: int) -> None:
        """Draw from users' own distributions for a run."""
        ((_, _, mechanism),) = self._mechanisms(self.batch_of[k], DRAWN, k)
        one = _single(mechanism, DRAWN)
        words = self.words[k : k + 1]
        self.device.get(self.words_there, words, k)
        streams: list[Any] = [*map(Philox, words[0]), one.streams.beliefs]
        one.streams = Streams(*streams)
        one.refill()
        self.device.write(self.words_there, words, k)
        self._write(one, DRAWN, k)

    def _forget(self, number: int) -> None:
        """Start the statistics again of a batch whose warm-up ends."""
        for first, _, mechanism in self._mechanisms(number, FORGOTTEN):
            mechanism.forget()
            self._write(mechanism, FORGOTTEN, first)

    def _mechanisms(
        self, number: int, fields: Sequence[str], only: int | None = None
    ) -> Iterator[tuple[int, int, OnDevice]]:
        """Return the runs of a batch as they are now, with some fields as [run, …].

        There are several parts of it if it is large. Each comes with its first run, and how many.
        """
        batch = self.batches[number]
        made, state = copy(batch.mechanism), batch.mechanism.state
        size = sum(getattr(state, name).nbytes for name in fields)
        first, end = int(self.begins[number]), int(self.begins[number]) + len(batch.seeds)
        if only is not None:
            first, end = only, only + 1
        most = max(1, HERE // 8 // size)
        for begin in range(first, end, most):
            count = min(most, end - begin)
            found = {
                name: self.arrays.get(State._fields.index(name), getattr(state, name), begin, count)
                for name in fields
            }
            made.state = state._replace(**found)
            yield begin, count, made

    def _write(self, mechanism: OnDevice, fields: Sequence[str], first: int) -> None:
        """Copy some fields of runs to the device."""
        for name in fields:
            self.arrays.write(State._fields.index(name), getattr(mechanism.state, name), first)


def _single(mechanism: OnDevice, fields: Sequence[str]) -> OnDevice:
    """Return the only run of several, without the axis of runs."""
    state = mechanism.state
    found = {name: getattr(state, name)[0] for name in fields}
    for name, array in found.items():
        if array.dtype.names:
            found[name] = array.view(np.recarray)
    mechanism.replace(**found)
    return mechanism
