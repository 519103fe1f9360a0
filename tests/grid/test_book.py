"""The book: the same decisions as the simulator's, and nothing lost whatever happens."""

import heapq
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gridwright import InputError, load, simulate
from gridwright.grid import Book, Cancel, Send, Stage
from gridwright.grid.batch import Batch
from gridwright.grid.chain import chains_of
from gridwright.grid.execution_times import times_of
from gridwright.grid.job import Options
from gridwright.policies import find
from gridwright.simulation import KINDS

FAILING = load("3.A:alpha1:5").replace(
    counts=[1] * 6,
    availability=[0.5, 1, 1, 0.75, 1, 1],
    arrivals=load("3.A:alpha1:5").arrivals / 5,
    failures={"mean_uptime": 6, "mean_repair": 2},
)


@pytest.mark.parametrize("policy", ["lpas_dg:idle=blocking", "fcfs:idle=every", "fcfs:idle=rotate"])
def test_the_two_worlds_are_one(policy: str) -> None:
    """Driven by the events of a simulation, the book sends the same jobs to the same places."""
    system = FAILING
    run = simulate(system, policy, 60, 1, seed=8, trace=True).replications[0]
    trace = run.trace[np.argsort(run.trace["time"], kind="stable")]
    spells: dict[int, list[tuple[float, int, float, bool]]] = {}
    begun: dict[int, tuple[float, int]] = {}
    events: list[tuple[float, int, str, int, int]] = []
    for e in trace:
        kind, task, machine = KINDS[e.kind], int(e.task), int(e.machine)
        if kind == "start":
            begun[task] = (float(e.time), machine)
        elif kind in ("finish", "loss"):
            start, where = begun.pop(task)
            spells.setdefault(task, []).append((start, where, float(e.time), kind == "finish"))
        elif kind in ("arrival", "failure", "repair"):
            number = task if kind == "arrival" else machine
            events.append((float(e.time), len(events), kind, number, int(e.task_class)))
    for task, (start, where) in begun.items():  # still running at the end
        spells.setdefault(task, []).append((start, where, np.inf, True))
    book = Book(find(policy), system.nominal, system.arrival_rates, system.mean_availability)
    heapq.heapify(events)
    sent = 0
    while events and events[0][0] < 60:
        now, _, kind, number, other = heapq.heappop(events)
        if kind == "arrival":
            said: Any = book.submit(now, number, other)
        elif kind == "failure":
            said = book.machine_down(now, number)
        elif kind == "repair":
            said = book.machine_up(now, number)
        else:
            said = book.finished(now, number, other)
            assert said is not None
        for word in said:
            if isinstance(word, Send):
                start, where, end, well = spells[word.job][word.attempt - 1]
                assert (start, where) == (now, word.machine)
                sent += 1
                if well:
                    heapq.heappush(events, (end, 10**9 + sent, "end", word.job, word.attempt))
    assert sent == sum(start < 60 for each in spells.values() for start, *_ in each)
    assert sent > 500
    assert book.refusals == run.refusals


def test_a_policy_of_another_kind_is_refused() -> None:
    words = "batch and chain policies: it has one scheduler.*lpas_dec on real machines: gridwright"
    with pytest.raises(InputError, match=words):
        Book(find("lpas_dec"), [[1.0]], [1.0])


@pytest.mark.parametrize(
    ("name", "what"),
    [("moc", "a batch policy, which must"), ("chain_rr", "a chain policy, which must")],
)
def test_a_policy_needs_what_it_must_know(name: str, what: str) -> None:
    with pytest.raises(InputError, match=f"{name} is {what} know"):
        Book(find(name), [[1.0]], [1.0])


def test_a_job_is_taken_in_once() -> None:
    book = Book(find("fcfs"), [[1.0]], [1.0])
    book.submit(0.0, 1, 0)
    with pytest.raises(InputError, match="job 1 was submitted before"):
        book.submit(1.0, 1, 0)


ACTIONS = ("resubmit", "duplicate", "wait", "fail")
HOW = ("start", "end", "error", "copy", *ACTIONS)
RATES = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0]])
BATCHES = ("mm", "moc", "mmu")
CHAINS = ("chain_fcfs", "chain_mct", "chain_rr")
SINGLE: list[dict[str, Any]] = [
    {"name": "a", "rate": 1, "times": [[0.25, 1, 0.5]], "latency": 9},
    {"name": "b", "rate": 1, "times": [[1, 1 / 3, float("inf")]], "latency": 9},
]
"""Chains of one stage, with these rates."""


