"""The cores and memory that a cluster gives to a run, read from Spark's settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PYTHON_LIMIT = "spark.executor.pyspark.memory"

Kind = Literal["local", "standalone", "yarn", "kubernetes"]

_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE = re.compile(r"\s*(\d+)\s*(b|[kmgtp]b?|)\s*", re.IGNORECASE)
_OVERHEAD_SHARE, _KUBERNETES_SHARE, _LEAST_OVERHEAD = 0.1, 0.4, 384 * 2**20
# the files with a container's memory limit, in the two versions of Linux control groups
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
)  # fmt: skip
# the settings that `offered` reads
SETTINGS = (
    "spark.master", "spark.submit.deployMode", "spark.driver.memory", "spark.executor.memory",
    "spark.executor.memoryOverhead", "spark.executor.memoryOverheadFactor",
    "spark.executor.minMemoryOverhead", PYTHON_LIMIT, "spark.executor.cores",
    "spark.executor.instances", "spark.cores.max", "spark.task.cpus",
    "spark.dynamicAllocation.enabled",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """The driver's machine: its cores, and its memory or the limit of its container."""

    cores: int
    memory: float


@dataclass(frozen=True)
class Offer:
    """The resources of a JVM that runs tasks: tasks at a time, heap, memory beside the heap.

    Locally that JVM is the driver. `cores` counts those of all executors. A value is None if no
    setting gives it.
    """

    kind: Kind
    cores: int | None
    tasks: int | None
    heap: float | None
    beside: float | None
    machine: Machine


def this_machine() -> Machine:
    """Return this machine's cores and its memory, or the limit of the container."""
    sizes = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    for path in _LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:  # no container, or the other version
            continue
        sizes += [float(text)] if text.isdigit() else []
    return Machine(len(os.sched_getaffinity(0)), min(sizes))


def size_of(text: str | None) -> float | None:
    """Return the bytes of a size in Spark's notation (no unit: MiB); None if it is no size."""
    match = None if text is None else _SIZE.fullmatch(text)
    if match is None:
        return None
    return float(match[1]) * _UNITS[match[2][:1].lower() or "m"]


def kind_of(master: str) -> Kind:
    """Return what kind of cluster a master is."""
    if master.startswith("k8s:"):
        return "kubernetes"
    if master.startswith("yarn"):
        return "yarn"
    return "local" if re.fullmatch(r"local(\[.*\])?", master) else "standalone"


def offered(settings: Mapping[str, str], machine: Machine) -> Offer:
    """Return the resources that the settings of a session ask for."""
    kind = kind_of(settings.get("spark.master", "local[*]"))
    if kind == "local":
        cores = _local_cores(settings.get("spark.master", "local[*]"), machine)
        heap = size_of(settings.get("spark.driver.memory", "1g"))
        beside = None if heap is None else machine.memory - heap
        return Offer(kind, cores, _at_a_time(cores, settings), heap, beside, machine)
    # by default a standalone worker gives all its cores to one executor
    per_executor = _whole(settings.get("spark.executor.cores"), None if kind == "standalone" else 1)
    heap = size_of(settings.get("spark.executor.memory", "1g"))
    tasks = None if per_executor is None else _at_a_time(per_executor, settings)
    all_cores = _cluster_cores(kind, settings, per_executor)
    return Offer(kind, all_cores, tasks, heap, _overhead(kind, settings, heap), machine)


def _local_cores(master: str, machine: Machine) -> int:
    match = re.fullmatch(r"local\[(\d+)(,.*)?\]", master)
    if match is not None:
        return int(match[1])
    return machine.cores if "*" in master else 1


def _cluster_cores(kind: Kind, settings: Mapping[str, str], per_executor: int | None) -> int | None:
    if kind == "standalone":
        return _whole(settings.get("spark.cores.max"), None)
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true":
        return None
    executors = _whole(settings.get("spark.executor.instances"), 2)
    return None if executors is None or per_executor is None else executors * per_executor


def _overhead(kind: Kind, settings: Mapping[str, str], heap: float | None) -> float | None:
    """Return the bytes that the cluster manager adds to the heap; a standalone one adds none."""
    if kind == "standalone" or heap is None:
        return None
    python = size_of(settings.get(PYTHON_LIMIT)) or 0.0
    overhead = size_of(settings.get("spark.executor.memoryOverhead"))
    if overhead is not None:
        return overhead + python
    in_pod = kind == "kubernetes" and settings.get("spark.submit.deployMode") == "cluster"
    share = _share(settings, "spark.executor.memoryOverheadFactor")
    if share is None:
        share = _KUBERNETES_SHARE if in_pod else _OVERHEAD_SHARE
    least = size_of(settings.get("spark.executor.minMemoryOverhead")) or _LEAST_OVERHEAD
    return max(share * heap, least) + python


def _at_a_time(cores: int, settings: Mapping[str, str]) -> int:
    return max(1, cores // (_whole(settings.get("spark.task.cpus"), 1) or 1))


def _whole(text: str | None, default: int | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else default


def _share(settings: Mapping[str, str], name: str) -> float | None:
    try:
        return float(settings[name])
    except (KeyError, ValueError):
        return None
