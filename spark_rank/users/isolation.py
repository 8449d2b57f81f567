"""Learns users in child processes, so that a user who crashes the interpreter harms nobody else.

A segmentation fault, an exit from native code or the kernel's out-of-memory killer ends a process
without an exception. Here a worker forks a child for a batch of users, and the child returns the
rows of some users at a time through a pipe. If the child dies, the users that it was learning are
learned again in new children: first the users one by one, then the user's learners one by one. A
user and learner whose children always die get a row that says so; the next child continues after
them.

A user's rows do not depend on the other users of the batch, so all other rows are the same bytes as
without the crash. Isolation takes longer, so it is used only after a worker has died.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NoReturn

import pyarrow as pa

from spark_rank.users.specs import LearnerSpec
from spark_rank.wording import count_of

CRASHED, OUT_OF_MEMORY = "crashed", "out_of_memory"

TRIES = 2
SECONDS = 600  # learning a piece for longer counts as a crash
_USERS_AT_ONCE = 32  # users whose rows the child returns at once
# with more crashes than this in one batch, the cause is not the users
_MAX_CRASHES = 100
_HEAD = struct.Struct("<cQ")
_ROWS, _MEMORY, _ERROR = b"r", b"m", b"e"

Learn = Callable[[pa.RecordBatch, Sequence[LearnerSpec]], pa.RecordBatch]


@dataclass(frozen=True)
class Loss:
    """Why a child ended too early; `place` is the line of Python code where it died."""

    reason: str
    detail: str
    place: str | None = None


class TooManyCrashesError(RuntimeError):
    """So many models crash that going on would take very long and leave few models."""


GiveUp = Callable[[pa.RecordBatch, LearnerSpec, Loss], pa.RecordBatch]


@dataclass(frozen=True)
class _Piece:
    """Some users of a batch, their learners, and how many children died learning only them."""

    first: int
    last: int
    specs: tuple[LearnerSpec, ...]
    tries: int = 0

    def parts(self) -> list[_Piece]:
        """Return a piece per user; of a single user, a piece per learner."""
        if self.last - self.first > 1:
            return [replace(self, first=u, last=u + 1) for u in range(self.first, self.last)]
        return [replace(self, specs=(spec,)) for spec in self.specs]

    def users(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.slice(self.first, self.last - self.first)


def learn_isolated(
    batch: pa.RecordBatch,
    specs: Sequence[LearnerSpec],
    learn: Learn,
    give_up: GiveUp,
    *,
    seconds: int = SECONDS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `learn` for the batch, in its order, and those of `give_up` after crashes.

    `learn` returns the rows user by user, and a user's rows in the order of the learners.
    """
    starts = range(0, len(batch), _USERS_AT_ONCE)
    given_up = 0
    pieces = deque(_Piece(s, min(s + _USERS_AT_ONCE, len(batch)), tuple(specs)) for s in starts)
    while pieces:
        rows, loss = _in_child(batch, pieces, learn, seconds)
        yield from rows
        for _ in rows:
            pieces.popleft()
        if pieces:
            piece = pieces.popleft()
            parts = piece.parts()
            if len(parts) > 1:
                pieces.extendleft(reversed(parts))
            elif piece.tries + 1 < TRIES:
                pieces.appendleft(replace(piece, tries=piece.tries + 1))
            else:
                given_up += 1
                if given_up > _MAX_CRASHES:
                    raise TooManyCrashesError(
                        f"more than {_MAX_CRASHES} models crashed in a batch of "
                        f"{count_of(len(batch), 'user')}; the last crash: {loss.detail}"
                    )
                yield give_up(piece.users(batch), piece.specs[0], loss)


def _in_child(
    batch: pa.RecordBatch, pieces: Sequence[_Piece], learn: Learn, seconds: int
) -> tuple[list[pa.RecordBatch], Loss]:
    """Return the rows of the pieces before the child ended, and why it ended."""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as trace:
        child = _fork()
        if child == 0:
            os.close(read_end)
            _learn_and_exit(batch, pieces, learn, seconds, write_end, trace)
        os.close(write_end)
        try:
            rows, memory_loss = _read_rows(read_end)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(child, 0)
        trace.seek(0)
        return rows, memory_loss or replace(_loss(status, seconds), place=_place(trace.read()))


def _fork() -> int:
    """Fork; return the child's process id, and 0 in the child."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # otherwise the child could write the buffer again
    with warnings.catch_warnings():
        # the warning is about other threads, of which the child needs nothing
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _read_rows(read_end: int) -> tuple[list[pa.RecordBatch], Loss | None]:
    """Return the rows that a child sends until it ends, and its own report of a memory error."""
    rows: list[pa.RecordBatch] = []
    memory_loss: Loss | None = None
    with os.fdopen(read_end, "rb") as stream:
        for kind, content in _messages(stream):
            if kind == _ERROR:
                raise RuntimeError(f"an error in the learning process: {content.decode()}")
            if kind == _MEMORY:
                memory_loss = Loss(OUT_OF_MEMORY, content.decode())
            else:
                rows.append(pa.ipc.open_stream(content).read_next_batch())
    return rows, memory_loss


def _messages(stream: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the child's messages; an unfinished one is dropped."""
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        content = stream.read(size)
        if len(content) < size:
            return
        yield kind, content


def _loss(status: int, seconds: int) -> Loss:
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return Loss(CRASHED, f"the learning process exited with code {code}, {TRIES} times")
    number = os.WTERMSIG(status)
    if number == signal.SIGALRM:
        return Loss(CRASHED, f"learning took more than {seconds} s, {TRIES} times")
    hint = ": memory may be short" if number == signal.SIGKILL else ""
    names = {each.value: each.name for each in signal.Signals}
    name = names.get(number, f"signal {number}")
    return Loss(CRASHED, f"the learning process was killed by {name}, {TRIES} times{hint}")


def _place(trace: bytes) -> str | None:
    """Return where Python was when a signal ended it, from the trace of `faulthandler`."""
    frame = re.search(r'File "(.+)", line (\d+) in (\w+)', trace.decode(errors="replace"))
    return None if frame is None else f"{frame[3]}, {frame[1]}:{frame[2]}"


def _learn_and_exit(
    batch: pa.RecordBatch,
    pieces: Sequence[_Piece],
    learn: Learn,
    seconds: int,
    write_end: int,
    trace: IO[bytes],
) -> NoReturn:
    """Run in the child: write the rows to the pipe and exit, without returning to the caller."""
    try:
        # the kernel's alarm also ends a child that hangs in native code or has lost its parent
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.enable(trace)
        _prefer_for_oom_kill()
        with os.fdopen(write_end, "wb") as out:
            for piece in pieces:
                signal.alarm(seconds)
                kind, content = _message_of(batch, piece, learn)
                out.write(_HEAD.pack(kind, len(content)) + content)
                out.flush()
                if kind != _ROWS:
                    break
    finally:
        os._exit(0)  # no clean-up: files and sockets are the parent's


def _message_of(batch: pa.RecordBatch, piece: _Piece, learn: Learn) -> tuple[bytes, bytes]:
    try:
        rows = learn(piece.users(batch), piece.specs)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        return _ROWS, sink.getvalue().to_pybytes()
    except MemoryError as error:
        return _MEMORY, f"{type(error).__name__}: {error}".encode()
    except Exception:  # noqa: BLE001 - the parent raises it
        return _ERROR, traceback.format_exc().encode()


def _prefer_for_oom_kill() -> None:
    """Let the kernel kill this process, not the worker, if memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
