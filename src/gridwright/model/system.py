"""A system: task classes, machines, and how fast each machine runs each class."""

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self
from unicodedata import category

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError, model_validator

from .batch import BatchTables
from .chain import ChainTables
from .distribution import AnyDistribution, Exponential
from .error import InputError
from .file import check_fit, default_parts, document, numbered, read, slot_names, with_defaults
from .mode import Mode, mode_of
from .record import (
    Array,
    Count,
    Matrix,
    NonNegative,
    OneOrList,
    Positive,
    Record,
    explain,
    freeze,
    is_nested,
)
from .toml import format_toml
from .uncertainty import (
    PRESENT,
    Assumed,
    Availability,
    DecentralisedTables,
    Delays,
    Failures,
    MarkovChain,
    MeasuredArrivals,
    Profile,
)


def _printable(name: str) -> str:
    if any(category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        raise ValueError(f"{name!r} has control characters or line breaks")
    return name


Text = Annotated[str, Field(strict=True), AfterValidator(_printable)]
Name = Annotated[Text, Field(min_length=1)]
Floats = NDArray[np.float64]


Arrivals = Annotated[
    Annotated[tuple[Positive, ...], Tag("\0one")]
    | Annotated[tuple[tuple[NonNegative, ...], ...], Tag("\0several")],
    Discriminator(is_nested),
]


class Core(Record):
    """The parts of a system that every policy understands."""

    name: Text = ""
    classes: tuple[Name, ...] = ()
    groups: tuple[Name, ...] = ()
    arrivals: Annotated[Floats, Array(Arrivals)]
    rates: Matrix
    counts: tuple[Count, ...] = ()
    slots: OneOrList[Count] = 1
    costs: OneOrList[Positive] = 1.0
    availability: tuple[Availability, ...] = ()
    execution: OneOrList[AnyDistribution] = Exponential()
    interarrival: OneOrList[AnyDistribution] = Exponential()
    failures: Failures | None = None
    delays: Delays | None = None
    profile: Profile | None = None
    assumed: Assumed | None = None


class System(ChainTables, BatchTables, DecentralisedTables, Core):
    """Task classes, machines and rates; immutable, and validated once.

    A column of ``rates`` is a machine, or a group of equal machines whose number is in ``counts``.
    Rates are tasks per time unit on a machine whose whole CPU is available.

    Parameters
    ----------
    arrivals
        Tasks per time unit: one number per class, or a matrix [class, machine] if tasks arrive
        at machines.
    rates
        Nominal execution rates [class, column]; 0 where the machine cannot run the class.
    name, classes, groups
        Names of the system, of its classes and of its columns.
    counts
        Machines in each column; 1 by default.
    slots
        Tasks that a machine runs at the same time, for all columns or one number per column. Every
        slot has the rates of its column, fails by itself, and is a machine for policies.
    availability
        Share of the CPU in (0, 1] that tasks get, or a Markov chain of shares; one per column or
        one per machine.
    costs
        What a task in the system costs per time unit: one number for all classes, or one per class.
    execution, interarrival
        Distributions of the execution times and of the times between arrivals: one for all
        classes, or one per class. Exponential by default.
    failures
        Up-times and repair times, and whether a task that is lost has the same work when it
        starts again. By default, machines never fail.
    delays
        The time to send a task, to hear that it has ended, to notice that a machine has failed,
        and between reports of CPU availability. By default there are no delays.
    profile
        How the arrival rates change with time, as a cycle or in bursts. Planners and policies
        believe the mean rates. By default, arrival rates are constant.
    assumed
        What planners and policies believe, if it differs from the truth.
    changes
        How rates change while a decentralised system runs.
    pmf, deadlines, batch
        For batch policies: the pmfs of the execution times, the deadlines of tasks, and how tasks
        arrive.
    templates, random_templates, customers, perturbation, links, one_at_a_time
        For chains of applications, in place of arrivals and rates: templates, given or drawn; the
        customers; the errors of the estimates; how long data takes between nodes; whether at
        most one job arrives per tick.

    Examples
    --------
    >>> system = System(arrivals=[5, 8], rates=[[8, 3], [4, 10]], name="two machines")
    >>> system
    System('two machines': 2 classes, 2 machines, arrivals [5, 8])
    >>> system.nominal[1, 0]
    np.float64(4.0)
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            arrivals: Any = ...,
            rates: Any = ...,
            name: str = "",
            classes: Any = (),
            groups: Any = (),
            counts: Any = (),
            slots: Any = 1,
            costs: Any = 1.0,
            availability: Any = (),
            execution: Any = "exponential",
            interarrival: Any = "exponential",
            failures: Any = None,
            delays: Any = None,
            profile: Any = None,
            assumed: Any = None,
            changes: Any = None,
            pmf: Any = None,
            deadlines: Any = None,
            batch: Any = None,
            templates: Any = (),
            random_templates: Any = None,
            customers: Any = (),
            perturbation: Any = None,
            links: Any = None,
            one_at_a_time: bool = False,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        return with_defaults(values)

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_fit(self)
        return self

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Read a system file (TOML); a mistake in it is an InputError of one line."""
        file = Path(path)
        try:
            words = read(file)
            if "system" in words and "rates" not in words:
                raise InputError(
                    "this looks like an experiment, with 'system' in it; expected a system file"
                )
            return cls.model_validate(words, context={"folder": file.parent})
        except ValidationError as error:
            raise InputError(f"{file}: {explain(error, cls)}") from None
        except InputError as error:
            raise InputError(f"{file}: {error}") from None

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write a system file; reading it gives an equal system."""
        file = Path(path)
        file.write_text(self.to_toml(file.parent), encoding="utf-8")

    def to_toml(self, folder: Path | None = None) -> str:
        """Return the text of a system file; paths in it are relative to the folder."""
        return format_toml(document(self, folder))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parts changed, validated like any system.

        >>> System(arrivals=[5], rates=[[8, 3]]).replace(arrivals=[6]).arrivals
        array([6.])
        """
        omitted = default_parts(self)
        given = {key: value for key, value in self.parts().items() if key not in omitted}
        return type(self)(**{**given, **changes})

    def with_counts(self, counts: Sequence[int]) -> Self:
        """Return the system with other numbers of machines; a group of 0 is left out.

        >>> System(arrivals=[5], rates=[[8, 3]], groups=["fast", "slow"]).with_counts([0, 4])
        System('': 1 class, 4 machines, arrivals [5])
        """
        if tuple(counts) == self.counts:
            return self
        columns = len(self.counts)
        single = {
            "availability": self.availability,
            **{f"[delays] {k}": v for k, v in (self.delays.parts() if self.delays else {}).items()},
            "[assumed] availability": self.assumed.availability if self.assumed else None,
        }
        for key, values in single.items():
            if isinstance(values, tuple) and len(values) != columns:
                raise InputError(
                    f"the system gives the {key} of every single machine, so their number cannot "
                    "be varied; give it by groups"
                )
        kept = [k for k, count in enumerate(counts) if count]
        if len(kept) == columns:
            return self.replace(counts=list(counts))

        def fewer(values: Any) -> Any:
            return [values[k] for k in kept] if isinstance(values, tuple) else values

        changes: dict[str, Any] = {key: fewer(getattr(self, key)) for key in ("groups", "slots")}
        changes["availability"] = fewer(self.availability)
        for table in ("failures", "delays"):
            if (record := getattr(self, table)) is not None:
                changes[table] = {key: fewer(each) for key, each in record.parts().items()}
        if self.assumed is not None:
            parts = {**self.assumed.parts(), "availability": fewer(self.assumed.availability)}
            if self.assumed.rates is not None:
                parts["rates"] = self.assumed.rates[:, kept].tolist()
            changes["assumed"] = parts
        rates = self.rates[:, kept].tolist()
        return self.replace(counts=[counts[k] for k in kept], rates=rates, **changes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, System) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> str:
        return repr(document(self, named=False))

    def __repr__(self) -> str:
        classes, machines = self.shape
        arrivals = ", ".join(f"{rate:g}" for rate in self.arrival_rates)
        size = f"{classes} class{'es' * (classes != 1)}, {machines} machine{'s' * (machines != 1)}"
        return f"System({self.name!r}: {size}, arrivals [{arrivals}])"

    __str__ = __repr__

    @property
    def mode(self) -> Mode:
        """The mode that its tables are for: central, decentralised, batch or chains."""
        return mode_of(self)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of classes and the number of machines, every slot counted."""
        return len(self.classes), sum(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The machines of each column, every slot counted."""
        slots = self.slots if isinstance(self.slots, tuple) else (self.slots,) * len(self.counts)
        return tuple(count * each for count, each in zip(self.counts, slots, strict=True))

    @cached_property
    def arrival_rates(self) -> Floats:
        """Tasks per time unit of each class, over all machines; the mean if rates change."""
        if self.profile is not None:
            return freeze(self.arrivals * self.profile.means(len(self.classes)))
        return self.arrivals if self.arrivals.ndim == 1 else freeze(self.arrivals.sum(axis=1))

    @cached_property
    def holding_costs(self) -> Floats:
        """What a task of each class costs per time unit while it is in the system."""
        return freeze(np.array(self.per_class(self.costs), dtype=float))

    @property
    def has_costs(self) -> bool:
        """Whether tasks cost something other than 1, so that policies are compared by cost."""
        return bool((self.holding_costs != 1.0).any())

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """The column of ``rates`` that each machine belongs to."""
        return freeze(np.repeat(np.arange(len(self.counts)), self.sizes))

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """The name of every machine: its number, its group, or group.number in a group.

        The slots of a machine have its name and a number.

        >>> System(arrivals=[5], rates=[[8, 3]], groups=["fast", "slow"], counts=[1, 2]).machines
        ('fast', 'slow.1', 'slow.2')
        >>> System(arrivals=[5], rates=[[8, 3]], groups=["big", "small"], slots=[2, 1]).machines
        ('big/1', 'big/2', 'small')
        """
        names = tuple(
            group if count == 1 else f"{group}.{number}"
            for group, count in zip(self.groups, self.counts, strict=True)
            for number in range(1, count + 1)
        )
        if self.groups == numbered(len(self.groups)):
            names = numbered(len(names))
        slots = [size // count for size, count in zip(self.sizes, self.counts, strict=True)]
        each = np.repeat(slots, self.counts).tolist()
        return tuple(slot for k, name in enumerate(names) for slot in slot_names(name, each[k]))

    @cached_property
    def nominal(self) -> Floats:
        """Execution rates [class, machine] if the whole CPU is available."""
        return freeze(np.ascontiguousarray(self.rates[:, self.column]))

    @cached_property
    def machine_availability(self) -> tuple[float | MarkovChain, ...]:
        """The CPU availability of every machine."""
        return self.per_machine(self.availability)

    @cached_property
    def mean_availability(self) -> Floats:
        """The long-run mean CPU availability of every machine."""
        means = [a.mean if isinstance(a, MarkovChain) else a for a in self.machine_availability]
        return freeze(np.array(means, dtype=float))

    @cached_property
    def effective(self) -> Floats:
        """Execution rates [class, machine] at the mean CPU availability."""
        return freeze(self.nominal * self.mean_availability)

    @cached_property
    def up_fraction(self) -> Floats:
        """The long-run share of time that every machine is up."""
        if self.failures is None:
            return freeze(np.ones(len(self.column)))
        means = self.failures.mean_uptime, self.failures.mean_repair
        up, repair = (np.array(self.per_machine(mean), dtype=float) for mean in means)
        return freeze(1 / (1 + repair / up))

    @property
    def believed(self) -> Self:
        """The system as planners and policies see it, without random inaccuracy."""
        known: dict[str, Any] = {}
        if self.profile is not None:
            known = {"arrivals": self.arrival_rates.tolist(), "profile": None}
        if self.assumed is not None:
            known = {**known, **self.assumed.stated(), "assumed": None}
        return self.replace(**known) if known else self

    @property
    def follows_profile(self) -> bool:
        """Whether planners and policies know the present arrival rates, not only the means."""
        return self.assumed is not None and self.assumed.arrivals == PRESENT

    @property
    def arrivals_window(self) -> float | None:
        """How long planners and policies measure arrival rates before they believe them, if so."""
        believed = None if self.assumed is None else self.assumed.arrivals
        return believed.measured_over if isinstance(believed, MeasuredArrivals) else None

    @property
    def believes_anew(self) -> bool:
        """Whether what planners and policies believe of arrival rates changes during a run."""
        return self.follows_profile or self.arrivals_window is not None

    def per_class(self, values: Any) -> tuple[Any, ...]:
        """Return one value per class, given one value or one per class."""
        return values if isinstance(values, tuple) else (values,) * len(self.classes)

    def per_machine(self, values: Any) -> tuple[Any, ...]:
        """Return one value per machine, given one value, one per column, or one per machine."""
        if not isinstance(values, tuple):
            return (values,) * len(self.column)
        if len(values) == len(self.column):
            return values
        return tuple(values[column] for column in self.column)
