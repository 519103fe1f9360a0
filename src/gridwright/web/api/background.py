"""Start, watch and stop background tasks: simulations, calibrations, published tables."""

import io
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from ...model.spreadsheet import write_table
from ...reproduction import ReproductionData, Section, explanations, read_data
from ..documents import plain
from ..findings import ADDRESS, Document, list_documents, spreadsheet
from ..queue import AnyTask, Queue
from ..simulations import Simulation, Wanted, document_at, simulation_of
from ..tasks import MOST_MACHINES, CalibrationTask, TableTask
from .parts import FORBIDDEN, MISSING, WRONG, Body, Number, Responses, check_code, missing

Address = Annotated[str, Path(pattern=f"^{ADDRESS.pattern}$")]
TABLE: Responses = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **MISSING}


def simulation_routes(queue: Queue) -> APIRouter:
    """Make the routes of simulations."""
    routes = APIRouter(tags=["simulations"])

    @routes.get("/simulations")
    def list_simulations() -> list[dict[str, Any]]:
        """List the simulations of this server, the latest first."""
        return [plain(each.progress()) for each in queue.all(Simulation)]

    @routes.post("/simulations", status_code=202, responses=FORBIDDEN)
    def start(wanted: Wanted, request: Request) -> dict[str, Any]:
        """Start a simulation in the background."""
        check_code(request, wanted.code)
        return plain(queue.start(simulation_of(wanted)).progress())

    @routes.get("/simulations/{number}", responses=MISSING)
    def progress(number: Number) -> dict[str, Any]:
        """Return the progress of a simulation, with the intervals so far."""
        return plain(_known(queue, Simulation, number).progress())

    @routes.post("/simulations/{number}/stop", responses=MISSING)
    def stop(number: Number) -> dict[str, Any]:
        """Stop a simulation; its results so far stay."""
        return plain(queue.stop(_known(queue, Simulation, number)).progress())

    @routes.get("/simulations/{number}/result", responses=MISSING)
    def result(number: Number) -> dict[str, Any]:
        """Return all results so far."""
        return plain(_known(queue, Simulation, number).result())

    @routes.get("/results")
    def list_results() -> list[dict[str, Any]]:
        """List the newest simulations that have ended, also those of earlier servers."""
        return list_documents()

    @routes.get("/results/{address}", responses=MISSING)
    def kept(address: Address) -> dict[str, Any]:
        """Return what a simulation has found, by its permanent address."""
        return _document(queue, address)

    @routes.get("/results/{address}/csv", responses=TABLE, response_class=Response)
    def table(address: Address) -> Response:
        """Return every figure of a simulation that has ended, and all differences, as CSV."""
        found = _document(queue, address)
        if "rows" not in found:
            raise missing(f"table of simulation {address} before it has ended")
        page = io.StringIO()
        write_table(page, spreadsheet(found), end="\n")
        named = {"content-disposition": f'attachment; filename="simulation-{address}.csv"'}
        return Response(page.getvalue(), media_type="text/csv", headers=named)

    return routes


def _document(queue: Queue, address: str) -> Document:
    found = document_at(queue, address)
    if found is None:
        raise missing(f"simulation {address}")
    return found


class CalibrationWanted(Body):
    """The machines, how often each job runs, and about how many seconds the longest takes."""

    machines: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=MOST_MACHINES),
    ]
    repeats: Annotated[int, Field(ge=1, le=20)] = 3
    longest: Annotated[float, Field(ge=0.01, le=2)] = 0.1


def calibration_routes(queue: Queue) -> APIRouter:
    """Make the routes of calibrations."""
    routes = APIRouter(tags=["machines"])

    @routes.post("/calibrations", status_code=202, responses=WRONG)
    def start(given: CalibrationWanted) -> dict[str, Any]:
        """Measure machines, each a process of this computer; one calibration at a time."""
        return plain(queue.start(CalibrationTask(**given.model_dump())).as_json())

    @routes.get("/calibrations/{number}", responses=MISSING)
    def progress(number: Number) -> dict[str, Any]:
        """Return the progress and the result of a calibration."""
        return plain(_known(queue, CalibrationTask, number).as_json())

    @routes.post("/calibrations/{number}/stop", responses=MISSING)
    def stop(number: Number) -> dict[str, Any]:
        """Stop a calibration."""
        return plain(queue.stop(_known(queue, CalibrationTask, number)).as_json())

    return routes


class Again(Body):
    """How to run a table again."""

    quick: bool = True


@cache
def published() -> tuple[ReproductionData, dict[str, Section]]:
    """Return the data that are shipped, and its tables by name."""
    data = read_data()
    return data, {section.name: section for section in data.sections}


def last_rerun(queue: Queue, table: str) -> TableTask | None:
    """Return the last time that a table was run again on this server."""
    return next((each for each in queue.all(TableTask) if each.table == table), None)


def published_routes(queue: Queue) -> APIRouter:
    """Make the routes of the published tables."""
    routes = APIRouter(tags=["published"])

    def full_name(name: str) -> str:
        """Return a table's name in full; as on the command line, ``A:`` may be left out."""
        sections = published()[1]
        return name if name in sections or f"A:{name}" not in sections else f"A:{name}"

    def known(name: str) -> TableTask:
        found = last_rerun(queue, full_name(name))
        if found is None:
            raise missing("such table that was run again")
        return found

    @routes.get("/published")
    def list_tables() -> dict[str, Any]:
        """List the tables with a count of the verdicts."""
        data, sections = published()
        tables = [each.as_json() for each in sections.values()]
        for table in tables:
            del table["rows"]
        return {"made": data.settings, "tables": tables}

    @routes.get("/published/{name}", responses=MISSING)
    def one_table(name: str) -> dict[str, Any]:
        """Show a table: every printed cell beside ours, with the verdict."""
        found = published()[1].get(full_name(name))
        if found is None:
            raise missing("such table")
        return found.as_json()

    @routes.get("/published/{name}/reasons", responses=MISSING)
    def reasons(name: str, row: Annotated[int, Query(ge=0, le=10**6)] = 0) -> dict[str, Any]:
        """Explain a cell of a table, by its row: an erratum, or why it differs."""
        name = full_name(name)
        found = published()[1].get(name)
        if found is None or row >= len(found.rows):
            raise missing("such cell")
        known = [each._asdict() for each in explanations(name, found.rows[row])]
        return {"row": found.rows[row]._asdict(), "reasons": known}

    @routes.post("/published/{name}/rerun", status_code=202, responses=MISSING)
    def run_again(name: str, given: Again) -> dict[str, Any]:
        """Run a table again in the background; by default with much shorter runs."""
        return plain(queue.start(TableTask(full_name(name), given.quick)).as_json())

    @routes.get("/published/{name}/rerun", responses=MISSING)
    def how_far(name: str) -> dict[str, Any]:
        """Return the progress and the result of a table that is run again."""
        return plain(known(name).as_json())

    @routes.post("/published/{name}/rerun/stop", responses=MISSING)
    def stop(name: str) -> dict[str, Any]:
        """Stop a table that is run again."""
        return plain(queue.stop(known(name)).as_json())

    return routes


def _known(queue: Queue, kind: type[AnyTask], number: int) -> AnyTask:
    found = queue.find(kind, number)
    if found is None:
        raise missing(f"{kind.kind} {number}")
    return found
