"""``examples/serve.py`` under load: ``python benchmarks/serve.py RUN [USERS] [ITEMS]``.

RUN is copied as by ``benchmarks/reader.py``. Twenty clients, each on a connection of its own that
stays open, ask for lists of random users, and then for lists of new users with 50 ratings; times
are what the clients see, and CPU time is the server's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from reader import copied_run

CLIENTS, REQUESTS = 20, 50
Request = tuple[str, str, str | None]
SCRIPT = Path(__file__).parents[1] / "examples/serve.py"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(port: int, asked: list[Request]) -> list[float]:
    """Return the seconds that each of some requests took."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    took = []
    for method, path, body in asked:
        started = time.perf_counter()
        connection.request(method, path, body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        took.append(time.perf_counter() - started)
    connection.close()
    return took


def measure(name: str, port: int, pid: int, asked: list[list[Request]]) -> None:
    """Let all clients ask, and print what it took."""
    before, started = cpu_seconds(pid), time.perf_counter()
    with ThreadPoolExecutor(len(asked)) as clients:
        own = list(clients.map(partial(client, port), asked))
    seconds, cpu = time.perf_counter() - started, cpu_seconds(pid) - before
    took = np.concatenate(own)
    low, middle, high = np.percentile(took, [50, 95, 99]) * 1e3
    each = cpu / len(took) * 1e3
    print(f"{name:<8} {len(took) / seconds:5.0f} a second, {each:.2f} ms of CPU each;", end=" ")
    print(f"{low:.1f} ms median, {middle:.1f} ms 95 %, {high:.1f} ms 99 %", flush=True)


def main(source: str, n_users: int = 480_000, n_items: int = 17_770) -> None:
    """Make the run, start the server, ask, print."""
    folder = Path(tempfile.mkdtemp(prefix="spark-rank-")) / "run_id=many"
    copied_run(Path(source), folder, n_users, n_items)
    command = [sys.executable, str(SCRIPT), str(folder), "--port", "0"]
    rng = np.random.default_rng(3)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        users = rng.integers(0, n_users, (CLIENTS, REQUESTS))
        lists = [[("GET", f"/users/u{user}/recommendations", None) for user in own]
                 for own in users]  # fmt: skip
        folded = [
            [("POST", "/fold-in", json.dumps({"ratings": {
                f"i{item}": 1 + int(item) % 5 for item in rng.choice(n_items, 50, False)
            }})) for _ in range(REQUESTS)]
            for _ in range(CLIENTS)
        ]  # fmt: skip
        client(port, lists[0][:1])
        for clients in (1, CLIENTS):
            print(f"{clients} at once")
            measure("lists", port, server.pid, lists[:clients])
            measure("fold in", port, server.pid, folded[:clients])
        server.terminate()
    shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main(sys.argv[1], *(int(number) for number in sys.argv[2:]))
