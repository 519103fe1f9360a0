"""Definitions as they come over the web: an experiment with its system, in one document."""

from __future__ import annotations

import tomllib
from typing import Any

from pydantic import ValidationError

from ..model import InputError, System
from ..model.record import Mistake, explain, mistakes
from ..testbed import Experiment, Fault, draw_faults
from .draft import check_policy, document_of, find_mistakes, read_text, system_of

__all__ = [
    "check_failures",
    "definition_of",
    "drawn_faults",
    "experiment_from",
    "experiment_mistakes",
    "fits_a_testbed",
    "read_definition",
]

STAND_IN = System(arrivals=[1.0], rates=[[1.0]])
"""In place of a system that is none yet, so that the rest can be checked."""
MOST_FAULTS = 100_000


def experiment_from(document: dict[str, Any]) -> Experiment:
    """Make an experiment of a document; what is wrong in it is told in one line."""
    rest = _checked(document)
    try:
        return Experiment.model_validate({**rest, "system": _system(document)})
    except ValidationError as error:
        raise InputError(explain(error, Experiment)) from None


def experiment_mistakes(document: dict[str, Any]) -> list[Mistake]:
    """Return what is wrong in a document, place by place; nothing where it is an experiment."""
    given = document.get("system")
    found: list[Mistake] = []
    if isinstance(given, dict):
        found = [Mistake(("system", *each.place), each.words) for each in find_mistakes(given)]
    system = STAND_IN
    try:
        rest = _checked(document)
        system = system if found else _system(document)
        Experiment.model_validate({**rest, "system": system})
    except ValidationError as error:
        for each in mistakes(error, Experiment):
            if each.place:
                found.append(each)
            elif system is not STAND_IN or "policy" in each.words:  # else it is wrongly blamed
                found.append(Mistake(_blamed(each.words), each.words))
    except InputError as error:
        found.append(Mistake(_blamed(str(error)), str(error)))
    return found


def definition_of(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as a document, its system in it."""
    return tomllib.loads(experiment.to_toml())


def read_definition(text: str, name: str = "the text") -> dict[str, Any]:
    r"""Read an experiment file, a system file, or a matrix of rates.

    Of a system alone the document has nothing but the system.

    >>> read_definition("8, 3\n4, 10")
    {'system': {'arrivals': [1.0, 1.0], 'rates': [[8.0, 3.0], [4.0, 10.0]]}}
    """
    found = read_text(text, name)
    if "system" not in found:
        return {"system": found}
    if isinstance(found["system"], str):
        found["system"] = document_of(system_of(found["system"]))
    return found


def fits_a_testbed(system: System) -> str:
    """Return why a system cannot be run on real machines; an empty text where it can."""
    try:
        Experiment(system=system, policy="fcfs")
    except InputError as error:
        return str(error)
    return ""


def drawn_faults(experiment: Experiment) -> tuple[Fault, ...]:
    """Draw faults for all machines from the mean times of the system."""
    check_failures(experiment)
    if experiment.system.failures is None:
        raise InputError("no mean up-time and repair time are given, so that no machine fails")
    return draw_faults(experiment.system, experiment.duration, experiment.seed)


def check_failures(experiment: Experiment) -> None:
    """Refuse more failures than can be drawn in a while."""
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
    """Return a document without its system, if it names no file of this computer."""
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