class Turmoil(RuleBasedStateMachine):
    """Anything may happen at any time."""

    @initialize(
        policy=st.sampled_from(
            ["fcfs", "gcmu", "lpas_dg", "pas_dg", "mct", "pas", "lpas", *BATCHES, *CHAINS]
        ),
        retries=st.sampled_from([None, 0, 2]),
        discard=st.sampled_from(["never", "batch", "both"]),
    )
    def begin(self, policy: str, retries: int | None, discard: str) -> None:
        self.is_batch, self.discard = policy in BATCHES, discard
        options = {"queue_limit": 2, "discard": discard} if self.is_batch else None
        nodes = ["x", "y", "z"]
        known: Any = times_of(find(policy), options, ["a", "b"], RATES, nodes)
        if policy in CHAINS:
            known = chains_of(find(policy), {"templates": SINGLE}, nodes)
        self.book = Book(find(policy), RATES, [1.0, 1.0], retries=retries, times=known)
        self.discarded: set[int] = set()
        self.stopped: set[Send] = set()  # attempts that the executor was told to stop
        self.given_up: set[int] = set()
        self.now = 0.0
        self.count = 0
        self.answers: set[Send] = set()  # attempts that may still answer
        self.final: dict[int, Stage] = {}

    def hear(self, said: list[Any] | None) -> None:
        said = [*(said or []), *self.book.send_ahead(self.now)]
        for word in said:
            if isinstance(word, Send):
                self.answers.add(word)
                if self.is_batch and self.discard == "both":
                    assert self.book.jobs[word.job].deadline > self.now, "none starts too late"
            else:
                assert isinstance(word, Cancel)
                self.stopped.add(Send(*word))
        self.now += 0.25

    @rule(
        task_class=st.integers(0, 1),
        deadline=st.sampled_from([None, 0.5, 2.0]),
        priority=st.sampled_from([0, 0, 0, 1]),
    )
    def submit(self, task_class: int, deadline: float | None, priority: int) -> None:
        options = Options(priority, deadline=deadline) if self.is_batch else Options()
        self.hear(self.book.submit(self.now, self.count, task_class, options))
        self.count += 1

    @rule()
    def wait(self) -> None:
        self.now += 1.0
        self.hear(self.book.expire(self.now))

    @rule(which=st.integers(0, 1000), how=st.sampled_from(HOW))
    def answer(self, which: int, how: str) -> None:
        if not self.answers:
            return
        word = sorted(self.answers)[which % len(self.answers)]
        job = self.book.jobs[word.job]
        current = job.stage == Stage.sent and job.attempt == word.attempt
        counts = current or (word.attempt in job.copies and not job.stage.is_final)
        if how == "copy":
            if self.book.retries is not None:
                self.hear(self.book.copy_timed_out(self.now, word.job, word.attempt))
            return
        if how == "start":
            self.book.started(self.now, word.job, word.attempt)
            return
        if how in ACTIONS:
            said = self.book.timed_out(self.now, word.job, word.attempt, then=how)
            counts = current
        else:
            said = self.book.finished(self.now, word.job, word.attempt, failed=how == "error")
            self.answers.discard(word)
        assert (said is None) == (not counts), "a late answer counts for nothing"
        self.hear(said)

    @rule(machine=st.integers(0, 2), how=st.sampled_from(["down", "died", "up", "close", "open"]))
    def machine(self, machine: int, how: str) -> None:
        book = self.book
        calls: dict[str, Any] = {
            "down": book.machine_down,
            "died": lambda now, machine: book.machine_down(now, machine, died="killed"),
            "up": book.machine_up,
            "close": book.close,
            "open": book.open,
        }
        self.hear(calls[how](self.now, machine))

    @rule(which=st.integers(0, 1000))
    def cancel(self, which: int) -> None:
        if self.count:
            self.hear(self.book.cancel(self.now, which % self.count))

    @rule(share=st.sampled_from([0.25, 0.5, 1.0]), faster=st.booleans())
    def believe(self, share: float, faster: bool) -> None:
        rates = RATES * (2.0 if faster else 1.0)
        self.hear(self.book.believe(self.now, rates=rates, availability=[share, 1.0, 1.0]))

    @invariant()
    def a_batch_policy_is_shown_the_jobs_that_wait(self) -> None:
        batch = self.book.mechanism
        if isinstance(batch, Batch):
            jobs = [each.job for each in batch.rows]
            waiting = {job.number for line in self.book.waiting for job in line}
            assert sorted(waiting) == sorted(j.number for j in jobs if j.stage == Stage.waiting)
            shown = batch.known[: len(jobs)]
            assert shown["task_class"].tolist() == [job.task_class for job in jobs]
            assert shown["arrival"].tolist() == [job.submitted for job in jobs]
            assert shown["deadline"].tolist() == [job.deadline for job in jobs]

    @invariant()
    def every_job_is_in_one_place(self) -> None:
        if not hasattr(self, "book"):
            return
        book = self.book
        places: list[int] = []
        for i, queue in enumerate(book.waiting):
            order = [(-job.options.priority, job.since, job.number) for job in queue]
            assert order == sorted(order), "queue order is kept"
            assert all(job.stage == Stage.waiting and job.task_class == i for job in queue)
            assert book.classes[i].waiting == len(queue)
            assert book.classes[i].oldest == (queue.first().since if queue else np.inf)
            places += [job.number for job in queue]
        for j, own in enumerate(book.own):
            running = book.running[j]
            there = [*([running] if running else []), *own]
            assert all(job.machine == j for job in there)
            assert all(job.stage == Stage.queued for job in own)
            assert running is None or running.stage == Stage.sent
            assert running is None or Send(running.number, j, running.attempt) in self.answers
            m = book.machines[j]
            assert m.backlog == len(there)
            assert m.work == pytest.approx(sum(job.expected for job in there))
            assert m.serving == (running.task_class if running else -1)
            assert not there or m.up
            assert running or not own, "a machine with jobs works"
            places += [job.number for job in there]
        for number, job in book.jobs.items():
            assert places.count(number) == (0 if job.stage.is_final else 1)
            if number in self.final:
                assert job.stage == self.final[number], "what has ended has ended"
            if job.stage.is_final:
                self.final[number] = job.stage
        assert len(book.jobs) == self.count
        self.check_retries()
        self.check_deadlines()
        for decision in book.decisions:
            assert decision.time <= self.now
            assert decision.choice < 0 or decision.choice in decision.candidates
        book.decisions.clear()
        assert not book.pending

    def check_deadlines(self) -> None:
        book = self.book
        for job in book.discarded:
            assert job.stage == Stage.failed
            assert job.deadline <= self.now
            assert job.number not in self.discarded, "it ends once"
            self.discarded.add(job.number)
        book.discarded.clear()
        assert not self.discarded or self.discard != "never"
        if self.is_batch:
            held = [len(own) + (book.running[j] is not None) for j, own in enumerate(book.own)]
            assert max(held) <= 2, "queues have a limit"
            assert book.refusals == 0

    def check_retries(self) -> None:
        book = self.book
        for job, machine in book.given_up:
            assert job.stage == Stage.failed
            assert job.machine == machine
            assert job.number not in self.given_up, "it ends once"
            self.given_up.add(job.number)
        book.given_up.clear()
        for machine in book.released:
            assert machine not in book.held
        book.released.clear()
        for machine, (job, attempt) in book.held.items():
            assert not book.machines[machine].up, "it is busy with a copy"
            assert job.copies[attempt].machine == machine
        limit = book.retries
        for job in book.jobs.values():
            assert job.deaths <= job.lost
            if limit is None:
                assert job.since == job.submitted
                continue
            assert len(job.causes) <= limit + 1
            assert len(job.causes) <= limit or job.stage.is_final, "none is tried once more"
            held = {attempt for other, attempt in book.held.values() if other is job}
            assert set(job.copies) == held
            assert not job.copies or not job.stage.is_final, "copies of what has ended are stopped"
            for attempt, copy in job.copies.items():
                assert Send(job.number, copy.machine, attempt) not in self.stopped


