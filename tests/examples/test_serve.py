"""The serving example: right answers to many at once, and no answer to nonsense."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from spark_rank import Recommender
from spark_rank.store.run import Run

SCRIPT = Path(__file__).parents[2] / "examples/serve.py"
CLIENTS = 20
SHOWN = ("position", "item_id", "title", "score", "predicted_rating")


@pytest.fixture(scope="module")
def folder(finished: Run) -> str:
    return finished.root.removeprefix("file:")


@pytest.fixture(scope="module")
def port(folder: str) -> Iterator[int]:
    command = [sys.executable, str(SCRIPT), folder, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            assert line.startswith("http://127.0.0.1:")
            yield int(line.rpartition(":")[2])
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body if body is None or isinstance(body, bytes)
                           else json.dumps(body))  # fmt: skip
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def shown(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"items": [{name: row[name] for name in SHOWN} for row in rows]}


def test_twenty_clients_get_what_the_run_has(port: int, folder: str) -> None:
    reader = Recommender.open(folder)
    ids = [str(user) for user in range(1, 61)]
    ratings = [dict(zip(reader.item_ids[user : user + 9], [1, 5, 3, 4, 2, 5, 4, 1, 3], strict=True))
               for user in range(20)]  # fmt: skip
    lists = {user: shown(reader.recommend(user, 7)) for user in ids}
    folded = [shown(reader.fold_in(own).recommend(5)) for own in ratings]

    def client(number: int) -> list[float]:
        took = []
        for turn in range(10):
            user, own = ids[(7 * number + turn) % 60], (number + turn) % 20
            started = time.perf_counter()
            assert ask(port, "GET", f"/users/{user}/recommendations?count=7") == (200, lists[user])
            body = {"ratings": ratings[own], "count": 5}
            assert ask(port, "POST", "/fold-in", body) == (200, folded[own])
            took.append(time.perf_counter() - started)
        return took

    with ThreadPoolExecutor(CLIENTS) as clients:
        took = [each for own in clients.map(client, range(CLIENTS)) for each in own]
    assert len(took) == 10 * CLIENTS
    assert statistics.median(took) < 10  # seconds: nobody waits for ever, however busy the machine


def test_items_are_excluded(port: int, folder: str) -> None:
    reader = Recommender.open(folder)
    first, second = (row["item_id"] for row in reader.recommend("3", 2))
    _, told = ask(port, "GET", f"/users/3/recommendations?count=1&exclude={first}")
    assert [row["item_id"] for row in told["items"]] == [second]
    body = {"ratings": {first: 3}, "exclude": reader.item_ids}
    assert ask(port, "POST", "/fold-in", body) == (200, {"items": []})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/users/nobody/recommendations", None, 404, "no user 'nobody'"),
        ("GET", "/users/%2e%2e%2f/recommendations", None, 404, "no user '../'"),
        ("GET", "/elsewhere", None, 404, "ask for /users"),
        ("GET", "/users/3/recommendations?count=many", None, 400, "no whole number"),
        ("GET", "/users/3/recommendations?count=0", None, 400, "between 1 and 1000"),
        ("GET", "/users/3/recommendations?count=100000", None, 400, "between 1 and 1000"),
        ("POST", "/elsewhere", {}, 404, "post to /fold-in"),
        ("POST", "/fold-in", b"{", 400, "no JSON"),
        ("POST", "/fold-in", b"[" * 100_000, 400, "no JSON"),
        ("POST", "/fold-in", [], 400, "say"),
        ("POST", "/fold-in", {"ratings": {}}, 400, "at least one rating"),
        ("POST", "/fold-in", {"ratings": {"nothing": 3}}, 400, "no item 'nothing'"),
        ("POST", "/fold-in", {"ratings": {"1": "five"}}, 400, "'1' is no number"),
        ("POST", "/fold-in", {"ratings": {"1": 50}}, 400, "not between"),
        ("POST", "/fold-in", b'{"ratings": {"1": NaN}}', 400, "not between"),
        ("POST", "/fold-in", {"ratings": {"1": 3}, "count": "7"}, 400, "between 1 and 1000"),
        ("POST", "/fold-in", {"ratings": {"1": 3}, "exclude": "7"}, 400, "no list of item ids"),
        ("POST", "/fold-in", b" " * (2 << 20), 413, "more than"),
    ],
)
def test_nonsense_is_refused(
    port: int, method: str, path: str, body: Any, status: int, said: str
) -> None:
    found, told = ask(port, method, path, body)
    assert found == status
    assert said in told["error"]
    # and the server is there for the next
    assert ask(port, "GET", "/users/3/recommendations")[0] == 200
