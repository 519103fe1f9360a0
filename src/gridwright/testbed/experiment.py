"""An experiment: which system, on which machines, under which policy, for how long."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from ..catalogue import experiment_names, experiment_path, load
from ..grid import Corrections, Settings, corrections_of, on_timeout_of
from ..grid.executors.connection import Tls
from ..grid.prediction import Prediction, predictions_of
from ..grid.validation import renamed_place
from ..model import InputError, System, did_you_mean, mode
from ..model.file import document, read
from ..model.record import NonNegative, OneOrList, Positive, Record, explain
from ..model.toml import format_toml
from ..policies import BATCH, CHAIN, PEER, Policy
from ..policies import find as find_policy
from ..simulation import check_system
from .adjuster import Calibration
from .changes import Change, draw_changes
from .loop_model import loop_of, modelled
from .machine_list import Listed, read_machines
from .workload import (
    Fault,
    FaultsGiven,
    JobList,
    check_faults,
    draw_faults,
    read_faults,
    redraw_faults,
    rows_of,
)

SHORTEST, LONGEST = 0.001, 1e6
"""Seconds of a time unit: to start a job takes about a millisecond; a million are 11 days."""


LOOPS = (BATCH, CHAIN)
"""The kinds of policies for which the simulator's loop decides on real machines, too."""


def _bearable(time_unit: float) -> float:
    if not SHORTEST <= time_unit <= LONGEST:
        raise ValueError(
            f"a time unit of {time_unit:g} seconds; expected {SHORTEST:g} to {LONGEST:,.0f}, as "
            "starting a job takes about a millisecond"
        )
    return time_unit


