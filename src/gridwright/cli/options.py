"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from .output import warn
from .packages import catalogue, model

T = TypeVar("T")


def complete_system(incomplete: str) -> list[str]:
    """List the systems whose names start with the text typed so far."""
    return [entry.name for entry in catalogue.entries() if entry.name.startswith(incomplete)]


def listed(words: str | Iterable[str]) -> list[str]:
    """Split words at commas, for options that are repeated or take a list.

    >>> listed("pas, mct,"), listed(["pas", "mct,lpas"])
    (['pas', 'mct'], ['pas', 'mct', 'lpas'])
    """
    texts = [words] if isinstance(words, str) else words
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def by_name(option: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return the values of an option by their names; refuse a name that comes twice."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise model.InputError(f"{option}: {name} comes twice")
        found[name] = value
    return found


def limits_of(text: str) -> list[float]:
    """Parse the times of ``--within``, which are separated by commas."""
    try:
        return [float(word) for word in listed(text)]
    except ValueError:
        raise model.InputError(f"--within {text}: expected times, as 2 or 2,5") from None


def delays_of(text: str | None) -> model.Delays | None:
    """Parse the delays of ``--delays``.

    >>> delays_of("before=0.5,after=0.1").before
    0.5
    """
    if text is None:
        return None
    known = ", ".join(model.Delays.model_fields)
    values: list[tuple[str, float]] = []
    for word in listed(text):
        name, _, number = word.partition("=")
        try:
            values.append((name, float(number)))
        except ValueError:
            raise model.InputError(
                f"--delays: {word!r} is not a delay; expected NAME=NUMBER, with {known}"
            ) from None
    return model.Delays(**by_name("--delays", values))


def prices_of(text: str | None) -> dict[str, float] | list[float] | None:
    """Parse the prices of ``--prices``, by group or in order.

    >>> prices_of("big=3,small=1"), prices_of("3, 1")
    ({'big': 3.0, 'small': 1.0}, [3.0, 1.0])
    """
    if text is None:
        return None
    words = [word.rpartition("=") for word in listed(text)]
    names = [name for name, _, _ in words if name]
    try:
        numbers = [float(number) for _, _, number in words]
        if len(names) not in (0, len(numbers)):
            raise ValueError("some have names")
    except ValueError:
        raise model.InputError(
            f"--prices is {text!r}; expected GROUP=NUMBER,… or one number for each group"
        ) from None
    return by_name("--prices", zip(names, numbers, strict=True)) if names else numbers


def option(help: str, metavar: str | None = None, *names: str) -> Any:
    """Return an option with a help text; it is named after its parameter, or as given."""
    return typer.Option(*names, help=help, metavar=metavar)


def policies_option(help: str) -> Any:
    """Return an option that takes policies."""
    return option(help, "POLICY,…", "--policies", "--policy")


def policy_option(help: str) -> Any:
    """Return an option that takes one policy."""
    return option(help, "POLICY", "--policy", "--policies")


def path_option(help: str, metavar: str = "PATH") -> Any:
    """Return an option that names a file to write."""
    return option(help, metavar)


SystemName = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM",
        help="A name of the catalogue ('gridwright systems'), or the path of a system file.",
        autocompletion=complete_system,
    ),
]
Policies = Annotated[
    list[str], policies_option("Policies, separated by commas; 'gridwright policies' lists them.")
]
PolicyName = Annotated[
    str,
    policy_option(
        "A policy by name ('gridwright policies'), with parameters (kpb:k=3), or the path of "
        "a file that defines one."
    ),
]
Horizon = Annotated[
    float | None, option("Length of a run in time units; by default as published, else 20,000.")
]
Warmup = Annotated[float, option("Time units at the start of a run that are not measured.")]
Tails = Annotated[
    bool,
    option("Also print percentiles of the response: p50, p95, p99 and p99.9.", None, "--tails"),
]
Within = Annotated[
    str,
    option(
        "Also print percentiles, and the share of tasks that respond within times: 2,5.", "TIMES"
    ),
]
WithinLive = Annotated[
    str, option("Also print the share of jobs that respond within times: 2,5.", "TIMES")
]
Replications = Annotated[int, option("Number of independent runs.")]
Delays = Annotated[
    str | None,
    option(
        "Delays in time units, in place of those of the system: before (to send a task), after "
        "(to hear that it has ended), detection (to notice a failure), reporting (between reports "
        "of CPU availability).",
        "before=0.5,after=0.1",
    ),
]
Prices = Annotated[
    str | None,
    option(
        "Price of a machine of each group: big=3,small=1, or 3,1 in their order; by default 1.",
        "PRICES",
    ),
]
Family = Annotated[
    list[str] | None,
    option(
        "Families of the random systems, separated by commas; 'gridwright systems random' lists "
        "them.",
        "FAMILY,…",
    ),
]
Seed = Annotated[int, option("Seed of the random numbers; the same seed gives the same result.")]
Threads = Annotated[
    int | None, option("Number of runs at the same time; by default the number of processors.")
]
On = Annotated[
    str | None,
    option(
        "Address of a Dask scheduler to run on, tcp://HOST:PORT; by default this computer.",
        "ADDRESS",
    ),
]
SimulateOn = Annotated[
    str | None,
    option(
        "Where to simulate: a Dask scheduler, tcp://HOST:PORT, or gpu; by default the processors "
        "of this computer.",
        "PLACE",
        "--on",
    ),
]
RunOn = Annotated[
    str | None,
    option(
        "Address of a Dask scheduler whose workers are the machines, tcp://HOST:PORT, or "
        "'local' for processes of this computer; by default as the experiment says.",
        "ADDRESS",
        "--on",
    ),
]
TimeUnit = Annotated[float | None, option("Length of a time unit, in seconds.")]
Expect = Annotated[
    bool,
    typer.Option(
        "--expect/--no-expect", help="Also simulate which mean response such a run should have."
    ),
]
RunNumber = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Number of a run in 'gridwright runs list', or the path of its journal."
    ),
]
Csv = Annotated[Path | None, path_option("Write the values of every replication as CSV.")]
Plot = Annotated[
    Path | None, path_option("Draw the means, the classes and the number in system over time.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]

Classes = Annotated[
    str,
    typer.Option(
        help="How to form task classes, and how many at most: by user, group, executable, queue, "
        "partition or run_time; for example user:4.",
        metavar="BY[:N]",
        show_default=False,
    ),
]
Machines = Annotated[
    str,
    typer.Option(
        help="trace:N for the N largest partitions; 4x1,2x2.5 for numbers of machines and their "
        "speeds; or a system or a table of throughputs, for its matrix of rates.",
        metavar="MACHINES",
        show_default=False,
    ),
]
Processors = Annotated[
    str,
    option(
        "Work of a job that used several processors: 'times' for run time × processors, "
        "'ignore' for its run time, 'single' to leave such jobs out.",
        "RULE",
    ),
]
From = Annotated[
    str, option("Start of the window: 6h or 2d after the first job, or a date.", "TIME", "--from")
]
To = Annotated[
    str | None, option("End of the window: 3d after the first job, or a date.", "TIME", "--to")
]
Load = Annotated[
    float | None,
    option(
        "Scale the speeds of all machines to this load; 0.8 by default where only relative "
        "speeds are known."
    ),
]


def _renamed(old: str, new: str) -> Any:
    """Return a hidden option that still works, and prints the name of the option to use."""

    def say(value: str | None) -> str | None:
        if value is not None:
            warn(f"{old} is now {new}; the old option goes away with the next release")
        return value

    return typer.Option(old, hidden=True, callback=say)


OldExecutor = Annotated[str | None, _renamed("--executor", "--on ADDRESS or --on local")]
OldAddress = Annotated[str | None, _renamed("--address", "--on")]
OldConnect = Annotated[str | None, _renamed("--connect", "--on")]
