"""Experiments: list, check, read, write and save them; their machines and faults."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from ...catalogue import experiment_names
from ...testbed import Experiment, Fault, parse_machines, rows_of, spells
from .. import documents
from ..documents import plain
from ..queue import solved
from ..runs import available_machines
from ..saved import load_own, own_experiments, remove_saved, save
from .parts import BUSY, FORBIDDEN, MISSING, Body, check_cluster, listed, missing
from .systems import Text

Definition = Annotated[
    dict[str, Any],
    Field(description="The content of an experiment file, with its system, as an object."),
]


class Defined(Body):
    """An experiment."""

    definition: Definition


class Tracing(Defined):
    """An experiment, and whether to draw its failures again: of all machines, or of one."""

    draw: bool = True
    machine: Annotated[
        str, Field(description="Draw only the failures of this machine, with these mean times.")
    ] = ""
    mean_uptime: Annotated[float, Field(gt=0)] = 1.0
    mean_repair: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


def experiment_routes() -> APIRouter:
    """Make the routes of experiments."""
    routes = APIRouter(tags=["experiments"])

    @routes.get("/experiments")
    def list_experiments() -> list[str]:
        """List the experiments of the catalogue."""
        return list(experiment_names())

    @routes.get("/experiments/own")
    def list_own() -> list[str]:
        """List the saved experiments."""
        return own_experiments()

    @routes.get("/experiments/{name}", responses=MISSING)
    def one_experiment(name: str) -> dict[str, Any]:
        """Show an experiment: its fields, and the name and size of its system."""
        if name not in experiment_names():
            raise missing("such experiment")
        found = Experiment.find(name)
        classes, machines = found.system.shape
        system = {"name": found.system.name, "classes": classes, "machines": machines}
        return plain({**found.model_dump(mode="json", exclude={"system", "tls"}), "system": system})

    @routes.get("/machines", responses=FORBIDDEN)
    def list_machines(
        request: Request, address: Annotated[str, Query(max_length=200)] = ""
    ) -> list[dict[str, Any]]:
        """List the available machines: the workers of a cluster, or this computer."""
        if address:
            check_cluster(request)
        return [each._asdict() for each in available_machines(address)]

    @routes.post("/experiments/validate", responses=BUSY)
    async def validate(given: Defined) -> dict[str, Any]:
        """Check a definition; return its mistakes, each with its place."""
        return listed(await solved(lambda: documents.experiment_mistakes(given.definition)))

    @routes.post("/experiments/read", responses=BUSY)
    async def read(given: Text) -> dict[str, Any]:
        """Turn the text of an experiment file, or of a system alone, into a definition."""
        return await solved(lambda: {"definition": plain(documents.read_definition(given.text))})

    @routes.post("/experiments/toml", responses=BUSY)
    async def to_toml(given: Defined) -> dict[str, str]:
        """Write a definition as an experiment file that needs no other."""
        return await solved(lambda: {"toml": documents.experiment_from(given.definition).to_toml()})

    @routes.post("/experiments/failures", responses=BUSY)
    async def failures(given: Tracing) -> dict[str, Any]:
        """Draw faults for all machines or one, or take those given; return them with mean times."""
        return await solved(lambda: _failures(given))

    @routes.post("/machines/read", tags=["machines"], responses=BUSY)
    async def read_list(given: Text) -> list[dict[str, Any]]:
        """Read a machine list; the answer has no passwords."""
        found = await solved(lambda: parse_machines(given.text, "the list"))
        keys = ("iterations", "seconds")
        return [
            {"address": each.address, **{key: getattr(each.calibration, key, None) for key in keys}}
            for each in found
        ]

    @routes.get("/experiments/own/{name}", responses=MISSING)
    def one_saved(name: str) -> dict[str, Any]:
        """Show a saved experiment."""
        if name not in own_experiments():
            raise missing("such experiment")
        found = load_own(name)
        return {"definition": plain(documents.document_of(found)), "toml": found.to_toml()}

    @routes.put("/experiments/own/{name}", responses=BUSY)
    async def keep(name: str, given: Defined) -> dict[str, str]:
        """Save an experiment with its system, replacing any of that name."""
        await solved(lambda: save(documents.experiment_from(given.definition), name))
        return {"saved": name}

    @routes.delete("/experiments/own/{name}", responses=MISSING)
    def throw_away(name: str) -> dict[str, str]:
        """Delete a saved experiment."""
        if not (name in own_experiments() and remove_saved(name)):
            raise missing("such experiment")
        return {"removed": name}

    return routes


def _failures(given: Tracing) -> dict[str, Any]:
    found = documents.experiment_from(given.definition)
    system = found.system
    documents.check_failures(found)
    if given.machine:
        found = documents.redrawn(found, given.machine, given.mean_uptime, given.mean_repair)
    draws = given.draw and not given.machine
    faults = documents.drawn_faults(found) if draws else found.faults()
    own: dict[int, list[Fault]] = {j: [] for j in range(len(system.machines))}
    for fault in faults:
        own[fault.machine].append(fault)
    means = {name: spells(own[j], j)._asdict() for j, name in enumerate(system.machines)}
    return plain({"failures": rows_of(faults, system), "machines": means})
