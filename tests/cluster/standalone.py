"""A Spark standalone cluster on this machine: a master, workers, and commands submitted to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyspark

from spark_rank.session.java import find_java

SPARK_HOME = Path(pyspark.__file__).parent
T = TypeVar("T")
EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: its address, and what its commands begin with.

    Every address of 127/8 is this machine: to Spark these are several hosts.
    """

    address: str
    prefix: tuple[str, ...] = ()


NODES = (Node("127.0.0.2"), Node("127.0.0.3"))


class Daemon:
    """A master or worker in the foreground, with its output in a file."""

    def __init__(self, node: Node, folder: Path, kind: str, arguments: Sequence[str]) -> None:
        self.node = node
        self.folder = folder
        folder.mkdir(parents=True)
        self.log = folder / "log.txt"
        command = [*node.prefix, str(SPARK_HOME / "bin" / "spark-class"),
                   f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", node.address,
                   "--port", "0", "--webui-port", "0", *arguments]  # fmt: skip
        own = {"SPARK_LOCAL_IP": node.address, "SPARK_DAEMON_MEMORY": "256m",
               "SPARK_LOCAL_DIRS": str(folder / "scratch")}  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder,
                env=clean_environment(own), start_new_session=True,
            )  # fmt: skip

    def said(self, pattern: str) -> str:
        """Wait until a line of the output matches; return its first group."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log.read_text()
            return re.search(pattern, self.log.read_text())

        return str(eventually(look, f"{pattern} in {self.log}").group(1))

    def executors(self) -> list[int]:
        """Return the pids of the executors' JVMs on this node."""
        work = self.folder / "work"
        return [pid for pid, line in processes_below(work).items() if EXECUTOR in line]

    def python_workers(self) -> list[int]:
        """Return the pids of Python workers on this node, not of the daemons that fork them."""
        below = processes_below(self.folder / "work")
        python = [pid for pid, line in below.items() if "pyspark.daemon" in line]
        return [pid for pid in python if status_of(pid)[1] in python]

    def kill(self) -> None:
        """End the daemon and all it has started at once, as when a machine loses its power."""
        for pid in {self.process.pid, *processes_below(self.folder)}:
            send(pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> None:
        """End the daemon in order, and whatever it leaves."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)
        for pid in processes_below(self.folder):
            send(pid, signal.SIGKILL)


class Cluster:
    """A master and a worker of one core on every node, until `stop`."""

    def __init__(self, folder: Path, nodes: Sequence[Node] = NODES, master: Node | None = None):
        self.folder = folder
        self.master_node = master or Node("127.0.0.1")
        self.workers: list[Daemon] = []
        self.master = Daemon(self.master_node, folder / "master", "Master", [])
        try:
            self.url = self.master.said(r"Starting Spark master at (spark://\S+)")
            self._page = self.master.said(r"MasterWebUI to \S+ and started at (http://\S+)")
            for number, node in enumerate(nodes):
                self._start_worker(node, folder / f"worker-{number}")
            eventually(lambda: self.state()["aliveworkers"] == len(nodes), "workers at the master")
        except BaseException:
            self.stop()
            raise

    def _start_worker(self, node: Node, folder: Path) -> None:
        limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        self.workers.append(Daemon(node, folder, "Worker", [*limits, self.url]))

    def state(self) -> dict[str, Any]:
        """Return what the master tells of its workers and applications."""
        with urllib.request.urlopen(f"{self._page}/json/", timeout=10) as answer:
            return dict(json.load(answer))

    def stop(self) -> None:
        """End the workers, then the master; nothing that they started is left."""
        for daemon in [*self.workers, self.master]:
            daemon.stop()
        eventually(lambda: not processes_below(self.folder), f"the end of {self.folder}", 20)


def clean_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that knows nothing of this checkout or of the tests' Python."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
    return {**kept, **find_java().environment(), "SPARK_HOME": str(SPARK_HOME), **own}


def processes_below(folder: Path) -> dict[int, str]:
    """Return pid and command line of every process that works in a folder or names it."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                where = os.readlink(process / "cwd")
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has just ended, or is another user's
            if f"{where}/".startswith(f"{folder}/") or f"{folder}/" in line:
                found[int(process.name)] = line
    return found


def folder_of(pid: int) -> Path:
    """Return where a process works."""
    return Path(os.readlink(f"/proc/{pid}/cwd"))


def status_of(pid: int) -> tuple[str, int]:
    """Return a process's state, R where it computes, and its parent; of one that ended, X and 0."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "X", 0
    # the name before may hold anything
    state, parent = told.rpartition(")")[2].split()[:2]
    return state, int(parent)


def open_below(pid: int, folder: Path) -> set[str]:
    """Return the files below a folder that a process has open."""
    found = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                found.add(os.readlink(descriptor))
    return {path for path in found if path.startswith(f"{folder}/")}


def has_open(pid: int, folder: Path) -> bool:
    """Tell whether a process has a file open below a folder."""
    return bool(open_below(pid, folder))


def send(pid: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, how)


def eventually(look: Callable[[], T | None], what: str, seconds: float = 60) -> T:
    """Wait until a look finds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not seen within {seconds:g} s: {what}")
