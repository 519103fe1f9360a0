"""What a script can do over the web, and what it cannot."""

import json
import subprocess
import sys
import threading
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
        {**TWO, "execution": {"kind": "/elsewhere/evil.py:Evil"}},
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
    for name in ("./evil.py", "/elsewhere/evil.py:f", "evil.py"):
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


def test_what_is_wrong_with_a_simulation(api: Any) -> None:
    body = {"system": TWO, "policies": ["mct", "lpas"], "horizon": 500, "replications": 4}
    assert "no policy" in api.post("/simulations", {**body, "policies": ["mtc"]}, 422)["detail"]
    assert "nothing to simulate" in api.post("/simulations", {"system": TWO}, 422)["detail"]
    api.get("/simulations/99", 404)


PASTED = """from gridwright import push

@push
def mine(task_class, view):
    return task_class
"""


def test_code_is_told_of_by_its_line(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridwright.web.pasted_policy.PATIENCE", 0.5)

    def wrong(code: str) -> str:
        body = {"system": TWO, "code": code}
        return str(api.post("/simulations", body, 422)["detail"])

    assert wrong(PASTED.replace("view)", "view")) == "pasted.py, line 4: '(' was never closed"
    assert wrong("x = 1\n1 / 0").startswith("pasted.py, line 2: ZeroDivisionError")
    assert "line 3: InputError: mine(task_class) is no push" in wrong(PASTED.replace(", view", ""))
    assert "no policy" in wrong("x = 1")
    assert "pasted.py does not end" in wrong("import time\ntime.sleep(2)")
    body = {"system": TWO, "code": PASTED.replace("task_class\n", "other\n")}
    number = api.post("/simulations", body, 202)["id"]
    done = until(lambda: _over(api, number))
    assert (done["state"], done["error"].partition(":")[0]) == ("failed", "pasted.py, line 5")


@pytest.mark.slow
def test_code_that_does_not_come_back_is_given_up(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridwright.web.simulations.Simulation.grace", 0.2)
    end = tmp_path / "end"
    waiting = f"    while not Path({str(end)!r}).exists():\n        pass\n    return 1 / 0"
    loop = f"from pathlib import Path\n{PASTED.replace('    return task_class', waiting)}"
    number = api.post("/simulations", {"system": TWO, "code": loop}, 202)["id"]
    other = api.post("/simulations", {"system": TWO, "policies": ["mct"]}, 202)["id"]
    api.post(f"/simulations/{other}/stop")
    assert until(lambda: _over(api, other))["error"] == ""
    api.post(f"/simulations/{number}/stop")
    done = until(lambda: _over(api, number))
    assert done["state"] == "stopped"
    assert done["error"].startswith("it had not ended ")
    end.touch()  # no thread stays behind: warnings are everybody's
    until(lambda: all(each.name != "simulation" for each in threading.enumerate()))


def test_code_and_clusters_are_for_who_has_shown_the_token(api: Any) -> None:
    api.token = ""
    body = {"system": TWO, "code": PASTED}
    assert "with the token" in api.post("/simulations", body, 403)["detail"]
    cluster = {"address": "tcp://127.0.0.1:1"}
    assert "log in" in api.get("/machines", 403, params=cluster)["detail"]
    place = {"on": cluster["address"]}
    assert "log in" in api.post("/runs", {"system": SMALL, **place}, 403)["detail"]
    definition = {"system": SMALL, "policy": "fcfs", "on": "tcp://127.0.0.1:1"}
    assert "log in" in api.post("/runs", {"definition": definition}, 403)["detail"]
    assert api.get("/runs") == []


def test_a_policy_that_was_pasted_cannot_be_run_elsewhere(api: Any) -> None:
    number = api.post("/simulations", {"system": TWO, "code": PASTED, "horizon": 10}, 202)["id"]
    name = until(lambda: _over(api, number))["policies"][0]["policy"]
    detail = api.post("/runs", {"system": SMALL, "policy": name}, 422)["detail"]
    assert "another process" in detail


def test_a_run_under_pasted_code(api: Any) -> None:
    code = PASTED.replace("return task_class", "return 0")
    body = {"system": SMALL, "time_unit": 0.02, "duration": 10, "code": code}
    run = api.post("/runs", body, 202)["run"]
    done = until(lambda: (found := api.get(f"/runs/{run}"))["state"] == "done" and found)
    assert (done["policy"], done["finished"] > 0) == ("mine", True)
    both = code + "\n@push\ndef other(task_class, view):\n    return 0\n"
    assert "2 policies, mine, other" in api.post("/runs", {**body, "code": both}, 422)["detail"]
    assert "line 5" in api.post("/runs", {**body, "code": code[:-3] + ")"}, 422)["detail"]
    api.token = ""
    assert "with the token" in api.post("/runs", body, 403)["detail"]


def test_numbers_of_any_size_are_refused(api: Any) -> None:
    text = f"arrivals = [1]\nrates = [[1]]\nx = 0x{'f' * 5000}"
    assert "20000 bits" in api.post("/systems/read", {"text": text}, 422)["detail"]


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999"])
def test_what_is_no_number_is_refused(api: Any, number: str) -> None:
    body = f'{{"system": "2.B", "policies": ["mct"], "horizon": {number}}}'
    kind = {"content-type": "application/json"}
    found = api("POST", "/simulations", 422, content=body, headers=kind)
    assert found["detail"][0]["loc"] == ["body", "horizon"]


def test_a_machine_may_have_a_slash_in_its_name(api: Any) -> None:
    found = api.post("/runs/7/machines/big/1/pause", status=404)
    assert "no run 7" in found["detail"]


def test_code_from_another_computer_is_refused(api: Any) -> None:
    body = {"system": TWO, "code": PASTED}
    assert "this computer" in api.post("/simulations", body, 403, host="10.0.0.7")["detail"]
    api.post("/simulations", {"system": TWO, "policies": ["mtc"]}, 422, host="10.0.0.7")


def _over(api: Any, number: int) -> Any:
    found = api.get(f"/simulations/{number}")
    return found if found["state"] not in ("waiting", "running") else None


SMALL = {"arrivals": [2, 3], "rates": [[8, 3], [4, 10]]}


@pytest.mark.slow
def test_a_run_is_started_watched_stopped_and_resumed(api: Any, tmp_path: Path) -> None:
    assert api.get("/runs") == []
    assert "MGST-1" in api.get("/experiments")
    assert api.get("/experiments/MGST-5")["system"]["machines"] == 21
    assert api.get("/machines")[0]["processors"] >= 1
    body = {"system": SMALL, "policy": "mct", "time_unit": 0.3, "duration": 40, "failures": "none"}
    run = api.post("/runs", {**body, "resolution": 0.5}, 202)
    assert (run["run"], run["state"]) == (1, "starting")
    until(lambda: api.get("/runs/1")["finished"] > 5)
    page = api.get("/runs/1/jobs", params={"limit": 3, "sort": "ended", "descending": True})
    assert page["total"] > 5
    assert len(page["jobs"]) == 3
    only = api.get("/runs/1/jobs", params={"stage": "finished", "machine": "1", "limit": 500})
    assert {job["machine"] for job in only["jobs"]} <= {"1"}
    api.get("/runs/1/jobs", 422, params={"sort": "number; DROP TABLE job"})
    machines = until(lambda: (m := api.get("/runs/1/machines"))[0]["predicted"] is not None and m)
    assert {each["state"] for each in machines} == {"up"}
    assert 0 <= machines[0]["measured"] <= 1
    assert float(api.post("/runs/1/machines/1/ping")["answer"]) < 5
    assert api.post("/runs/1/machines/1/pause")["answer"] == "done"
    assert api.get("/runs/1/machines")[0]["state"] == "paused"
    assert api.post("/runs/1/machines/2/start")["answer"] == "as it was"
    assert api.post("/runs/1/machines/2/kill")["answer"] == "done"
    until(lambda: api.get("/runs/1/machines")[1]["state"] == "killed")
    assert api.post("/runs/1/machines/2/start")["answer"] == "done"
    until(lambda: api.get("/runs/1/machines")[1]["state"] == "up")
    assert api.post("/runs/1/machines/2/fail", {"values": [1]})["answer"] == "done"
    assert "no machine" in api.post("/runs/1/machines/99/pause", status=422)["detail"]
    lacks = api.post("/runs/1/machines/1/impose", {"values": [0.5]}, 422)["detail"]
    assert "impose takes availability and period; got 1 value" in lacks
    kinds = [each["kind"] for each in api.get("/runs/1/events", params={"readings": False})]
    assert "failure" in kinds
    assert "availability" not in kinds
    assert api.post("/runs/1/pause")["state"] == "paused"
    before = api.get("/runs/1")["time_units"]
    other = type(api)()  # a server that was started again knows the run, and how to stop it
    assert other.get("/runs/1")["state"] == "paused"
    assert other.get("/runs/1")["time_units"] == before, "no time passes"
    assert other.post("/runs/1/resume")["state"] == "running"
    assert other.post("/runs/1/stop")["state"] == "stopped"
    assert "not running" in other.post("/runs/1/stop", status=422)["detail"]
    assert "not running" in other.post("/runs/1/pause", status=409)["detail"]
    before = other.get("/runs/1")["statistics"]["overall"]["finished"]
    assert other.post("/runs/1/resume")["state"] in ("starting", "running")
    until(lambda: other.get("/runs/1")["finished"] > before)
    done = until(lambda: (r := other.get("/runs/1"))["state"] == "done" and r, 90)
    assert done["statistics"]["overall"]["unfinished"] <= done["arrived"]
    assert 0.5 < done["job_lengths"]["all"] < 2
    queues = other.get("/runs/1/queues")
    assert len(queues["times"]) == len(next(iter(queues["waiting"].values())))
    names = zipfile.ZipFile(BytesIO(other.get("/runs/1/export"))).namelist()
    assert "run-1/jobs.csv" in names
    report = other.get("/runs/1/report")
    assert set(report["gap"]["shares"]) >= {"arrivals", "execution", "overhead", "failures"}
    kept = tmp_path / "home" / "runs" / "1.twin.json"
    assert json.loads(kept.read_text())["report"] == report
    kept.write_text(kept.read_text().replace(f'"until": {report["until"]}', '"until": "kept"', 1))
    assert type(api)().get("/runs/1/report")["until"] == "kept", "a server started again reads it"
    assert "only stopped runs can be resumed" in other.post("/runs/1/resume", status=422)["detail"]
    other.get("/runs/2", 404)


def test_an_experiment_of_ones_own(api: Any, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "systems"
    folder.mkdir(parents=True)
    (folder / "plain.toml").write_text("arrivals = [1]\nrates = [[2]]")
    (folder / "mine.toml").write_text(
        "policy = 'fcfs'\nduration = 2e8\n[system]\narrivals = [1]\nrates = [[2]]"
    )
    assert api.get("/experiments/own") == ["mine"]
    assert "200,000,000 jobs" in api.post("/runs", {"own": "mine"}, 422)["detail"]
    for name in ("plain", "../mine", "none"):
        assert "no experiment" in api.post("/runs", {"own": name}, 422)["detail"]


@pytest.mark.slow
def test_a_cluster(api: Any) -> None:
    """The workers of a Dask scheduler are listed, and run jobs."""
    words = [sys.executable, "-m", "gridwright", "workers", "--local", "2", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["address"]
            there = api.get("/machines", params={"address": address})
            assert len(there) == 2
            body = {"system": SMALL, "policy": "mct", "time_unit": 0.2, "duration": 600}
            run = api.post("/runs", {**body, "on": address}, 202)["run"]
            until(lambda: api.get(f"/runs/{run}")["finished"] > 3)
            names = {each["name"] for each in api.get(f"/runs/{run}/machines")}
            assert names == {each["name"] for each in there}
            api.post(f"/runs/{run}/stop")
        finally:
            process.terminate()
    for wrong in ("10.0.0.1", "tcp://x", "file:///etc/passwd"):
        assert "not the address" in api.get("/machines", 422, params={"address": wrong})["detail"]
        for key in ("on", "address"):  # address is the deprecated name
            body = {"system": SMALL, key: wrong}
            assert "not the address" in api.post("/runs", body, 422)["detail"]
    both = {"system": SMALL, "on": "", "executor": "local"}
    assert "give on alone" in api.post("/runs", both, 422)["detail"]
    assert (
        "needs the address"
        in api.post("/runs", {**both, "on": None, "executor": "dask"}, 422)["detail"]
    )
    assert "TLS" in api.get("/machines", 422, params={"address": "tls://127.0.0.1:1"})["detail"]


def test_published(api: Any) -> None:
    found = api.get("/published")
    assert "replications" in found["made"]
    first = api.get("/published/A:2.1")
    cells = [row for row in first["rows"] if not row["reading"]]  # the others are hypotheses
    assert len(cells) == sum(first["summary"].values()) == 34
    assert api.get("/published/2.1") == first, "as on the command line"
    api.get("/published/none", 404)
    row = next(k for k, row in enumerate(first["rows"]) if row["verdict"] == "differs")
    known = api.get("/published/A:2.1/reasons", params={"row": row})
    assert known["row"] == first["rows"][row]
    assert "No reading of LPAS" in known["reasons"][0]["text"]
    assert api.get("/published/2.1/reasons", params={"row": row}) == known
    api.get("/published/A:2.1/reasons", 404, params={"row": len(first["rows"])})
    api.get("/published/LP/rerun", 404)
    assert api.post("/published/LP/rerun", {}, 202)["state"] in ("waiting", "running", "done")
    again = until(lambda: (r := api.get("/published/LP/rerun"))["state"] == "done" and r)
    assert again["found"]["summary"] == api.get("/published/LP")["summary"]
    assert "no table" in api.post("/published/none/rerun", {}, 422)["detail"]
    assert api.post("/published/2.6/rerun", {}, 202)["table"] == "A:2.6"
    assert api.post("/published/2.6/rerun/stop")["table"] == "A:2.6"


def test_what_is_not_there(api: Any) -> None:
    api.get("/nothing", 404)
    api.post("/systems/allocate", [], 422)


def test_policies_on_an_overloaded_system_are_not_ranked(api: Any) -> None:
    system = {**TWO, "arrivals": [8, 12]}
    body = {"system": system, "policies": ["mct", "lpas"], "horizon": 200, "replications": 2}
    number = api.post("/simulations", body, 202)["id"]
    found = until(lambda: _over(api, number))
    for line in found["policies"]:
        assert line["stable"] is False
        assert line["long_run_load"] > 1
        assert line["verdict"].startswith("unstable: the long-run load is")
    result = api.get(f"/simulations/{number}/result")
    assert {each["winner"] for each in result["differences"]} == {None}
    assert (result["winner"], result["ranked"]) == (None, [])
