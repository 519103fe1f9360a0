"""Systems and experiments that come over the web: they must not name files of this computer."""

import tomllib
from itertools import zip_longest
from typing import Any

import numpy as np
from pydantic import ValidationError

from ..catalogue import find
from ..model import InputError, System
from ..model.record import Mistake, explain, mistakes
from ..model.toml import parse_toml
from ..testbed import Experiment, Fault, draw_faults
from .fields import as_number, as_whole
from .pasted_table import LONGEST_TEXT, Pasted, read_table

MOST_MACHINES = 10_000
MOST_CLASSES = 1_000
MOST_PAIRS = 500_000
NAMES = ("name", "classes", "groups")
"""Keys whose texts are only shown; any other may be a distribution, which may be code in a file."""
MOST = 100_000
"""The largest whole number that a document may count something with."""


def system_of(given: str | dict[str, Any]) -> System:
    """Return a system by its name in the catalogue, or made of a document."""
    if isinstance(given, str):
        return find(given).system  # which never looks for a file
    _check_document(given)
    try:
        return System.model_validate(given)
    except ValidationError as error:
        raise InputError(explain(error, System)) from None


def find_mistakes(document: dict[str, Any]) -> list[Mistake]:
    """Return the mistakes in a document, each with its place; none if it is a system."""
    try:
        _check_document(document)
        System.model_validate(document)
    except ValidationError as error:
        return mistakes(error, System)
    except InputError as error:
        return [Mistake((), str(error))]
    return []


def document_of(found: System | Experiment) -> dict[str, Any]:
    """Return a system, or an experiment with its system, as a document."""
    return tomllib.loads(found.to_toml())


