"""Identifies a process, so that another one on the same machine can tell whether it still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# the 22nd field of /proc/<pid>/stat, counted behind the name, which may hold blanks
_START_FIELD = 19
_ENDED = "ended"


@dataclass(frozen=True)
class ProcessIdentity:
    """What distinguishes a process from every other, past and present.

    `machine` is the boot id and the pid namespace, None where the system does not have them.
    `started` is the start in clock ticks since that boot, which differs for a later process with
    the same pid.
    """

    host: str
    pid: int
    machine: str | None = None
    started: str | None = None

    @classmethod
    def own(cls) -> ProcessIdentity:
        """Return the identity of this process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """Return the identity of a process of this machine."""
        return cls(socket.gethostname(), pid, _machine(), _started(pid))

    def is_dead(self, observer: ProcessIdentity) -> bool:
        """Tell whether the process has surely ended; `observer` is the process that asks."""
        if self.machine is None or self.machine != observer.machine:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # a process of another user: it exists
        started = _started(self.pid)
        return started is not None and started != self.started


def _machine() -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # a zombie, which waits for its parent, writes nothing any more
    return _ENDED if fields[0] in "ZX" else fields[_START_FIELD]