class Experiment(Record):
    """A test of a policy on real machines.

    Attributes
    ----------
    system
        A name of the catalogue, the path of a system file, or a system.
    policy
        A policy of any kind, by name or file.
    time_unit
        Seconds of a time unit.
    duration
        Time units after which the run stops; jobs that have not ended then are unfinished.
    seed
        The same seed gives the same jobs and failures.
    job
        ``wait``, a sleep, or ``spin``, a loop that really takes the CPU.
    iterations
        For ``spin``: the iterations of a job of each class on a machine of real speed. With this,
        imposed rates of more than four times the real rate cause a warning.
    on
        Where it runs: by default each machine is a local process; at ``tcp://HOST:PORT`` or
        ``tls://HOST:PORT``, on the workers of that Dask scheduler.
    tls
        For a ``tls://`` address: ``ca_file``, ``cert`` and ``key``, the paths of PEM files.
    machines
        Names, or Dask workers, for the columns of the system; or the path of a machine list.
    calibrations
        The measured speed of each machine, if there is no machine list.
    timeout, on_timeout
        A job times out when it takes this many times its expected duration; 0: never. What happens
        then is as given, else as the policy says, else ``resubmit``.
    detection
        How the grid learns of a failure: ``immediate``, or only by the ``timeout``.
    failures
        ``generated`` from the system, ``none``, the path of a failure trace, or the trace itself:
        a list of machine, start and end.
    jobs
        The path of a job list; by default the jobs are drawn.
    resolution, prediction
        Time units between measurements of CPU availability (0: none), and how it is predicted: for
        all machines, or a list with one for each.
    corrections
        Which assumed rates follow measurements.

    Examples
    --------
    >>> Experiment(system="MGST.HiHi:1", policy="lpas_dg", time_unit=2).duration
    60.0
    """

    system: Annotated[System, BeforeValidator(lambda value: _system(value))]
    policy: Annotated[str, Field(title="Policy")]
    name: str = ""
    time_unit: Annotated[
        Positive, AfterValidator(_bearable), Field(title="Time unit", description="Seconds")
    ] = 1.0
    duration: Annotated[Positive, Field(title="Duration", description="Time units")] = 60.0
    seed: Annotated[int, Field(strict=True, ge=0, title="Seed")] = 1
    job: Annotated[Literal["wait", "spin"], Field(title="Jobs")] = "wait"
    iterations: Annotated[
        OneOrList[Positive] | None,
        Field(title="Iterations", description="Of jobs that spin: one number, or one per class"),
    ] = None
    on: Annotated[
        str, Field(title="Run on", description="Empty: this computer; or tcp://HOST:PORT of Dask")
    ] = ""
    tls: Tls | None = None
    machines: str | tuple[str, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    timeout: Annotated[
        NonNegative, Field(title="Time-out", description="Multiple of the expected time; 0: never")
    ] = 0.0
    on_timeout: Annotated[
        Literal["resubmit", "wait", "fail", "duplicate"], Field(title="After a time-out")
    ] = "resubmit"
    detection: Annotated[Literal["immediate", "timeout"], Field(title="Failure detection")] = (
        "immediate"
    )
    failures: Annotated[FaultsGiven, Field(title="Failures")] = "generated"
    jobs: str = ""
    resolution: Annotated[
        NonNegative,
        Field(title="Reading interval", description="Time units between readings; 0: none"),
    ] = 0.0
    prediction: OneOrList[Prediction] = Prediction()
    corrections: Annotated[Corrections, BeforeValidator(corrections_of)] = Corrections()

    def model_post_init(self, context: Any) -> None:
        """Check keys that depend on each other."""
        system, policy = self.system, self.chosen_policy()
        mode.check(system, policy.kind.mode, f"{policy.name} is a {policy.kind} policy")
        if policy.kind is PEER:
            self._check_peers()
        elif policy.kind in LOOPS:
            self._check_loop(policy)
        if not all(isinstance(share, float | int) for share in system.machine_availability):
            raise InputError(f"{system.name}: a testbed imposes availabilities that stay the same")
        if system.delays is not None:
            raise InputError(f"{system.name} has [delays]; a testbed has those of its machines")
        if system.believes_anew:
            raise InputError(
                f"{system.name}: [assumed] arrivals that are 'present' or measured are for "
                "simulations; a testbed takes rates, or measures them itself (corrections)"
            )
        if system.assumed is not None and any(system.assumed.inaccuracy.parts().values()):
            raise InputError(f"{system.name}: a testbed takes assumed rates, not an inaccuracy")
        if self.detection == "timeout" and self.timeout == 0:
            raise InputError("detection is 'timeout', but timeout is 0: no failure would be seen")
        if self.iterations is not None and self.job != "spin":
            raise InputError("iterations are for jobs that spin: job is 'wait'")
        rounds = self.iterations if isinstance(self.iterations, tuple) else ()
        if rounds and len(rounds) != system.shape[0]:
            raise InputError(f"{len(rounds)} iterations for {system.shape[0]} classes")
        if self.calibrations and len(self.calibrations) != system.shape[1]:
            raise InputError(
                f"{len(self.calibrations)} calibrations for {system.shape[1]} machines"
            )
        predictions_of(self.prediction, system.shape[1])
        if not isinstance(self.failures, str):
            check_faults(self.failures, system)
        if self.tls and not self.on.startswith("tls://"):
            raise InputError(
                f"tls is given, but on is {self.on!r}, which is not encrypted; "
                "expected tls://HOST:PORT"
            )

    def _check_peers(self) -> None:
        """Refuse what an experiment without a scheduler cannot do."""
        if self.on:
            raise InputError(f"on is {self.on!r}; machines of a peer policy run on this computer")
        if self.timeout or self.resolution:
            key = "timeout" if self.timeout else "resolution"
            raise InputError(f"{key} is not 0; peer policies know neither time-outs nor readings")
        if self.system.assumed is not None:
            raise InputError(
                f"{self.system.name}: machines of a peer policy know their own rates; "
                "the system cannot have [assumed]"
            )
        if self.failures == "generated" and self.system.failures is not None:
            raise InputError(
                f"{self.system.name} has machines that fail; with a peer policy, give a failure "
                "trace in the experiment"
            )

    def _check_loop(self, policy: Policy) -> None:
        """Refuse what an experiment with batches or chains cannot do."""
        check_system(self.imposed, policy)
        for key, unset in (("timeout", 0), ("resolution", 0), ("jobs", "")):
            if getattr(self, key) != unset:
                raise InputError(f"{key} is given, but {policy.name} is a {policy.kind} policy")
        if self.failures not in ("generated", "none"):
            raise InputError(
                f"failures are a trace, but {policy.name} is a {policy.kind} policy; "
                "expected 'generated' or 'none'"
            )

    @property
    def imposed(self) -> System:
        """The system without failures, if the experiment has none."""
        if self.failures == "none" and self.system.failures is not None:
            return self.system.replace(failures=None)
        return self.system

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, words: Any) -> Any:
        return _in_new_words(words) if isinstance(words, dict) else words

    @property
    def executor(self) -> str:
        """The kind of its machines: ``local`` or ``dask``."""
        return "dask" if self.on else "local"

    @classmethod
    def from_file(cls, path: str | PathLike[str], **changes: Any) -> Self:
        """Read an experiment file (TOML); ``changes`` replace keys of it.

        Paths in the file are relative to its folder.
        """
        file = Path(path)
        try:
            words = _in_new_words({"name": file.stem, **_seen_from(file.parent, read(file))})
            if "rates" in words and "system" not in words:
                raise InputError(
                    "this looks like a system, with 'rates' in it; expected an experiment file, "
                    f"which names the system: system = '{file.name}'"
                )
        except InputError as error:
            raise InputError(f"{file}: {error}") from None
        try:
            return cls._checked({**words, **_in_new_words(changes)})
        except InputError as error:
            if changes:  # is the file wrong, or are they?
                try:
                    cls._checked(words)
                except InputError:
                    pass
                else:
                    raise
            raise InputError(f"{file}: {error}") from None

    @classmethod
    def _checked(cls, words: dict[str, Any]) -> Self:
        try:
            return cls.model_validate(words)
        except ValidationError as error:
            raise InputError(explain(error, cls)) from None

    @classmethod
    def find(cls, name: str, **changes: Any) -> Self:
        """Find an experiment by its name in the catalogue, or by the path of its file.

        >>> Experiment.find("MGST-5").system.shape
        (4, 21)
        """
        if name in experiment_names():
            return cls.from_file(experiment_path(name), **changes)
        if os.path.isdir(name):
            raise InputError(f"{name} is a folder; expected an experiment file")
        if not name.endswith(".toml") and not os.path.exists(name):
            others = [each for each in experiment_names() if not each.startswith("MGST")]
            first, *_, last = (each for each in experiment_names() if each not in others)
            known = f"; there are {first} to {last.removesuffix('-modulo')}, {', '.join(others)}, "
            known += "and files (.toml)"
            hint = did_you_mean(name, experiment_names()) or known
            raise InputError(f"no experiment {name!r}{hint}")
        return cls.from_file(name, **changes)

    def replace(self, **changes: Any) -> Self:
        """Return the experiment with some of its parts changed."""
        given = {key: getattr(self, key) for key in self.model_fields_set}
        return type(self)(**{**given, **changes})

    def chosen_policy(self) -> Policy:
        """Return the policy that is named."""
        return find_policy(self.policy)

    def job_list(self) -> JobList:
        """Return the jobs: drawn, or read from a file."""
        if (policy := self.chosen_policy()).kind in LOOPS:  # the loop draws them
            loop = loop_of(self.imposed, policy, self.duration, self.seed)
            jobs = modelled(loop, self.duration).jobs.values()
            columns = zip(*((job.submitted, job.task_class, 1.0) for job in jobs), strict=True)
            return JobList(*columns) if jobs else JobList((), (), ())
        if self.jobs:
            return JobList.read(self.jobs, self.system)
        return JobList.drawn(self.system, self.duration, self.seed, self.changes())

    def changes(self) -> tuple[Change, ...]:
        """Return the changes of rates, drawn, if the system has some."""
        return draw_changes(self.system, self.duration, seed=self.seed)

    def faults(self) -> tuple[Fault, ...]:
        """Return the failures: drawn, read from a file, or given."""
        if self.failures == "none" or self.chosen_policy().kind in LOOPS:
            return ()
        if self.failures == "generated":
            return draw_faults(self.system, self.duration, self.seed)
        if isinstance(self.failures, str):
            return read_faults(self.failures, self.system)
        return check_faults(self.failures, self.system)

    def with_failures_of(self, machine: str, mean_uptime: float, mean_repair: float) -> Self:
        """Return the experiment with other failures of one machine, drawn with these mean times.

        >>> found = Experiment(system="MGST.HiHi:1", policy="fcfs", duration=500)
        >>> found = found.with_failures_of("2", mean_uptime=50, mean_repair=2)
        >>> {fault.machine for fault in found.faults()}
        {1}
        """
        means = mean_uptime, mean_repair
        faults = redraw_faults(
            self.faults(), self.system, machine, *means, self.duration, self.seed
        )
        return self.replace(failures=rows_of(faults, self.system))

    def listed(self) -> tuple[Listed, ...]:
        """Return the machines that were named, if any."""
        if isinstance(self.machines, str):
            return read_machines(self.machines) if self.machines else ()
        return tuple(Listed(name) for name in self.machines)

    def known_speeds(self) -> tuple[Calibration, ...]:
        """Return the measured speed of each machine, if it is known."""
        listed = tuple(each.calibration for each in self.listed() if each.calibration)
        return self.calibrations or listed

    def machine_names(self) -> list[str]:
        """Return a name for every machine of the system."""
        names = [each.address for each in self.listed()] or list(self.system.machines)
        wanted = len(self.system.machines)
        if len(names) != wanted:
            raise InputError(
                f"{len(names)} machines for a system of {wanted}; name as many, or none"
            )
        if len(set(names)) < wanted:
            raise InputError("two machines have the same name; expected every name once")
        return names

    def settings(self) -> Settings:
        """Return the settings of the mapper."""
        keys = ("timeout", "corrections", "resolution")
        given = self.on_timeout if "on_timeout" in self.model_fields_set else None
        return Settings(
            **{key: getattr(self, key) for key in keys},
            on_timeout=on_timeout_of(given, self.chosen_policy(), self.on_timeout),
        )

    def to_toml(self) -> str:
        """Return the text of an experiment file that contains its system.

        >>> print(Experiment(system="2.B", policy="mct", seed=3).to_toml().partition("[system]")[0])
        policy = "mct"
        seed = 3
        <BLANKLINE>
        <BLANKLINE>
        """
        words = self.words()
        return format_toml({**words, "system": words.pop("system")})

    def words(self) -> dict[str, Any]:
        """Return its keys with the whole system and with absolute paths."""
        unsaid: Any = {"exclude_unset": True, "exclude": {"system"}}
        words = _stated(self.model_dump(mode="json", **unsaid))
        words["system"] = document(self.system)
        return _seen_from(Path.cwd(), words)


