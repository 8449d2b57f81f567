"""What a piece of work takes of the machine: time, CPU of all its processes, peak memory."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_PERIOD = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process has: CPU seconds with those of its ended children, resident gigabytes.

    `private` are those that it shares with no other process by way of a file.
    """

    name: str
    cpu: float
    resident: float
    private: float


class Watch:
    """Follows this process and those that it has started: a JVM, and Python workers below it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.jvm_gigabytes = 0.0
        self.worker_gigabytes = 0.0
        self.worker_private_gigabytes = 0.0
        self.own_gigabytes = 0.0
        self._samples: list[tuple[float, float]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Watch:
        self._started = time.perf_counter()
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._done.set()
        self._thread.join()
        self._sample()
        self.seconds = time.perf_counter() - self._started
        self.cpu_seconds = self._samples[-1][1] - self._samples[0][1]

    @property
    def use(self) -> float:
        """Return the share of the machine's cores that was busy with this work."""
        return self.cpu_seconds / self.seconds / (os.cpu_count() or 1)

    def timeline(self, parts: int = 20) -> list[float]:
        """Return that share for each of so many equal parts of the time."""
        begin, end = self._samples[0][0], self._samples[-1][0]
        edges = [begin + (end - begin) * part / parts for part in range(parts + 1)]
        spent = [self._cpu_at(edge) for edge in edges]
        width = (end - begin) / parts * (os.cpu_count() or 1)
        return [(after - before) / width for before, after in pairwise(spent)]

    def _cpu_at(self, moment: float) -> float:
        earlier = [cpu for at, cpu in self._samples if at <= moment]
        return earlier[-1] if earlier else self._samples[0][1]

    def _follow(self) -> None:
        while not self._done.wait(_PERIOD):
            self._sample()

    def _sample(self) -> None:
        # CPU of this process and of all below it, those that ended among them
        processes = [os.getpid(), *descendants(os.getpid())]
        found = [usage for pid in processes if (usage := _usage(pid)) is not None]
        spent = sum(usage.cpu for usage in found)
        # what has ended is missing until its parent has heard of it
        spent = max(spent, self._samples[-1][1]) if self._samples else spent
        self._samples.append((time.perf_counter(), spent))
        self.own_gigabytes = max(self.own_gigabytes, found[0].resident)
        for one in found[1:]:
            if one.name == "java":
                self.jvm_gigabytes = max(self.jvm_gigabytes, one.resident)
            elif one.name.startswith("python"):  # a JVM's forks bear the names of its threads
                self.worker_gigabytes = max(self.worker_gigabytes, one.resident)
                self.worker_private_gigabytes = max(self.worker_private_gigabytes, one.private)


def descendants(pid: int) -> list[int]:
    """Return the processes below a process."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it ended meanwhile
        return found
    for thread in threads:
        try:
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        except OSError:  # it ended meanwhile
            continue
        for child in children:
            found += [int(child), *descendants(int(child))]
    return found


def _usage(pid: int) -> Usage | None:
    try:
        head, rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    except OSError:  # it ended meanwhile
        return None
    fields = rest.split()
    ticks = sum(int(fields[place]) for place in (11, 12, 13, 14))
    gigabytes = (pages * _PAGE / 1e9 for pages in (resident, resident - shared))
    return Usage(head.split("(", 1)[1], ticks / _TICKS, *gigabytes)
