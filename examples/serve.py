"""Lists over HTTP from a finished run: ``python examples/serve.py store/runs/run_id=tuesday``.

::

    GET  /users/{id}/recommendations?count=10&exclude=i1&exclude=i7
    POST /fold-in    {"ratings": {"i1": 5, "i7": 2}, "count": 10, "exclude": ["i3"]}

The standard library's server is enough for a page or a test, and needs nothing to be installed; it
listens on this machine alone unless ``--host`` says otherwise, has no users and no encryption, and
belongs behind something that has. Everything about ranking is `Recommender`, whatever serves it.
"""

from __future__ import annotations

import argparse
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from threadpoolctl import threadpool_limits

from spark_rank import Recommender
from spark_rank.errors import SparkRankError, UnknownIdError

MOST_BYTES = 1 << 20
MOST_DROPPED = 1 << 24
MOST_ITEMS = 1000
_SHOWN = ("position", "item_id", "title", "score", "predicted_rating")


class RequestError(ValueError):
    """What a client asked for cannot be."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server(ThreadingHTTPServer):
    """A thread for every connection; many may wait to be accepted."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, address: tuple[str, int], recommender: Recommender) -> None:
        super().__init__(address, Handler)
        self.recommender = recommender


class Handler(BaseHTTPRequestHandler):
    """Answers in JSON; what is wrong with a request is said in `error`."""

    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds that a silent client keeps its thread
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        """Answer with a list of a user of the run."""
        self._answer(self._user_list)

    def do_POST(self) -> None:
        """Answer with a list of a new user."""
        self._answer(self._folded_list)

    def _user_list(self) -> Any:
        parts = urlsplit(self.path)
        words = [unquote(word) for word in parts.path.split("/")[1:]]
        if len(words) != 3 or (words[0], words[2]) != ("users", "recommendations"):
            raise RequestError(HTTPStatus.NOT_FOUND, "ask for /users/{id}/recommendations")
        given = parse_qs(parts.query)
        try:
            count = int(given.get("count", ["10"])[-1])
        except ValueError:
            raise RequestError(HTTPStatus.BAD_REQUEST, "count is no whole number") from None
        try:
            model = self.server.recommender.model_of(words[1])
        except UnknownIdError as error:
            raise RequestError(HTTPStatus.NOT_FOUND, str(error)) from None
        return listed(model, count, given.get("exclude", []))

    def _folded_list(self) -> Any:
        body = self._body()
        if urlsplit(self.path).path != "/fold-in":
            raise RequestError(HTTPStatus.NOT_FOUND, "post to /fold-in")
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise RequestError(HTTPStatus.BAD_REQUEST, "the body is no JSON") from None
        if not isinstance(given, dict) or not isinstance(given.get("ratings"), dict):
            raise RequestError(HTTPStatus.BAD_REQUEST, 'say {"ratings": {"item": 5}}')
        ratings, exclude = given["ratings"], given.get("exclude", [])
        low, high = self.server.recommender.rating_limits
        for item, rating in ratings.items():
            if isinstance(rating, bool) or not isinstance(rating, (int, float)):
                raise RequestError(HTTPStatus.BAD_REQUEST, f"the rating of {item!r} is no number")
            if not low <= rating <= high:
                text = f"the rating of {item!r} is not between {low:g} and {high:g}"
                raise RequestError(HTTPStatus.BAD_REQUEST, text)
        if not isinstance(exclude, list) or not all(isinstance(item, str) for item in exclude):
            raise RequestError(HTTPStatus.BAD_REQUEST, "exclude is no list of item ids")
        folded = self.server.recommender.fold_in(ratings)
        return listed(folded, given.get("count", 10), exclude)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            raise RequestError(HTTPStatus.LENGTH_REQUIRED, "say the Content-Length")
        if int(length) > MOST_BYTES:
            self._drop(int(length))
            raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST_BYTES} bytes")
        return self.rfile.read(int(length))

    def _drop(self, length: int) -> None:
        """Read what nobody wants: a client that is still sending might miss the answer."""
        self.close_connection = True  # there may be more than is dropped
        left = min(length, MOST_DROPPED)
        while left and (piece := self.rfile.read(min(left, 1 << 16))):
            left -= len(piece)

    def _answer(self, work: Any) -> None:
        status, told = HTTPStatus.OK, None
        try:
            told = work()
        except RequestError as error:
            status, told = error.status, {"error": str(error)}
        except SparkRankError as error:
            status, told = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        """Say nothing: who wants a log has one in front of this."""


def listed(model: Any, count: Any, exclude: list[str]) -> Any:
    """Return a list as clients get it."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_ITEMS:
        raise RequestError(HTTPStatus.BAD_REQUEST, f"count is not between 1 and {MOST_ITEMS}")
    rows = model.recommend(count, exclude=exclude)
    return {"items": [{name: row[name] for name in _SHOWN} for row in rows]}


def main() -> None:
    """Open the run and serve it until somebody interrupts."""
    parser = argparse.ArgumentParser(description="Serve the lists of a finished run over HTTP.")
    parser.add_argument("run", help="folder of the run: <store>/runs/run_id=NAME")
    parser.add_argument("--learner", help="its label; else the one that makes the run's lists")
    parser.add_argument("--host", default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="0: any (default: %(default)s)")
    options = parser.parse_args()
    # many requests at a time: threads of BLAS would wait for each other's cores
    threadpool_limits(1, user_api="blas")
    recommender = Recommender.open(options.run, learner=options.learner)
    # compiled code is loaded before the first client asks
    recommender.fold_in(dict.fromkeys(recommender.item_ids[:5], recommender.rating_limits[1]))
    with Server((options.host, options.port), recommender) as server:
        print(f"http://{options.host}:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