Turmoil.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTurmoil = Turmoil.TestCase


def test_a_job_that_is_discarded_leaves_no_copy_on_a_machine() -> None:
    known: Any = times_of(find("mm"), {"discard": "batch"}, ["a", "b"], RATES, ["x", "y", "z"])
    book = Book(find("mm"), RATES, [1.0, 1.0], retries=2, times=known)
    book.submit(0.0, 0, 0, Options(deadline=0.5))
    [sent] = book.send_ahead(0.0)
    assert book.timed_out(1.0, 0, sent.attempt, then="duplicate") == []
    assert book.send_ahead(1.0) == [Cancel(*sent)]
    assert book.jobs[0].is_discarded
    assert book.released == [sent.machine]
    assert book.machines[sent.machine].up
    assert not book.held


def test_nothing_waits_that_an_idle_machine_would_take() -> None:
    book = Book(find("fcfs"), RATES, [1.0, 1.0])
    for number in range(4):
        book.submit(float(number), number, 0)
    assert [job.stage for job in book.jobs.values()] == [Stage.sent] * 3 + [Stage.waiting]
    said = book.machine_down(5.0, 0)
    assert Cancel(0, 0, 1) in said
    assert book.jobs[0].stage == Stage.waiting
    (word,) = book.machine_up(6.0, 0)
    assert word == Send(0, 0, 2), "it comes before the one that was submitted later"


