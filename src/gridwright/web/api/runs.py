"""Experiments, and runs of them on real machines."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import Field

from ...catalogue import experiment_names
from ...grid import event_page, job_page, machine_states, queues, request
from ...grid.journal_queries import statistics
from ...testbed import Experiment, Overview, Run, job_lengths
from ...testbed.experiment import LONGEST, SHORTEST
from ..documents import experiment_from, plain
from ..guard import may_run_code
from ..runs import (
    CLUSTERS,
    available_machines,
    check_size,
    experiment_of,
    open_journal,
    zipped,
)
from ..saved import own_experiments
from ..services import Services
from ..tasks import report_of
from .parts import CONTROLLED, FORBIDDEN, MISSING, Body, Number, SystemGiven, missing

Verb = Literal["start", "pause", "resume", "drain", "ping", "kill", "fail", "impose", "predict"]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=0, le=1000)]


class Starting(Body):
    """An experiment of the catalogue, a saved one, or a system, and the fields to change."""

    experiment: str = ""
    own: Annotated[str, Field(description="A saved experiment.")] = ""
    definition: Annotated[
        dict[str, Any] | None,
        Field(description="What an experiment file would say; then other fields are ignored."),
    ] = None
    system: SystemGiven | None = None
    policy: str | None = None
    time_unit: Annotated[float, Field(ge=SHORTEST, le=LONGEST)] | None = None
    duration: Positive | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    corrections: bool | None = None
    failures: Literal["none", "generated"] | None = None
    timeout: Annotated[float, Field(ge=0, le=1e9)] | None = None
    on_timeout: Literal["resubmit", "wait", "fail", "duplicate"] | None = None
    detection: Literal["immediate", "timeout"] | None = None
    resolution: Annotated[float, Field(ge=0, le=1e9)] | None = None
    job: Literal["wait", "spin"] | None = None
    executor: Literal["local", "dask"] | None = None
    address: Annotated[
        str | None, Field(max_length=200, description="The cluster's scheduler: tcp://HOST:PORT.")
    ] = None


class Asking(Body):
    """The values of an operation: ``fail`` takes time units, ``impose`` a share and time units.

    ``predict`` takes a mode (weekly, recursive, fixed), or a table with a mode and parameters.
    """

    values: Annotated[tuple[float, ...], Field(max_length=2)] = ()
    prediction: str | dict[str, Any] | None = None


def run_routes(services: Services) -> APIRouter:
    """Make the routes of experiments and runs."""
    routes, runs = APIRouter(), services.runs

    def known(number: int) -> Overview:
        found = runs.find(number)
        if found is None:
            raise missing(f"run {number}")
        return found

    @routes.get("/experiments", tags=["experiments"])
    def list_experiments() -> list[str]:
        """List the experiments of the catalogue."""
        return list(experiment_names())

    @routes.get("/experiments/own", tags=["experiments"])
    def list_own() -> list[str]:
        """List the saved experiments."""
        return own_experiments()

    @routes.get("/experiments/{name}", tags=["experiments"], responses=MISSING)
    def one_experiment(name: str) -> dict[str, Any]:
        """Show an experiment."""
        if name not in experiment_names():
            raise missing("such experiment")
        return describe_experiment(Experiment.find(name))

    @routes.get("/machines", tags=["experiments"], responses=FORBIDDEN)
    def machines_there(
        request: Request, address: Annotated[str, Query(max_length=200)] = ""
    ) -> list[dict[str, Any]]:
        """List the available machines: the workers of a cluster, or this computer."""
        if address:
            _check_cluster(request)
        return [each._asdict() for each in available_machines(address)]

    @routes.get("/runs", tags=["runs"])
    def list_runs() -> list[dict[str, Any]]:
        """List the runs, the latest first, whoever started them."""
        return [plain(each._asdict()) for each in runs.all()]

    @routes.post("/runs", tags=["runs"], status_code=202, responses=FORBIDDEN)
    def start(given: Starting, request: Request) -> dict[str, Any]:
        """Start a run as a separate process."""
        words = given.model_dump()
        definition = words.pop("definition")
        if definition is not None:
            experiment = check_size(experiment_from(definition))
        else:
            experiment = experiment_of(words.pop("experiment"), **words)
        if experiment.executor != "local":
            _check_cluster(request)
        return plain(known(runs.start(experiment))._asdict())

    @routes.get("/runs/{number}", tags=["runs"], responses=MISSING)
    def one_run(number: Number) -> dict[str, Any]:
        """Show a run with its statistics."""
        found = known(number)
        answer = {**found._asdict(), "said": runs.said(number)}
        answer |= {"statistics": None, "job_lengths": None}
        if found.state != "unreadable":
            with open_journal(number) as journal:
                answer["statistics"] = statistics(journal, found.time_units).as_json()
            with Run.find(number) as run:
                answer["job_lengths"] = job_lengths(run)
        return plain(answer)

    @routes.get("/runs/{number}/report", tags=["runs"], responses=MISSING)
    def whole_report(number: Number) -> dict[str, Any]:
        """Compare a run with its simulated twin, with the causes of the gap; this takes a while."""
        known(number)
        return plain(report_of(services.queue, number))

    @routes.get("/runs/{number}/jobs", tags=["runs"], responses=MISSING)
    def jobs(
        number: Number,
        offset: Offset = 0,
        limit: Limit = 50,
        sort: str = "number",
        descending: bool = False,
        task_class: str = "",
        machine: str = "",
        stage: str = "",
    ) -> dict[str, Any]:
        """Return a page of a run's jobs."""
        known(number)
        filters = {"class": task_class, "machine": machine, "stage": stage}
        with open_journal(number) as journal:
            page = job_page(
                journal, offset=offset, limit=limit, sort=sort, descending=descending, **filters
            )
        return plain(page._asdict())

    @routes.get("/runs/{number}/events", tags=["runs"], responses=MISSING)
    def events(
        number: Number, offset: Offset = 0, limit: Limit = 50, readings: bool = True
    ) -> list[dict[str, Any]]:
        """Return what happened in a run, the latest first."""
        known(number)
        with open_journal(number) as journal:
            found = event_page(journal, offset=offset, limit=limit, readings=readings)
            return [plain(each.as_json()) for each in found]

    @routes.get("/runs/{number}/machines", tags=["runs"], responses=MISSING)
    def machines(number: Number) -> list[dict[str, Any]]:
        """Return the states of a run's machines."""
        known(number)
        with open_journal(number) as journal:
            return [plain(each._asdict()) for each in machine_states(journal)]

    @routes.get("/runs/{number}/queues", tags=["runs"], responses=MISSING)
    def queue_lengths(number: Number) -> dict[str, Any]:
        """Return the numbers of jobs waiting and in the system over time."""
        known(number)
        with open_journal(number) as journal:
            return plain(queues(journal)._asdict())

    @routes.get(
        "/runs/{number}/export",
        tags=["runs"],
        responses={**MISSING, 200: {"content": {"application/zip": {}}}},
        response_class=Response,
    )
    def export(number: Number) -> Response:
        """Return the tables of a run as CSV files in one zip file."""
        known(number)
        with Run.find(number) as run:
            page = zipped(run)
        named = {"content-disposition": f'attachment; filename="run-{number}.zip"'}
        return Response(page, media_type="application/zip", headers=named)

    @routes.post("/runs/{number}/stop", tags=["runs"], responses=CONTROLLED)
    def stop(number: Number) -> dict[str, Any]:
        """Stop a run; it can be resumed."""
        known(number)
        runs.stop(number)
        return plain(known(number)._asdict())

    @routes.post("/runs/{number}/pause", tags=["runs"], responses=CONTROLLED)
    def pause(number: Number) -> dict[str, Any]:
        """Pause a run: no time passes until it is resumed, but jobs on machines continue."""
        known(number)
        runs.pause(number)
        return plain(known(number)._asdict())

    @routes.post("/runs/{number}/resume", tags=["runs"], responses=CONTROLLED)
    def resume(number: Number) -> dict[str, Any]:
        """Continue a run that was paused or stopped."""
        known(number)
        runs.resume(number)
        return plain(known(number)._asdict())

    @routes.post("/runs/{number}/machines/{machine}/{verb}", tags=["runs"], responses=CONTROLLED)
    def operate(number: Number, machine: str, verb: Verb, given: Asking) -> dict[str, str]:
        """Operate a machine: start, pause, resume, drain, ping, kill, fail, impose or predict."""
        known(number)
        values = " ".join(f"{value:g}" for value in given.values)
        if verb == "predict":
            values = json.dumps(given.prediction)
        with open_journal(number) as journal:
            return {"answer": request(journal, verb, machine, values)}

    return routes


def describe_experiment(experiment: Experiment) -> dict[str, Any]:
    """Return the fields of an experiment; of its system only name and size."""
    words = experiment.model_dump(mode="json", exclude={"system", "tls"})
    classes, machines = experiment.system.shape
    system = {"name": experiment.system.name, "classes": classes, "machines": machines}
    return plain({**words, "system": system})


def _check_cluster(request: Request) -> None:
    """Refuse a cluster, whose answers may be code, without the token."""
    if not may_run_code(request):
        raise HTTPException(403, CLUSTERS)
