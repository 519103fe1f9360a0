"""Experiments of one's own, machine lists, failure periods and calibrations, over the web."""

import time
import tomllib
from typing import Any

import pytest

from gridwright.web.runs import experiment_of

from .test_api import TWO, until
from .test_form import WHOLE


def test_mistakes_are_told_where_they_are(api: Any) -> None:
    def mistakes(**changes: Any) -> dict[tuple[Any, ...], str]:
        body = {"definition": {"system": TWO, "policy": "mct", **changes}}
        found = api.post("/experiments/validate", body)
        assert found["valid"] == (not found["mistakes"])
        return {tuple(each["place"]): each["words"] for each in found["mistakes"]}

    assert mistakes() == {}
    assert mistakes(time_unit=0)["time_unit",] == "time_unit is 0; expected a number > 0"
    assert "no failure would be seen" in mistakes(detection="timeout")["detection",]
    assert "no policy 'mtc'" in mistakes(policy="mtc")["policy",]
    assert "no machine '7'" in mistakes(failures=[["7", 1, 2]])["failures",]
    assert ("failures", 0, 2) in mistakes(failures=[["1", 1, -2]])
    wrong = mistakes(system={**TWO, "arrivals": [5, -1]}, seed="x", iterations=[1, 2, 3])
    assert set(wrong) == {("system", "arrivals", 1), ("seed",)}


@pytest.mark.parametrize(
    "changes",
    [
        {"failures": "/etc/passwd"},
        {"machines": "/etc/passwd"},
        {"jobs": "jobs.csv"},
        {"policy": "./evil.py"},
        {"tls": {"ca_file": "x", "cert": "x", "key": "x"}},
        {"system": {**TWO, "execution": "./evil.py:Evil"}},
        {"system": "/etc/passwd"},
        {"system": 3},
    ],
)
def test_no_file_is_named(api: Any, changes: dict[str, Any]) -> None:
    body = {"definition": {"system": TWO, "policy": "mct", **changes}}
    api.post("/experiments/toml", body, 422)
    api.post("/runs", body, 422)
    assert not api.post("/experiments/validate", body)["valid"]


def test_one_is_written_read_kept_and_thrown_away(api: Any) -> None:
    toml = api.post("/experiments/toml", {"definition": WHOLE})["toml"]
    again = api.post("/experiments/read", {"text": toml})["definition"]
    assert again == tomllib.loads(toml)
    assert api.post("/experiments/read", {"text": "8, 3\n4, 10"})["definition"]["system"]["rates"]
    assert api.get("/experiments/own") == []
    api("PUT", "/experiments/own/mine", json={"definition": again})
    assert api.get("/experiments/own") == ["mine"]
    assert api.get("/experiments/own/mine")["toml"] == toml
    api("PUT", "/experiments/own/..evil", 422, json={"definition": again})
    api("PUT", "/experiments/own/mine", 422, json={"definition": {**again, "seed": -1}})
    found = experiment_of(own="mine", duration=5.0)  # as a run knows it
    assert (found.name, found.policy, found.duration) == ("mine", "kpb:k=1", 5)
    assert api("DELETE", "/experiments/own/mine") == {"removed": "mine"}
    api("DELETE", "/experiments/own/mine", 404)
    api.get("/experiments/own/mine", 404)


def test_failure_periods(api: Any) -> None:
    found = api.post("/experiments/failures", {"definition": WHOLE, "draw": False})
    assert found["failures"] == [["3", 1, 2], ["1", 3.5, 4]]
    assert found["machines"]["1"] == {"faults": 1, "up": 3.5, "down": 0.5}
    assert found["machines"]["2"]["up"] is None
    long = {**WHOLE, "duration": 2000}
    drawn = api.post("/experiments/failures", {"definition": long})
    assert all(10 < each["up"] < 40 for each in drawn["machines"].values())
    means = {"machine": "2", "mean_uptime": 5, "mean_repair": 1}
    one = api.post("/experiments/failures", {"definition": long, **means})["machines"]
    assert one["1"] == found["machines"]["1"], "those of the other machines stay"
    assert 4 < one["2"]["up"] < 6.3
    assert 0.8 < one["2"]["down"] < 1.25
    wrong = api.post("/experiments/failures", {"definition": long, **means, "machine": "9"}, 422)
    assert "no machine '9'" in wrong["detail"]
    often = {"definition": long, "machine": "2", "mean_uptime": 1e-9, "mean_repair": 1e-9}
    assert "at most 100,000" in api.post("/experiments/failures", often, 422)["detail"]
    never = {"definition": {"system": TWO, "policy": "mct"}}
    assert "machines never fail" in api.post("/experiments/failures", never, 422)["detail"]
    often = {"mean_uptime": 1e-20, "mean_repair": 1e-20}
    body = {"definition": {"system": {**TWO, "failures": often}, "policy": "mct"}}
    for path in ("/experiments/failures", "/runs"):
        assert "failures; expected at most" in api.post(path, body, 422)["detail"]


def test_a_machine_list_without_its_secrets(api: Any) -> None:
    found = api.post("/machines/read", {"text": "a; s3cret; 0.5; 500\nb"})
    assert found[0] == {"address": "a", "iterations": 500, "seconds": 30}
    assert found[1] == {"address": "b", "iterations": None, "seconds": None}
    wrong = api.post("/machines/read", {"text": "a; s3cret"}, 422)["detail"]
    assert "2 fields" in wrong
    assert "s3cret" not in wrong


def test_a_calibration_is_watched_and_stopped(api: Any) -> None:
    body = {"machines": ["a"], "repeats": 1, "longest": 0.02}
    first = api.post("/calibrations", body, 202)
    assert first["state"] == "running"
    assert "stop it first" in api.post("/calibrations", body, 422)["detail"]
    done = until(lambda: (r := api.get("/calibrations/1"))["state"] != "running" and r)
    assert (done["state"], done["share"]) == ("done", 1)
    assert done["found"]["machines"][0]["per_second"] > 100
    assert "same name" in api.post("/calibrations", {"machines": ["a", "a"]}, 422)["detail"]
    api.post("/calibrations", {**body, "repeats": 20, "longest": 2}, 202)
    assert api.get("/calibrations/1") == done, "it is remembered"
    began = time.monotonic()
    api.post("/calibrations/2/stop")
    over = until(lambda: (r := api.get("/calibrations/2"))["state"] != "running" and r)
    assert (over["state"], over["found"]) == ("stopped", None)
    assert time.monotonic() - began < 20