def test_machines_that_go_or_come_together_do_so_at_once() -> None:
    book = Book(find("mct"), np.ones((1, 3)), [1.0])
    for number in range(6):
        book.submit(float(number) / 10, number, 0)
    said = book.machines_down(1.0, [0, 1])
    assert [word for word in said if isinstance(word, Send)] == []
    assert [job.lost for job in book.jobs.values()] == [1, 1, 0, 0, 0, 0], "none was moved twice"
    assert len(book.own[2]) == 5
    book.machines_down(2.0, [2])
    assert book.classes[0].waiting == 6
    book.machines_up(3.0, [0, 1, 2])
    assert book.machines["backlog"].tolist() == [2, 2, 2]


def test_a_job_whose_process_died_waits_behind_the_others() -> None:
    book = Book(find("fcfs"), [[1.0], [1.0]], [1.0, 1.0], retries=2)
    for number in range(3):
        book.submit(float(number), number, number % 2)
    said = book.machine_down(3.0, 0, died="its process died")
    assert said == [Cancel(0, 0, 1)]
    order = []
    for now in range(4, 12):
        sends = book.machine_up(float(now), 0)
        if sends:
            (word,) = sends
            order.append(word.job)
            book.machine_down(now + 0.5, 0, died="its process died")
    assert order == [1, 2, 0, 1, 2, 0, 1, 2], "also those of the other class come first"
    assert [(job.number, machine) for job, machine in book.given_up] == [(0, 0), (1, 0), (2, 0)]
    assert {job.stage for job in book.jobs.values()} == {Stage.failed}


def test_copies_of_a_job_that_is_given_up_are_stopped() -> None:
    book = Book(find("fcfs"), np.ones((1, 3)), [1.0], retries=1)
    book.submit(0.0, 0, 0)
    (second,) = book.timed_out(1.0, 0, 1, then="duplicate") or []
    assert second == Send(0, 1, 2)
    assert not book.machines[0].up
    said = book.timed_out(2.0, 0, 2, then="duplicate", why="it timed out again")
    assert said == [Cancel(0, 1, 2), Cancel(0, 0, 1)]
    assert book.jobs[0].causes == ("it timed out", "it timed out again")
    assert book.machines["up"].all()
    assert book.released == [0]


def test_a_job_that_was_stopped_goes_elsewhere_if_it_can() -> None:
    book = Book(find("fcfs"), np.ones((1, 2)), [1.0], retries=2)
    book.submit(0.0, 0, 0)
    assert book.timed_out(1.0, 0, 1) == [Cancel(0, 0, 1), Send(0, 1, 2)]
    push = Book(find("mct"), np.ones((1, 1)), [1.0], retries=2)
    push.submit(0.0, 0, 0)
    push.submit(0.5, 1, 0)
    assert push.timed_out(1.0, 0, 1) == [Cancel(0, 0, 1), Send(1, 0, 1)], "the next one is served"
    assert [job.number for job in push.own[0]] == [0]


def test_a_job_that_has_not_started_does_not_fail_at_once() -> None:
    book = Book(find("fcfs"), np.ones((1, 2)), [1.0], retries=1)
    book.submit(0.0, 0, 0)
    assert book.timed_out(1.0, 0, 1, then="fail") == [Cancel(0, 0, 1), Send(0, 1, 2)]
    book.started(1.5, 0, 2)
    book.timed_out(2.0, 0, 2, then="fail")
    assert book.jobs[0].stage == Stage.failed


def test_the_start_of_a_copy_is_noted() -> None:
    book = Book(find("fcfs"), np.ones((1, 2)), [1.0])
    book.submit(0.0, 0, 0)
    book.timed_out(1.0, 0, 1, then="duplicate")
    book.started(1.5, 0, 1)
    assert book.finished(3.0, 0, 1) is not None
    assert (book.jobs[0].machine, book.jobs[0].started) == (0, 1.5)
