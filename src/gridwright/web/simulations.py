"""Simulations as background tasks, and what they have found so far."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from secrets import token_hex
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ..allocation import long_run_of, time_limit
from ..catalogue import find
from ..experiments import Comparison, Result, compare, simulate
from ..experiments.result import in_full
from ..experiments.results_by_kind import check_alike, result_of
from ..model import InputError, System
from ..policies import Policy
from ..policies import find as find_policy
from ..simulation import Replication, check_run, check_system
from ..statistics import BINS
from .documents import check_policy, plain, system_of
from .findings import (
    Document,
    describe_metric,
    describe_result,
    figure_rows,
    load_document,
    save_document,
)
from .pasted_policy import LONGEST_CODE, paste
from .queue import SECONDS, Queue, StoppedError, Task

HORIZON = 20_000.0
"""Time units of a system for which nothing was published."""
MOST_BYTES = 256 * 2**20
"""Memory for the responses of one simulation."""


class Wanted(BaseModel):
    """A simulation that is asked for."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    system: Annotated[
        str | dict[str, Any],
        Field(description="A name of the catalogue, or the content of a system file, as an object"),
    ]
    policies: Annotated[tuple[str, ...], Field(title="Policies", max_length=20)] = ()
    code: Annotated[
        str,
        Field(
            title="Code of a policy",
            max_length=LONGEST_CODE,
            description="Python code with further policies; only on this computer, with the token",
        ),
    ] = ""
    horizon: Annotated[
        Annotated[float, Field(gt=0, le=1e7)] | None,
        Field(title="Time units", description="Empty: as published, or 20,000"),
    ] = None
    replications: Annotated[int, Field(title="Replications", ge=1, le=1000)] = 10
    seed: Annotated[int, Field(title="Seed", ge=0, lt=2**63)] = 1
    warmup: Annotated[float, Field(title="Warm-up", ge=0, description="Time units")] = 0.0


