"""Chain policies on a grid: a job is one stage of a chain, and the policy chooses its node.

The rules are those of the simulator (``simulation/chain_loop.py``) in plain Python, without links
and overlaps. A test drives both through the same arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..model import Customer, InputError, System, Template, did_you_mean
from ..model.record import Record
from ..policies import CHAIN, Policy
from ..policies.view import JOB, NODE, TALLIES, TEMPLATE, ChainView, records
from .job import Decision, Job, Stage

if TYPE_CHECKING:
    from .state import GridState

Floats = NDArray[np.float64]


class ChainOptions(Record):
    """The chains that a grid knows, in the words of a system file; times are in seconds.

    >>> scan = {"name": "scan", "rate": 0.05, "times": [[4, 7], [10, 5]], "latency": 30}
    >>> ChainOptions(templates=[scan]).templates[0].applications
    2
    """

    templates: tuple[Template, ...]
    customers: tuple[Customer, ...] = ()


class KnownChains:
    """The templates that chain policies know. A stage of a template is a class of jobs."""

    def __init__(
        self, options: ChainOptions, machines: Sequence[str], hosts: Sequence[str]
    ) -> None:
        self.options = options
        self.templates = {each.name: each for each in options.templates}
        self.machines = list(machines)
        self.slots = [self.machines.index(host) for host in hosts]
        """The machine of each slot."""
        self.given: Floats = np.concatenate([each.times for each in options.templates])
        """Seconds [class, machine]; infinite where a machine cannot run a stage."""
        lengths = [each.applications for each in options.templates]
        self.where = [(i, k) for i, length in enumerate(lengths) for k in range(length)]
        """The template and the stage of each class."""
        self.classes = [
            class_of_stage(each.name, k + 1)
            for each in options.templates
            for k in range(each.applications)
        ]
        names = [customer.name for customer in options.customers]
        self.shown = records(len(lengths), TEMPLATE)
        self.shown["first"] = np.cumsum(lengths) - lengths
        self.shown["applications"] = lengths
        self.shown["rate"] = [each.rate for each in options.templates]
        self.shown["latency"] = [each.latency for each in options.templates]
        self.shown["customer"] = [
            names.index(each.customer) if each.customer else 0 for each in options.templates
        ]

    def template(self, name: str, stages: int) -> tuple[str, float]:
        """Return the name and latency of a chain's template; refuse another number of stages."""
        found = self.templates.get(name)
        if not name and len(self.templates) == 1:
            found = next(iter(self.templates.values()))
        if found is None:
            known = ", ".join(self.templates)
            hint = did_you_mean(name, self.templates) or f"; there are {known}"
            what = f"no template {name!r}{hint}" if name else f"name the template: {known}"
            raise InputError(f"submit_chain: {what}; options(task_class=…) names it")
        if found.applications != stages:
            raise InputError(
                f"submit_chain: template {found.name!r} has {found.applications} stages; "
                f"{stages} functions were given"
            )
        return found.name, float(found.latency)

    def rates(self) -> Floats:
        """Return the rates of each class on each slot, 0 where it cannot run."""
        return np.ascontiguousarray(1.0 / self.given[:, self.slots])

    def add_class(self, name: str, host: str = "") -> None:
        """Refuse a class: all are known."""
        known = ", ".join(self.templates)
        raise InputError(f"this grid runs chains, and class {name!r} is no stage of {known}")

    def add_machine(self, host: str) -> None:
        """Add a slot; of a machine that is new, assume the mean of the others for each class."""
        if host not in self.machines:
            self.machines.append(host)
            able = np.isfinite(self.given)
            total = np.where(able, self.given, 0.0).sum(axis=1)
            self.given = np.hstack([self.given, (total / able.sum(axis=1))[:, None]])
        self.slots.append(self.machines.index(host))

    def ran(self, task_class: int, slot: int, seconds: float) -> None:
        """Do nothing: the grid learns rates."""


def class_of_stage(template: str, stage: int) -> str:
    """Return the name of the class of a stage, from 1 on."""
    return f"{template}.{stage}"


