"""What somebody without the token may have parsed and solved: not too much, and not for long."""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import httpx
import numpy as np
import pytest

from .conftest import Server

pytestmark = pytest.mark.slow

DEEP = "a" + ".a" * 240_000 + " = 1"
TWO = {"arrivals": [5, 8], "rates": [[8, 3], [4, 10]]}


def test_a_page_that_is_sent_keys_of_dots_still_answers(server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=120) as client:

        def send(_: int) -> int:
            return client.post("/api/systems/read", json={"text": DEEP}).status_code

        with ThreadPoolExecutor(45) as pool:
            answers = list(pool.map(send, range(45)))
            assert set(answers) <= {422, 503}
            assert 422 in answers
        assert client.get("/api/policies").status_code == 200


def test_a_large_allocation_holds_nobody_up(server: Server) -> None:
    rates = np.random.default_rng(1).gamma(2, 1, (150, 150)).round(3)
    body = {"system": {"arrivals": [1.0] * 150, "rates": rates.tolist()}}
    with httpx.Client(base_url=server.url, timeout=240) as client, ThreadPoolExecutor(3) as pool:
        solving = [pool.submit(client.post, "/api/systems/allocate", json=body) for _ in range(3)]
        waits = []
        while not all(each.done() for each in solving):
            begun = perf_counter()
            assert client.get("/api/experiments").status_code == 200
            waits.append(perf_counter() - begun)
        answers = [each.result() for each in solving]
    assert {answer.status_code for answer in answers} <= {200, 422}  # 422: it took too long
    for answer in answers:
        words = answer.json()
        assert words.get("capacity", 0) > 1 or "takes too long" in words["detail"]
    # the third waits for its turn, and others are answered meanwhile
    assert len(waits) > 3


def many(classes: int, machines: int) -> dict[str, Any]:
    return {"arrivals": [1] * classes, "rates": [[1] * machines] * classes}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (many(1001, 1), "1,001 classes; expected at most 1,000"),
        (many(1, 10_001), "10,001 machines; expected at most 10,000"),
        (
            many(501, 1000),
            "501,000 pairs (501 classes on 1,000 machines); expected at most 500,000",
        ),
        ({**many(501, 1), "counts": [1000]}, "501,000 pairs (501 classes on 1,000 machines)"),
        ({**TWO, "counts": [9_999, 2]}, "10,001 machines"),
        ({**TWO, "counts": [1, 1], "slots": [9_999, 2]}, "10,001 machines"),
        ({**TWO, "slots": 5_001}, "10,002 machines"),
    ],
)
def test_what_is_too_large_is_refused(api: Any, document: dict[str, Any], words: str) -> None:
    api.token = ""
    for path, body in (
        ("/systems/allocate", {"system": document}),
        ("/systems/toml", document),
        ("/experiments/toml", {"definition": {"system": document, "policy": "mct"}}),
        ("/simulations", {"system": document, "policies": ["mct"]}),
        ("/runs", {"system": document}),
    ):
        assert words in api.post(path, body, 422)["detail"]
    assert words in api.post("/systems/validate", document)["mistakes"][0]["words"]


def test_texts_that_are_too_long(api: Any) -> None:
    for path in ("/systems/read", "/experiments/read", "/machines/read"):
        assert api.post(path, {"text": "#" * 500_001}, 422)


def test_of_very_many_mistakes_the_first_are_told(api: Any) -> None:
    wrong = {f"arivals{k}": 1 for k in range(20_000)}
    assert len(api.post("/systems/validate", {**TWO, **wrong})["mistakes"]) == 200
    told = api.post("/systems/toml", {**TWO, "a" * 100_000: 1}, 422)["detail"]
    assert len(told) < 500
