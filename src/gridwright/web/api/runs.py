"""Runs of experiments on real machines."""

import json
from contextlib import closing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from ...grid import event_page, job_page, latest_events, queues, request
from ...grid.journal import Journal
from ...grid.journal_queries import statistics
from ...testbed import Overview, Run, job_lengths
from ...testbed.experiment import LONGEST, SHORTEST
from ..documents import experiment_from, plain
from ..pasted_policy import LONGEST_CODE
from ..runs import check_size, experiment_of, machines_of, open_journal, zipped
from ..services import Services
from ..tasks import report_of
from .parts import (
    CONTROLLED,
    FORBIDDEN,
    MISSING,
    Body,
    Number,
    SystemGiven,
    check_cluster,
    check_code,
    missing,
)

Verb = Literal["start", "pause", "resume", "drain", "ping", "kill", "fail", "impose", "predict"]
About = Literal["jobs", "machines", "operators"]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=0, le=1000)]
CONTROLS = {
    "stop": "Stop a run; it can be resumed.",
    "pause": "Pause a run: no time passes until it is resumed, but jobs on machines continue.",
    "resume": "Continue a run that was paused or stopped.",
}


class Starting(Body):
    """An experiment of the catalogue, a saved one, or a system, and the fields to change."""

    experiment: str = ""
    own: Annotated[str, Field(description="A saved experiment.")] = ""
    definition: Annotated[
        dict[str, Any] | None,
        Field(description="The content of an experiment file; then other fields are ignored."),
    ] = None
    system: SystemGiven | None = None
    policy: str | None = None
    code: Annotated[
        str,
        Field(
            max_length=LONGEST_CODE,
            description="Python code that defines the policy, in place of policy.",
        ),
    ] = ""
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
    on: Annotated[
        str | None,
        Field(
            max_length=200,
            description="Empty: this computer; or the scheduler of a Dask cluster, tcp://HOST:PORT.",
        ),
    ] = None
    executor: Annotated[
        Literal["local", "dask"] | None,
        Field(description="Deprecated; the next release removes it. Use on."),
    ] = None
    address: Annotated[
        str | None,
        Field(max_length=200, description="Deprecated; the next release removes it. Use on."),
    ] = None


class Asking(Body):
    """The values of an operation: ``fail`` takes time units, ``impose`` a share and time units.

    ``predict`` takes a mode (weekly, recursive, fixed), or a table with a mode and parameters.
    """

    values: Annotated[tuple[float, ...], Field(max_length=2)] = ()
    prediction: str | dict[str, Any] | None = None


def run_routes(services: Services) -> APIRouter:
    """Make the routes of runs."""
    routes, runs = APIRouter(tags=["runs"]), services.runs

    def known(number: int) -> Overview:
        found = runs.find(number)
        if found is None:
            raise missing(f"run {number}")
        return found

    def opened(number: int) -> closing[Journal]:
        known(number)
        return open_journal(number)

    @routes.get("/runs")
    def list_runs() -> list[dict[str, Any]]:
        """List the runs, the latest first, whoever started them."""
        return [plain(each._asdict()) for each in runs.all()]

    @routes.post("/runs", status_code=202, responses=FORBIDDEN)
    def start(given: Starting, request: Request) -> dict[str, Any]:
        """Start a run as a separate process."""
        check_code(request, given.code)
        words = given.model_dump()
        definition = words.pop("definition")
        if definition is not None:
            experiment = check_size(experiment_from(definition))
        else:
            experiment = experiment_of(words.pop("experiment"), **words)
        if experiment.executor != "local":
            check_cluster(request)
        return plain(known(runs.start(experiment))._asdict())

    @routes.get("/runs/{number}", responses=MISSING)
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

    @routes.get("/runs/{number}/report", responses=MISSING)
    def whole_report(number: Number) -> dict[str, Any]:
        """Compare a run with its simulated twin, with the causes of the gap; this takes a while."""
        known(number)
        return plain(report_of(services.queue, number))

    @routes.get("/runs/{number}/jobs", responses=MISSING)
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
        filters = {"class": task_class, "machine": machine, "stage": stage}
        with opened(number) as journal:
            page = job_page(
                journal, offset=offset, limit=limit, sort=sort, descending=descending, **filters
            )
        return plain(page._asdict())

    @routes.get("/runs/{number}/events", responses=MISSING)
    def events(
        number: Number,
        offset: Offset = 0,
        limit: Limit = 50,
        readings: bool = True,
        about: About | None = None,
    ) -> list[dict[str, Any]]:
        """Return what happened in a run, the latest first.

        With about, only events about jobs, machines or operators, by time, from the first.
        """
        with opened(number) as journal:
            if about is not None:
                return [plain(each.as_json()) for each in latest_events(journal, about, limit)]
            found = event_page(journal, offset=offset, limit=limit, readings=readings)
            return [plain(each.as_json()) for each in found]

    @routes.get("/runs/{number}/machines", responses=MISSING)
    def machines(number: Number) -> list[dict[str, Any]]:
        """Return the states of a run's machines."""
        with opened(number) as journal:
            return [plain(each._asdict()) for each in machines_of(journal)]

    @routes.get("/runs/{number}/queues", responses=MISSING)
    def queue_lengths(number: Number) -> dict[str, Any]:
        """Return the numbers of jobs waiting and in the system over time."""
        with opened(number) as journal:
            return plain(queues(journal)._asdict())

    @routes.get(
        "/runs/{number}/export",
        responses={**MISSING, 200: {"content": {"application/zip": {}}}},
        response_class=Response,
    )
    def export(number: Number) -> Response:
        """Return the tables of a run as CSV files in one zip file."""
        known(number)
        named = {"content-disposition": f'attachment; filename="run-{number}.zip"'}
        pieces = zipped(number)  # the download begins before all of it is made
        return StreamingResponse(pieces, media_type="application/zip", headers=named)

    def add_control(verb: str, about: str) -> None:
        @routes.post(f"/runs/{{number}}/{verb}", name=verb, description=about, responses=CONTROLLED)
        def control(number: Number) -> dict[str, Any]:
            known(number)
            getattr(runs, verb)(number)
            return plain(known(number)._asdict())

    for verb, about in CONTROLS.items():
        add_control(verb, about)

    @routes.post("/runs/{number}/machines/{machine:path}/{verb}", responses=CONTROLLED)
    def operate(number: Number, machine: str, verb: Verb, given: Asking) -> dict[str, str]:
        """Operate a machine: start, pause, resume, drain, ping, kill, fail, impose or predict."""
        values = " ".join(f"{value:g}" for value in given.values)
        if verb == "predict":
            values = json.dumps(given.prediction)
        with opened(number) as journal:
            return {"answer": request(journal, verb, machine, values)}

    return routes