def read_text(text: str, name: str = "the text") -> dict[str, Any]:
    r"""Read a system file, or a table of rates.

    A table without arrivals gets an arrival rate of 1 for every class.

    >>> read_text("8, 3\n4, 10", "rates.mue")
    {'arrivals': [1.0, 1.0], 'rates': [[8.0, 3.0], [4.0, 10.0]]}
    """
    if is_table(text):
        return _system_in(read_table(text, name), name)
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name}: {len(text):,} characters; expected at most {LONGEST_TEXT:,}")
    try:
        return parse_toml(text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def is_table(text: str) -> bool:
    """Tell whether a text can only be a table of rates, not a file with keys."""
    return "=" not in text


def _system_in(table: Pasted, name: str) -> dict[str, Any]:
    """Return the document of a system in a table that leaves nothing open."""
    for each in table.questions:
        if each.key != "separator":  # commas separate rates, as in the original's files
            answers = " or ".join(each.answers.values())
            raise InputError(f"{name}: {each.words} {answers}? Write it without doubt.")
    rates = [[as_number(rate) for rate in row] for row in table.rates]
    arrivals = table.arrivals or ["1"] * len(rates)
    found: dict[str, Any] = {"arrivals": [as_number(each) for each in arrivals], "rates": rates}
    for key, names in (("classes", table.classes), ("groups", table.machines)):
        if names:
            found[key] = names
    if table.counts:
        found["counts"] = [as_whole(each) for each in table.counts]
    if table.availability:
        found["availability"] = [as_number(each) for each in table.availability]
    return found


def check_policy(name: str) -> str:
    """Refuse a policy in a file: a request must not run code."""
    if "/" in name or "\\" in name or ".py" in name:
        raise InputError(f"policy {name[:80]!r}: over the web policies are named, not files")
    return name


def _check_document(document: dict[str, Any]) -> None:
    _check_parts(document, "")
    rows = map(document.get, ("rates", "arrivals", "classes", "template"))
    classes = max(len(each) if isinstance(each, list) else 0 for each in rows)
    machines = _machines(document)
    for what, count, most in (
        ("classes", classes, MOST_CLASSES),
        ("machines", machines, MOST_MACHINES),
        (f"pairs ({classes:,} classes on {machines:,} machines)", classes * machines, MOST_PAIRS),
    ):
        if count > most:
            raise InputError(f"{count:,} {what}; expected at most {most:,}")


def _machines(document: dict[str, Any]) -> int:
    """Count the machines of a document, which need not be valid yet."""
    rates, counts = document.get("rates"), document.get("counts")
    rows = rates if isinstance(rates, list) else []
    columns = max((len(row) for row in rows if isinstance(row, list)), default=0)
    sure = counts if isinstance(counts, list) else [1] * columns
    slots = document.get("slots", 1)
    each = slots if isinstance(slots, list) else [slots] * len(sure)
    pairs = [*zip_longest(sure, each, fillvalue=1)]
    return max(columns, sum(_at_least_one(n) * _at_least_one(s) for n, s in pairs))


def _at_least_one(count: Any) -> int:
    return count if isinstance(count, int) and count > 0 else 1


def _check_parts(value: Any, key: str, depth: int = 0) -> None:
    if depth > 20:
        raise InputError("the document is nested too deeply")
    if isinstance(value, dict):
        for own, item in value.items():
            if own == "file":
                raise InputError(f"{own} = {item!r}: over the web a system names no file")
            _check_parts(item, str(own), depth + 1)
    elif isinstance(value, list):
        for item in value:
            if type(item) is not float:  # most are: the rates
                _check_parts(item, key, depth + 1)
    elif isinstance(value, str) and ".py" in value and key not in NAMES:
        raise InputError(f"{key} = {value!r}: over the web a system names no file")
    elif isinstance(value, int) and abs(value) > MOST:
        if key in ("arrivals", "rates") or key.startswith("mean_"):
            return  # a rate or a time, not a count
        bits = value.bit_length()
        shown = f"{value:,}" if bits < 100 else f"a number of {bits} bits"
        raise InputError(f"{key} is {shown}; expected at most {MOST:,}")


STAND_IN = System(arrivals=[1.0], rates=[[1.0]])
"""Stands for a system that is not valid yet, so that the rest can be checked."""
MOST_FAULTS = 100_000


def experiment_from(document: dict[str, Any]) -> Experiment:
    """Make an experiment from a document; raise an error in one line if it is not valid."""
    rest = _checked(document)
    try:
        return Experiment.model_validate({**rest, "system": _system(document)})
    except ValidationError as error:
        raise InputError(explain(error, Experiment)) from None


def experiment_mistakes(document: dict[str, Any]) -> list[Mistake]:
    """Return the mistakes in a document, each with its place; none if it is an experiment."""
    return examined(document)[0]


def examined(document: dict[str, Any]) -> tuple[list[Mistake], System | None]:
    """Return the mistakes in the document of an experiment, and its system if that is valid."""
    given = document.get("system")
    found: list[Mistake] = []
    system = None
    try:
        system = _system(document)
    except InputError as error:
        wrong = find_mistakes(given) if isinstance(given, dict) else []
        found = [Mistake(("system", *each.place), each.words) for each in wrong]
        found = found or [Mistake(_blamed(str(error)), str(error))]
    try:
        known = STAND_IN if system is None else system
        Experiment.model_validate({**_checked(document), "system": known})
    except ValidationError as error:
        for each in mistakes(error, Experiment):
            if each.place:
                found.append(each)
            elif system is not None or "policy" in each.words:  # else it is wrongly blamed
                found.append(Mistake(_blamed(each.words), each.words))
    except InputError as error:
        found.append(Mistake(_blamed(str(error)), str(error)))
    return found, system


def read_definition(text: str, name: str = "the text") -> dict[str, Any]:
    r"""Read an experiment file, a system file, or a table of rates.

    If there is only a system, the document has no other key.

    >>> read_definition("8, 3\n4, 10")
    {'system': {'arrivals': [1.0, 1.0], 'rates': [[8.0, 3.0], [4.0, 10.0]]}}
    """
    found = read_text(text, name)
    if "system" not in found:
        return {"system": found}
    if isinstance(found["system"], str):
        found["system"] = document_of(system_of(found["system"]))
    return found


def why_unfit(system: System) -> str:
    """Return why a system cannot run on real machines; empty if it can."""
    try:
        Experiment(system=system, policy="fcfs")
    except InputError as error:
        return str(error)
    return ""


def drawn_faults(experiment: Experiment) -> tuple[Fault, ...]:
    """Draw faults for all machines from the mean times of the system."""
    check_failures(experiment)
    if experiment.system.failures is None:
        raise InputError("machines never fail: give a mean up-time and a mean repair time")
    return draw_faults(experiment.system, experiment.duration, experiment.seed)


def redrawn(
    experiment: Experiment, machine: str, mean_uptime: float, mean_repair: float
) -> Experiment:
    """Return an experiment with other failures of one machine; refuse too many."""
    if experiment.duration > MOST_FAULTS * (mean_uptime + mean_repair):
        raise InputError(f"expected at most {MOST_FAULTS:,} failures of machine {machine}")
    check_failures(experiment)
    return experiment.with_failures_of(machine, mean_uptime, mean_repair)


def check_failures(experiment: Experiment) -> None:
    """Refuse more failures than can be drawn in reasonable time."""
    system, failures = experiment.system, experiment.system.failures
    if failures is None:
        return
    ups, downs = map(system.per_machine, (failures.mean_uptime, failures.mean_repair))
    each = zip(ups, downs, strict=True)
    number = sum(experiment.duration / (up + down) for up, down in each)
    if number > MOST_FAULTS:
        raise InputError(f"about {number:,.0f} failures; expected at most {MOST_FAULTS:,}")


def _system(document: dict[str, Any]) -> System:
    given = document.get("system")
    if not isinstance(given, str | dict):
        raise InputError("system is missing; expected a name of the catalogue, or a table")
    return system_of(given)


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without its system; refuse one that names files of this computer."""
    rest = {key: value for key, value in document.items() if key != "system"}
    for key in ("jobs", "tls"):
        if rest.get(key):
            raise InputError(f"{key}: over the web an experiment names no file")
    if isinstance(rest.get("policy"), str):
        check_policy(rest["policy"])
    if isinstance(rest.get("machines"), str) and rest["machines"]:
        raise InputError("machines: over the web an experiment names no file; expected a list")
    failures = rest.get("failures", "none")
    if isinstance(failures, str) and failures not in ("none", "generated"):
        raise InputError(
            f"failures is {failures[:40]!r}; expected none, generated, or a list of machine, "
            "start and end"
        )
    if isinstance(failures, list) and len(failures) > MOST_FAULTS:
        raise InputError(f"failures: {len(failures):,} of them; expected at most {MOST_FAULTS:,}")
    return rest


def _blamed(words: str) -> tuple[str, ...]:
    """Return the key that a sentence is about, if it begins with one."""
    first = words.replace(",", " ").replace(":", " ").split()[0]
    if first in Experiment.model_fields:
        return (first,)
    return ("policy",) if "policy" in words else ()


def plain(value: Any) -> Any:
    """Turn a value into plain JSON.

    >>> plain({"mean": float("nan"), "shares": np.array([[0.5, 1.0]])})
    {'mean': None, 'shares': [[0.5, 1.0]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