@dataclass
class Simulation(Task):
    """Simulate one or several policies with the same arrivals; keep what was found as a file."""

    kind = "simulation"
    grace = 3.0  # a pasted policy may never return

    system: System
    policies: tuple[Policy, ...]
    horizon: float
    wanted: Wanted
    address: str = field(default_factory=lambda: token_hex(4))
    """The page /simulate/ADDRESS shows the results, also after a restart of the server."""
    shares: dict[str, float] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    comparison: Comparison | None = None
    document: Document | None = None
    """What was found; None until the simulation has ended."""

    @property
    def tails(self) -> bool:
        """Whether responses are counted for percentiles: unless that takes too much memory."""
        runs = len(self.policies) * self.wanted.replications
        return runs * len(self.system.classes) * BINS * 8 <= MOST_BYTES

    def work(self) -> None:
        """Simulate; if it is stopped, compare the policies that are complete."""
        try:
            self._simulate()
        except StoppedError:
            found = [self.results.get(str(policy)) for policy in self.policies]
            whole = [r for r in found if r and len(r.replications) == self.wanted.replications]
            if len(whole) > 1:
                self.comparison = Comparison(tuple(whole))
            raise

    def end(self, state: str, error: str = "") -> None:
        """Record how it ended, and keep what was found; the replications are forgotten."""
        if not self.is_over:
            how = {"state": state, "error": error, "share": 1.0 if state == "done" else self.share}
            document: Document = plain({**self.findings(), **how, "result": self.result()})
            document["rows"] = plain(figure_rows(list(self.results.values())))
            save_document(document)
            self.document = document  # a page may read it at any moment: only now is it whole
            self.results, self.comparison = {}, None
        super().end(state, error)

    def _simulate(self) -> None:
        self._note(self.policies[0], 0.0, [])
        with time_limit(SECONDS):  # the verdicts need this LP; it is solved once and kept
            long_run_of(self.system)
        wanted = self.wanted
        rest = (self.horizon, wanted.replications, wanted.seed)
        options: Any = {"warmup": wanted.warmup, "tails": self.tails}
        if len(self.policies) > 1:
            self.comparison = compare(
                self.system, self.policies, *rest, **options, progress=self._note
            )
            self.results = {str(each.policy): _judged(each) for each in self.comparison.results}
        else:
            (only,) = self.policies
            note = partial(self._note, only)
            found = simulate(self.system, only, *rest, **options, progress=note)
            self.results[str(only)] = _judged(found)

    def _note(self, policy: Policy, done: float, runs: list[Replication]) -> None:
        """Keep what was found so far; end if the simulation was stopped."""
        self.go_on()
        name, known = str(policy), self.results.get(str(policy))
        self.shares[name] = done
        self.share = sum(self.shares.values()) / len(self.policies)
        if runs and (known is None or len(known.replications) < len(runs)):
            wanted = (self.horizon, self.wanted.warmup, self.wanted.seed)
            self.results[name] = _judged(result_of(self.system, policy, *wanted, tuple(runs)))

    def progress(self) -> dict[str, Any]:
        """Return how far it is, with the intervals so far."""
        known = (
            None if self.document is None else {p["policy"]: p for p in self.document["policies"]}
        )
        return {
            "id": self.number,
            "address": self.address,
            "system": self.system.name,
            "horizon": self.horizon,
            "replications": self.wanted.replications,
            "policies": [
                self._line(str(policy)) if known is None else _brief(known[str(policy)])
                for policy in self.policies
            ],
            **self.record(),
        }

    def _line(self, name: str) -> dict[str, Any]:
        found = self.results.get(name)
        line: dict[str, Any] = {"policy": name, "share": self.shares.get(name, 0.0)}
        line["replications"] = 0 if found is None else len(found.replications)
        if found is not None:
            line["stable"], line["verdict"] = found.stable, found.verdict
            line["long_run_load"] = found.long_run_load
            for each in dict.fromkeys((*found.criteria, "mean_number", "mean_response")):
                line[each] = found.figure(each).as_json()
        return line

    def findings(self) -> Document:
        """Return what was found so far, as the page shows it."""
        how, results, compared = self.record(), dict(self.results), self.comparison
        if self.document is not None:  # it is there before the results are forgotten
            return self.document
        first = next(iter(results.values()), None)
        lines = []
        for policy in map(str, self.policies):
            found = results.get(policy)
            lines.append(self._line(policy) | ({} if found is None else describe_result(found)))
        return plain(
            {
                "address": self.address,
                "made": datetime.now(UTC).isoformat(timespec="seconds"),
                "version": version("gridwright"),
                "wanted": self.wanted.model_dump(mode="json"),
                "system": self.system.name or "the system",
                "horizon": self.horizon,
                "length": f"{in_full(self.horizon)} time units" if first is None else first.length,
                "replications": self.wanted.replications,
                "tails": self.tails,
                "metric": None if first is None else describe_metric(first),
                "policies": lines,
                "differences": []
                if compared is None
                else [each.sentence for each in compared.ranked_differences],
                "conclusions": [] if compared is None else list(compared.conclusions),
                **how,
            }
        )

    def result(self) -> dict[str, Any]:
        """Return everything that was found."""
        if self.document is not None:
            found: dict[str, Any] = self.document["result"]
            return found
        if self.comparison is not None:
            return self.comparison.as_json()
        return {"results": [found.as_json() for found in list(self.results.values())]}


SHAPES = ("classes", "tail", "numbers", "figures", "value", "has_mean", "growth")
"""What only the findings have, beside the progress of a policy."""


def _brief(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in SHAPES}


def document_at(queue: Queue, address: str) -> Document | None:
    """Return what a simulation has found, by its address: so far, or as it was kept."""
    for each in queue.all(Simulation):
        if each.address == address:
            return each.findings()
    return load_document(address)


def simulation_of(wanted: Wanted) -> Simulation:
    """Make a simulation; raise an error if it cannot run as it is wanted."""
    system = system_of(wanted.system)
    policies = tuple(find_policy(check_policy(name)) for name in wanted.policies)
    if wanted.code.strip():
        policies += paste(wanted.code)
    if not policies:
        raise InputError("there is nothing to simulate; choose at least one policy")
    names = [str(policy) for policy in policies]
    if len(set(names)) < len(names):
        raise InputError("a policy is chosen twice")
    published = find(wanted.system).horizon if isinstance(wanted.system, str) else None
    horizon = wanted.horizon or published or HORIZON
    check_run(horizon, wanted.warmup)
    check_alike(policies)
    for policy in policies:
        check_system(system, policy)
    return Simulation(system, policies, horizon, wanted)


def _judged(result: Result) -> Result:
    """Compute the verdict on a result in this thread, so that pages need not solve anything."""
    _ = result.stability, result.long_run_load  # both are kept with the result
    return result
