"""The machine, or the container, that this process runs in."""

from __future__ import annotations

import os
from pathlib import Path

from spark_rank.planning.offer import Machine

# where Linux says what a container may take, in its two ways of counting
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def this_machine() -> Machine:
    """Return its cores and its memory, or what a container may take of it."""
    memory = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limits = [limit for path in _LIMITS if (limit := _limit(Path(path))) is not None]
    return Machine(len(os.sched_getaffinity(0)), min([memory, *limits]))


def _limit(path: Path) -> float | None:
    try:
        text = path.read_text().strip()
    except OSError:  # no container, or another way of counting
        return None
    return float(text) if text.isdigit() else None
