"""Whatever is sent to the API, it never breaks (schemathesis, from its own description)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from gridwright.web.api import make_api
from gridwright.web.desk import Desk

desk = Desk()
schema = schemathesis.openapi.from_asgi("/api/openapi.json", make_api(desk))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GRIDWRIGHT_HOME", str(tmp_path / "home"))
    yield
    desk.calibrator.close()  # else it would go on beside the other tests


@schema.parametrize()
@settings(max_examples=10, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_breaks_it(case: Any) -> None:
    case.call_and_validate(checks=[not_a_server_error])
