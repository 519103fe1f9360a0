"""What a script can do over the web, and what it cannot."""

import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

TWO = {"arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}


def until(what: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)
    return found


def test_systems(api: Any) -> None:
    names = [each["name"] for each in api.get("/systems")]
    assert "2.B" in names
    one = api.get("/systems/2.B")
    assert one["document"]["rates"] == [[8, 3], [4, 10]] or one["document"]["arrivals"]
    assert "rates" in one["toml"]
    assert "did you mean" in api.get("/systems/2.BB", 404)["detail"]
    for path in ("..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "x.toml"):
        api.get(f"/systems/{path}", 404)


def test_validation_names_the_place(api: Any) -> None:
    assert api.post("/systems/validate", TWO) == {"valid": True, "mistakes": []}
    wrong = {"arrivals": [5, -1], "rates": [[8, "x"], [4, 10]], "colour": 1}
    found = {tuple(each["place"]): each["words"] for each in _mistakes(api, wrong)}
    assert found["arrivals", 1] == "arrivals, entry 2 is -1; expected a number > 0"
    assert ("rates", 0, 1) in found
    assert "unknown key" in found[("colour",)]


def _mistakes(api: Any, document: dict[str, Any]) -> list[dict[str, Any]]:
    answer = api.post("/systems/validate", document)
    assert not answer["valid"]
    return list(answer["mistakes"])


def test_allocation_with_a_machine_switched_off(api: Any) -> None:
    found = api.post("/systems/allocate", {"system": TWO})
    assert found["capacity"] == pytest.approx(4 / 3)
    assert found["stabilisable"]
    less = api.post("/systems/allocate", {"system": "2.B", "down": ["2"]})
    assert less["change"]["before"] == pytest.approx(4 / 3, abs=1e-4)
    assert less["capacity"] < 1
    assert (
        "no machine '7'"
        in api.post("/systems/allocate", {"system": TWO, "down": ["7"]}, 422)["detail"]
    )


@pytest.mark.parametrize(
    "document",
    [
        {**TWO, "execution": "./evil.py:Evil"},
        {**TWO, "execution": {"kind": "/tmp/evil.py:Evil"}},
        {**TWO, "execution": ["./evil.py:Evil", "exponential"]},
        {**TWO, "failures": {"mean_uptime": 1, "mean_repair": 1, "uptime": "./evil.py:Evil"}},
        {**TWO, "pmf": {"file": "/etc/passwd"}},
    ],
)
def test_no_file_is_read(api: Any, tmp_path: Path, document: dict[str, Any]) -> None:
    for path, body in (
        ("/systems/allocate", {"system": document}),
        ("/systems/toml", document),
        ("/simulations", {"system": document, "policies": ["mct"]}),
        ("/runs", {"system": document}),
    ):
        assert "names no file" in api.post(path, body, 422)["detail"]
    assert "names no file" in _mistakes(api, document)[0]["words"]


def test_no_policy_is_read_from_a_file(api: Any) -> None:
    for name in ("./evil.py", "/tmp/evil.py:f", "evil.py"):
        body = {"system": TWO, "policies": [name]}
        assert "not files" in api.post("/simulations", body, 422)["detail"]
        assert "not files" in api.post("/runs", {"system": TWO, "policy": name}, 422)["detail"]
    for name in ("../MGST-1", "/etc/passwd", "x.toml"):
        assert "no experiment" in api.post("/runs", {"experiment": name}, 422)["detail"]


def test_nothing_is_made_too_large(api: Any) -> None:
    many = {"arrivals": [1], "rates": [[1]], "counts": [10**9]}
    assert "at most" in api.post("/systems/allocate", {"system": many}, 422)["detail"]
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    api.post("/systems/allocate", {"system": {"rates": deep}}, 422)
    assert "jobs" in api.post("/runs", {"system": TWO, "duration": 1e8}, 422)["detail"]


def test_texts(api: Any) -> None:
    def read(text: str) -> Any:
        return api.post("/systems/read", {"text": text})["document"]

    assert read("8, 3\n4, 10") == {"arrivals": [1, 1], "rates": [[8, 3], [4, 10]]}
    assert read("8\t3\n4\t10") == read("8;3\n4;10") == read("8,3\n\n4,10\n")
    assert read('name = "x"\narrivals = [1]\nrates = [[2]]')["name"] == "x"
    assert "line 2" in api.post("/systems/read", {"text": "8, 3\n4, x"}, 422)["detail"]
    assert "TOML" in api.post("/systems/read", {"text": "a = ["}, 422)["detail"]
    toml = api.post("/systems/toml", TWO)["toml"]
    assert read(toml)["arrivals"] == [5, 8]


def test_policies(api: Any) -> None:
    found = {each["name"]: each for each in api.get("/policies")}
    assert found["kpb"]["kind"] == "push"
    parameters = {each["name"]: each for each in found["kpb"]["parameters"]}
    assert parameters["k"]["kind"] == "integer"
    assert "random" in parameters["tie"]["choices"]


def test_two_policies_are_simulated(api: Any) -> None:
    body = {"system": TWO, "policies": ["mct", "lpas"], "horizon": 500, "replications": 4}
    number = api.post("/simulations", body, 202)["id"]
    done = until(lambda: _over(api, number))
    assert done["state"] == "done"
    assert [each["replications"] for each in done["policies"]] == [4, 4]
    low, high = (done["policies"][1]["mean_number"][key] for key in ("low", "high"))
    assert 1 < low < high < 20
    result = api.get(f"/simulations/{number}/result")
    assert [each["policy"] for each in result["results"]] == ["mct", "lpas"]
    assert result["differences"]
    api.get("/simulations/99", 404)
    assert "no policy" in api.post("/simulations", {**body, "policies": ["mtc"]}, 422)["detail"]


def _over(api: Any, number: int) -> Any:
    found = api.get(f"/simulations/{number}")
    return found if found["state"] not in ("waiting", "running") else None


def test_a_simulation_is_stopped(api: Any) -> None:
    body = {"system": TWO, "policies": ["mct"], "horizon": 1e6, "replications": 1000}
    number = api.post("/simulations", body, 202)["id"]
    until(lambda: api.get(f"/simulations/{number}")["policies"][0]["replications"] >= 2)
    api.post(f"/simulations/{number}/stop")
    done = until(lambda: _over(api, number))
    assert done["state"] == "stopped"
    assert done["share"] < 1
    assert done["policies"][0]["mean_number"]["high"] is not None


def test_a_run_is_started_watched_stopped_and_resumed(api: Any) -> None:
    assert api.get("/runs") == []
    assert "MGST-1" in api.get("/experiments")
    assert api.get("/experiments/MGST-5")["system"]["machines"] == 21
    body = {"experiment": "MGST-4", "time_unit": 0.5, "duration": 12, "failures": "none"}
    run = api.post("/runs", body, 202)
    assert (run["run"], run["state"]) == (1, "starting")
    until(lambda: api.get("/runs/1")["finished"] > 5)
    page = api.get("/runs/1/jobs", params={"limit": 3, "sort": "ended", "descending": True})
    assert page["total"] > 5
    assert len(page["jobs"]) == 3
    only = api.get("/runs/1/jobs", params={"stage": "finished", "machine": "1", "limit": 500})
    assert {job["machine"] for job in only["jobs"]} <= {"1"}
    api.get("/runs/1/jobs", 422, params={"sort": "number; DROP TABLE job"})
    machines = api.get("/runs/1/machines")
    assert {each["state"] for each in machines} == {"up"}
    assert float(api.post("/runs/1/machines/1/ping")["answer"]) < 5
    assert api.post("/runs/1/machines/1/pause")["answer"] == "done"
    assert api.get("/runs/1/machines")[0]["state"] == "paused"
    assert api.post("/runs/1/machines/2/fail", {"values": [1]})["answer"] == "done"
    assert "no machine" in api.post("/runs/1/machines/99/pause", status=422)["detail"]
    assert "failure" in {each["kind"] for each in api.get("/runs/1/events")}
    other = type(api)()  # a server that was started again knows the run, and how to stop it
    assert other.get("/runs/1")["state"] == "running"
    assert other.post("/runs/1/stop")["state"] == "stopped"
    assert "not running" in other.post("/runs/1/stop", status=422)["detail"]
    before = other.get("/runs/1")["statistics"]["overall"]["finished"]
    assert other.post("/runs/1/resume")["state"] in ("starting", "running")
    until(lambda: other.get("/runs/1")["finished"] > before)
    done = until(lambda: (r := other.get("/runs/1"))["state"] == "done" and r, 90)
    assert done["statistics"]["overall"]["unfinished"] <= done["arrived"]
    queues = other.get("/runs/1/queues")
    assert len(queues["times"]) == len(next(iter(queues["waiting"].values())))
    names = zipfile.ZipFile(BytesIO(other.get("/runs/1/export"))).namelist()
    assert "run-1/jobs.csv" in names
    report = other.get("/runs/1/report")
    assert set(report["gap"]["shares"]) >= {"arrivals", "execution", "overhead", "failures"}
    assert "only one that was stopped" in other.post("/runs/1/resume", status=422)["detail"]
    other.get("/runs/2", 404)


def test_published(api: Any) -> None:
    found = api.get("/published")
    assert "replications" in found["made"]
    first = api.get("/published/A:2.1")
    assert len(first["rows"]) == sum(first["summary"].values()) == 34
    api.get("/published/none", 404)
    api.get("/published/LP/rerun", 404)
    assert api.post("/published/LP/rerun", {}, 202)["state"] in ("waiting", "running", "done")
    again = until(lambda: (r := api.get("/published/LP/rerun"))["state"] == "done" and r)
    assert again["found"]["summary"] == api.get("/published/LP")["summary"]
    assert "no table" in api.post("/published/none/rerun", {}, 422)["detail"]


def test_what_is_not_there(api: Any) -> None:
    api.get("/nothing", 404)
    api.post("/systems/allocate", [], 422)
