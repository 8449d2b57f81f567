"""The lease of a run: it protects a run in progress from a second process.

A lease is a file in the run's directory that only one process can create. Its number grows with
every owner, and the file with the greatest number counts. A process never writes into the file of
another owner, so a process that was taken over notices it, and two processes can never take the
same number. The owner renews a second file, the heartbeat, every few seconds.

Clocks alone decide nothing: a lease that looks expired, or is dated in the future, is watched for
a while by the observer's own monotonic clock, and is taken only if no heartbeat comes meanwhile.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError

from spark_rank.errors import RunHeldError
from spark_rank.session.files import Files
from spark_rank.session.process_identity import ProcessIdentity

FOLDER = "_lease"
_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5


@dataclass(frozen=True)
class LeaseTimes:
    """Seconds between heartbeats, until a lease expires, and to watch one that looks expired."""

    beat: float = 15.0
    expiry: float = 120.0
    watch: float = 45.0


@dataclass(frozen=True)
class Holder:
    """The owner of a lease, as its files describe it."""

    number: int
    token: str
    process: ProcessIdentity
    since: str
    beats: int
    beat_at: float

    def looks_alive(self, now: float, times: LeaseTimes) -> bool:
        """Tell by the clocks, which may be wrong, whether the lease was renewed lately."""
        return -times.watch <= now - self.beat_at <= times.expiry

    def __str__(self) -> str:
        return f"process {self.process.pid} on {self.process.host}, since {self.since}"


class Lease:
    """The right of this process to write into a run."""

    def __init__(
        self,
        files: Files,
        root: str,
        run_id: str,
        *,
        times: LeaseTimes | None = None,
        identity: ProcessIdentity | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = secrets.token_hex(8)
        self.lost = threading.Event()
        self._files = files
        self._folder = f"{root}/{FOLDER}"
        self._run_id = run_id
        self._times = times or LeaseTimes()
        self._identity = identity or ProcessIdentity.own()
        self._clock = clock
        self._number = 0
        self._beats = 0
        self._stop = threading.Event()
        self._when_lost: Callable[[], object] = lambda: None
        self._beating = threading.Thread(target=self._beat, name="lease", daemon=True)

    def acquire(
        self, *, takeover: bool = False, when_lost: Callable[[], object] = lambda: None
    ) -> None:
        """Take the run, or raise `RunHeldError` naming the process that holds it.

        Another thread calls `when_lost` if the run is taken over later.
        """
        for _ in range(_ATTEMPTS):
            holder = self.holder()
            if holder is not None and not takeover and not self._has_ended(holder):
                raise self._refusal(holder)
            # one more than the holder's number: a process that was faster has taken this number
            number = 1 if holder is None else holder.number + 1
            if self._files.create_text(self._path(number), self._description()):
                self._number = number
                self._write_beat()
                self._remove_older()
                self._when_lost = when_lost
                self._beating.start()
                return
        raise self._refusal(self.holder())

    def holder(self) -> Holder | None:
        """Return the process that holds the run; None if there is none."""
        number = self._greatest()
        if number == 0:
            return None
        # a process may just be taking or releasing the lease
        lease = self._read(self._path(number)) or {}
        beat = self._read(f"{self._path(number)}.beat") or {}
        process = lease.get("process") or {"host": "a host that is not known yet", "pid": 0}
        since = lease.get("since", "just now")
        return Holder(
            number, lease.get("token", ""), ProcessIdentity(**process), since,
            beat.get("beats", 0), beat.get("at", lease.get("at", 0.0)),
        )  # fmt: skip

    def check(self) -> None:
        """Raise `RunHeldError` if another process has taken the run over."""
        if not self._is_own():
            raise self.loss()

    def loss(self) -> RunHeldError:
        """Return the error that says that another process has taken the run over."""
        return RunHeldError(
            f"run {self._run_id!r} was taken over by another process: this one has stopped and "
            "published nothing since; the other one goes on with what was saved"
        )

    def release(self) -> None:
        """Release the run, if this process still holds it."""
        self._stop.set()
        self._beating.join(timeout=5.0)
        if self._is_own():
            self._files.delete(f"{self._path(self._number)}.beat")
            self._files.delete(self._path(self._number))

    def _is_own(self) -> bool:
        holder = self.holder()
        return holder is not None and holder.token == self.token

    def seems_over(self, holder: Holder) -> bool:
        """Tell whether a holder looks gone, without watching it as `acquire` does."""
        return holder.process.is_dead(self._identity) or not holder.looks_alive(
            self._clock(), self._times
        )

    def _has_ended(self, holder: Holder) -> bool:
        """Tell whether the holder is gone; if it looks expired by the clocks, watch it first."""
        if holder.process.is_dead(self._identity):
            return True
        if holder.looks_alive(self._clock(), self._times):
            return False
        end = time.monotonic() + self._times.watch
        while time.monotonic() < end:
            time.sleep(min(1.0, self._times.watch / 10))
            now = self.holder()
            if now is None:
                return True
            if (now.token, now.beats) != (holder.token, holder.beats):
                return False
        return True

    def _refusal(self, holder: Holder | None) -> RunHeldError:
        who = "another process" if holder is None else str(holder)
        return RunHeldError(
            f"run {self._run_id!r} is in use ({who}): wait until that process ends, or take the "
            "run over with --takeover"
        )

    def _beat(self) -> None:
        while not self._stop.wait(self._times.beat):
            try:
                if not self._is_own():
                    self.lost.set()
                    self._when_lost()
                    return
                self._write_beat()
            except (Py4JError, OSError) as error:
                # the next heartbeat may succeed; if none does, the lease expires as it should
                _LOG.warning("could not renew the lease of run %s: %s", self._run_id, error)

    def _write_beat(self) -> None:
        self._beats += 1
        beat = json.dumps({"beats": self._beats, "at": self._clock()})
        self._files.write_text(f"{self._path(self._number)}.beat", beat)

    def _remove_older(self) -> None:
        for name in self._files.names(self._folder):
            if _number_of(name) < self._number:
                self._files.delete(f"{self._folder}/{name}")

    def _description(self) -> str:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        lease = {"token": self.token, "process": asdict(self._identity), "since": since}
        return json.dumps({**lease, "at": self._clock()}) + "\n"

    def _greatest(self) -> int:
        numbers = [_number_of(name) for name in self._files.names(self._folder)
                   if name.endswith(".json")]  # fmt: skip
        return max(numbers, default=0)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:08d}.json"

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self._files.read_text(path)))
        except (Py4JError, OSError, ValueError):
            return None  # the file is gone, or not written yet


def _number_of(name: str) -> int:
    digits = name.lstrip(".").partition(".")[0]
    return int(digits) if digits.isdigit() else 0


@contextmanager
def held(
    lease: Lease, *, takeover: bool = False, when_lost: Callable[[], object] = lambda: None
) -> Iterator[Lease]:
    """Hold a run for a block of code; if the run is lost meanwhile, the error says so."""
    lease.acquire(takeover=takeover, when_lost=when_lost)
    try:
        yield lease
    except Exception:
        if lease.lost.is_set():
            raise lease.loss() from None
        raise
    finally:
        try:
            lease.release()
        except (Py4JError, OSError) as error:
            # after an interrupt the JVM may be gone; the end of this process releases the run too
            _LOG.warning("could not release the lease: %s", error)
