"""A test for each operation of the API, which ``test_schema.py`` runs in a process of its own.

Schemathesis draws all requests when it collects these tests. That takes seconds, and each process
of the whole test suite would do it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from gridwright.web.api import make_api
from gridwright.web.services import Services

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
]

services = Services()
schema = schemathesis.openapi.from_asgi("/api/openapi.json", make_api(services))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    yield
    services.queue.close()  # else it would go on beside the other tests


@schema.parametrize()
@settings(max_examples=10, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)