def chains_of(
    policy: Policy,
    given: ChainOptions | Mapping[str, Any] | None,
    hosts: Sequence[str],
) -> KnownChains | None:
    """Return what a chain policy is to know; None for other policies."""
    if policy.kind is not CHAIN:
        if given is not None:
            raise InputError(f"chains is for chain policies; {policy.name} is a {policy.kind} one")
        return None
    if given is None:
        raise InputError(
            f"{policy.name} is a chain policy, which must know the chains; "
            "give chains={'templates': …}"
        )
    if not isinstance(given, ChainOptions | Mapping):
        raise InputError(f"chains is {given!r}; expected a table")
    options = given if isinstance(given, ChainOptions) else ChainOptions(**given)
    machines = list(dict.fromkeys(hosts))
    if not options.templates:
        raise InputError("chains has no templates; expected one for each sort of chain")
    for each in options.templates:
        if each.overlap:
            raise InputError(f"template {each.name!r}: overlap is for simulations and experiments")
        if len(each.times[0]) != len(machines):
            raise InputError(
                f"template {each.name!r} has times in {len(each.times[0])} columns; expected "
                f"{len(machines)}, one for each machine"
            )
    names = [each.name for each in options.templates]
    if len(set(names)) < len(names):
        raise InputError(f"chains has template {max(names, key=names.count)!r} twice")
    System(templates=options.templates, customers=options.customers, groups=machines)  # may refuse
    return KnownChains(options, machines, hosts)