def _seen_from(folder: Path, words: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an experiment; relative paths in them become paths from a folder."""
    found = dict(words)
    for key in ("system", "policy", "machines", "failures", "jobs"):
        value = words.get(key)
        if not isinstance(value, str) or not value:
            continue
        if key == "system":
            is_path = (folder / value).is_file()
        elif key == "policy":
            name = value.partition(":")[0]
            is_path = "/" in name or name.endswith(".py")
        else:
            is_path = value not in ("generated", "none")
        if is_path:
            found[key] = str(folder / value)
    return found


def _stated(words: Any) -> Any:
    """Remove keys whose value is None, because TOML has no such value."""
    if isinstance(words, dict):
        return {key: _stated(value) for key, value in words.items() if value is not None}
    return [_stated(each) for each in words] if isinstance(words, list) else words


def _system(value: Any) -> Any:
    if isinstance(value, str):
        return load(value)
    return System.model_validate(value) if isinstance(value, dict) else value


def _in_new_words(words: dict[str, Any]) -> dict[str, Any]:
    """Replace the deprecated keys ``executor`` and ``address`` by ``on``."""
    if not words.keys() & {"executor", "address"}:
        return words
    words = dict(words)
    executor, address = words.pop("executor", None), words.pop("address", "")
    if executor == "local":
        address = ""  # it was ignored
    on = renamed_place(words.get("on"), executor, address, "an experiment")
    return {**words, "on": on or ""}