class Chains:
    """The policy is asked for a node when a stage is ready; idle nodes start the first in line.

    What the policy holds back waits centrally, and an idle node takes it by its place.
    """

    def __init__(self, book: GridState) -> None:
        if not isinstance(book.times, KnownChains):
            raise InputError(f"{book.policy.name} is a chain policy, which must know the chains")
        self.book, self.known = book, book.times
        self.by_age = book.policy.options["order"] == "oldest_job"
        self.ready = 0
        """How many stages have become ready."""
        self.fresh: list[Job] = []
        """Jobs that wait, and about which the policy has not been asked."""
        self.last: dict[int, int] = {}
        """Where the last stage of each chain was sent, by the number of the chain."""
        self.is_due = False
        """Whether idle nodes may have something to start."""
        self.idle: dict[int, None] = {}
        """No machine: none is given a job that the policy has given to another."""
        self.able = np.zeros(0, np.bool_)
        """The nodes that took jobs when the policy was last asked again."""
        self.memory: Floats = np.zeros((len(self.known.shown), len(book.machines)))
        self.tally: Floats = np.zeros(TALLIES)
        self.first = book.nominal.copy()

    def entered(self, job: Job) -> None:
        """Note that a job waits; it keeps its place if it has waited before."""
        if math.isnan(job.place):
            job.place = float(chain_of(job) if self.by_age else self.ready)
            self.ready += 1
            template, stage = self.known.where[job.task_class]
            self.known.shown[template].arrived += stage == 0
        self.fresh.append(job)

    def placed(self, task_class: int) -> None:
        """Ask for nodes for what has come."""
        self._ask_fresh()

    def freed(self, machine: int) -> None:
        """Let a node start something at the end of the turn."""
        self._ask_fresh()
        self._look()

    def retried(self, task_class: int, machine: int) -> None:
        """Ask for a node for a job that was stopped."""
        self._ask_fresh()

    def go_on(self) -> None:
        """Ask for nodes for what an earlier event left."""
        self._ask_fresh()

    def gone(self, machine: int) -> None:
        """Do nothing: what the node had is returned."""

    def returned(self, task_class: int) -> None:
        """Ask again about the jobs of a node that is gone, by their places."""
        self._ask_fresh()
        self._look()

    def recalled(self) -> None:
        """Let idle nodes look for something to start."""
        self.is_due = True

    def foresee(self, machine: int) -> bool:
        """Send no job ahead: an older one may come before it."""
        return False

    def watch(self, job: Job) -> None:
        """Do nothing: late chains are not discarded."""

    def next_deadline(self) -> float:
        """Return infinity: late chains are not discarded."""
        return math.inf

    def expire(self) -> None:
        """Do nothing: late chains are not discarded."""

    def settle(self) -> None:
        """Let idle nodes start the first of what waits for them or centrally."""
        if not self.is_due:
            return
        self.is_due = False
        for machine in range(len(self.book.running)):
            if self.book.running[machine] is None and self.book.can_take(machine):
                self._serve(machine)

    def _serve(self, machine: int) -> None:
        book, times = self.book, self._times()
        own = min(book.own[machine], key=_order, default=None)
        able = [i for i, line in enumerate(book.waiting) if line and times[i, machine] < math.inf]
        central = min((job for i in able for job in book.waiting[i]), key=_order, default=None)
        if own is not None and (central is None or _order(own) < _order(central)):
            book.own[machine].take(own)
            book.send(own)
        elif central is not None:
            self.last[chain_of(central)] = machine
            book.give_job(central, machine)

    def _look(self) -> None:
        """Ask again about what waits centrally, if nodes have come or gone."""
        book = self.book
        able = book.up & ~book.closed
        if len(able) != len(self.able) or (able != self.able).any():
            self.able = able
            every = sorted((job for line in book.waiting for job in line), key=_order)
            for job in every:
                self._ask(job)
        self.is_due = True

    def _ask_fresh(self) -> None:
        fresh, self.fresh = self.fresh, []
        for job in [*fresh[:1], *sorted(fresh[1:], key=_order)]:
            if job.stage == Stage.waiting:
                self._ask(job)
        self.is_due = True

    def _ask(self, job: Job) -> None:
        """Ask the policy for a node, check its answer, and let the job queue there."""
        book, times = self.book, self._times()
        row = job.task_class
        book.asked += 1
        answer = int(book.decide(0, self.known.where[row][1], self._view(job), *book.arguments))
        candidates = tuple(
            j for j in range(len(book.running)) if book.can_take(j) and times[row, j] < math.inf
        )
        book.decisions.append(Decision(book.now, row, candidates, answer, book.plans))
        if answer in candidates:
            self.last[chain_of(job)] = answer
            book.line_up(job, answer)
        else:
            book.refusals += answer != -1
        if len(self.last) > 2 * len(book.jobs) + 100:
            alive = {chain_of(each) for each in book.jobs.values()}
            self.last = {chain: node for chain, node in self.last.items() if chain in alive}

    # what the policy sees

    def _times(self) -> Floats:
        """Return the seconds that each class should take on each slot."""
        book, given = self.book, self.known.given[:, self.known.slots]
        if self.first.shape != book.nominal.shape:
            grown = np.array(book.nominal)
            grown[: self.first.shape[0], : self.first.shape[1]] = self.first
            self.first = grown
        measured = np.divide(
            1.0, book.nominal, out=np.full(given.shape, np.inf), where=book.nominal > 0
        )
        found = np.where(book.nominal == self.first, given, measured)
        return np.asarray(found / book.availability)

    def _view(self, job: Job) -> ChainView:
        """Show the nodes, the chain of a job in place 0, and those that run behind it."""
        book, times = self.book, self._times()
        nodes = records(len(book.running), NODE)
        running = [each for each in book.running if each is not None]
        jobs = records(1 + len(running), JOB)
        for place, each in enumerate([job, *running]):
            template, stage = self.known.where[each.task_class]
            shown = jobs[place]
            shown.number, shown.template, shown.stage = chain_of(each), template, stage
            shown.arrived = each.submitted - book.start
            shown.machine = self.last.get(chain_of(each), -1)
        behind = {each.number: 1 + k for k, each in enumerate(running)}
        nodes["up"] = book.up & ~book.closed
        nodes["availability"] = book.availability
        nodes["column"] = np.arange(len(nodes))
        for j, here in enumerate(book.running):
            held = [*([here] if here is not None else []), *book.own[j]]
            nodes[j].serving = -1 if here is None else behind[here.number]
            nodes[j].backlog = len(held)
            nodes[j].work = sum(float(times[each.task_class, j]) for each in held)
        if self.memory.shape[1] < len(nodes):
            self.memory = np.pad(self.memory, ((0, 0), (0, len(nodes) - self.memory.shape[1])))
        links = np.zeros((len(nodes), len(nodes)))
        about = (nodes, jobs, self.known.shown, times, links, self.memory, self.tally)
        return ChainView(book.now - book.start, *about, book.rng)


def chain_of(job: Job) -> int:
    """Return the number of the chain of a job: that of its first stage."""
    first = job.options.chain
    return job.number if first is None or first < 0 else first


def _order(job: Job) -> tuple[int, float, int]:
    """Return what says who comes first: the priority, then the place."""
    return (-job.options.priority, job.place, job.number)
