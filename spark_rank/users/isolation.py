"""Learns users in child processes, so that one who ends the interpreter harms nobody else.

A segmentation fault, an exit from native code or the kernel's out-of-memory killer ends a process,
and no `except` sees it. Here a worker forks a child for a batch of users, and the child hands the
rows of some users at a time back through a pipe. If the child dies, whoever was being learned is
learned again alone, in a new child: first the users one by one, then the user's learners one by
one. What ends its child every time is given up, and the next child goes on behind it.

Nobody's rows depend on who is learned beside him or her, so that all other rows are the same bytes
as without the crash. It takes somewhat longer, and so is done only after a worker has died.
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
SECONDS = 600  # without an end for so long, some users count as a crash
_TOGETHER = 32  # users whose rows are handed back at once
# with more rows given up than this, of one batch, it is not the users
_MOST = 100
_HEAD = struct.Struct("<cQ")
_ROWS, _MEMORY, _ERROR = b"r", b"m", b"e"

Learn = Callable[[pa.RecordBatch, Sequence[LearnerSpec]], pa.RecordBatch]


@dataclass(frozen=True)
class Loss:
    """Why a child ended before it was done; `place` is the line of Python that it died in."""

    reason: str
    detail: str
    place: str | None = None


class TooManyCrashesError(RuntimeError):
    """Whatever is learned crashes: going on would take for ever and leave next to nothing."""


GiveUp = Callable[[pa.RecordBatch, LearnerSpec, Loss], pa.RecordBatch]


@dataclass(frozen=True)
class _Piece:
    """Some users of a batch, learners for them, and how many children they have ended alone."""

    first: int
    last: int
    specs: tuple[LearnerSpec, ...]
    tries: int = 0

    def parts(self) -> list[_Piece]:
        """Return the users one by one, of one user the learners, of one learner itself."""
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
    """Yield what `learn` makes of the batch, in its order, with `give_up` for whoever crashes.

    `learn` returns the rows user by user, each user's in the order of the learners.
    """
    starts = range(0, len(batch), _TOGETHER)
    given_up = 0
    todo = deque(_Piece(s, min(s + _TOGETHER, len(batch)), tuple(specs)) for s in starts)
    while todo:
        made, loss = _in_child(batch, todo, learn, seconds)
        yield from made
        for _ in made:
            todo.popleft()
        if todo:
            piece = todo.popleft()
            parts = piece.parts()
            if len(parts) > 1:
                todo.extendleft(reversed(parts))
            elif piece.tries + 1 < TRIES:
                todo.appendleft(replace(piece, tries=piece.tries + 1))
            else:
                given_up += 1
                if given_up > _MOST:
                    raise TooManyCrashesError(
                        f"of {count_of(len(batch), 'user')} more than {_MOST} models crashed, "
                        f"the last: {loss.detail}"
                    )
                yield give_up(piece.users(batch), piece.specs[0], loss)


def _in_child(
    batch: pa.RecordBatch, pieces: Sequence[_Piece], learn: Learn, seconds: int
) -> tuple[list[pa.RecordBatch], Loss]:
    """Return the rows of all pieces, or of those before the one that the child died of."""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as trace:
        child = _forked()
        if child == 0:
            os.close(read_end)
            _learn_and_exit(batch, pieces, learn, seconds, write_end, trace)
        os.close(write_end)
        try:
            made, refused = _heard(read_end)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(child, 0)
        trace.seek(0)
        return made, refused or replace(_loss(status, seconds), place=_place(trace.read()))


def _forked() -> int:
    """Fork; return the child's number, and to the child 0."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the child could write it again
    with warnings.catch_warnings():
        # of other threads there is nothing that the child would need
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _heard(read_end: int) -> tuple[list[pa.RecordBatch], Loss | None]:
    """Return what a child hands back until it ends, and why it gave up, if it could say so."""
    made: list[pa.RecordBatch] = []
    refused: Loss | None = None
    with os.fdopen(read_end, "rb") as stream:
        for kind, content in _messages(stream):
            if kind == _ERROR:
                raise RuntimeError(f"in a process for some users: {content.decode()}")
            if kind == _MEMORY:
                refused = Loss(OUT_OF_MEMORY, content.decode())
            else:
                made.append(pa.ipc.open_stream(content).read_next_batch())
    return made, refused


def _messages(stream: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a child says; what it could not finish is left out."""
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        content = stream.read(size)
        if len(content) < size:
            return
        yield kind, content


def _loss(status: int, seconds: int) -> Loss:
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return Loss(
            CRASHED, f"the process that learned ended itself with code {code}, {TRIES} times"
        )
    number = os.WTERMSIG(status)
    if number == signal.SIGALRM:
        return Loss(CRASHED, f"learning took more than {seconds} s, {TRIES} times")
    hint = ", as when memory is short" if number == signal.SIGKILL else ""
    names = {known.value: known.name for known in signal.Signals}
    name = names.get(number, f"signal {number}")
    return Loss(CRASHED, f"the process that learned was ended by {name}, {TRIES} times{hint}")


def _place(trace: bytes) -> str | None:
    """Return where Python was when a signal ended it, as `faulthandler` says."""
    found = re.search(r'File "(.+)", line (\d+) in (\w+)', trace.decode(errors="replace"))
    return None if found is None else f"{found[3]}, {found[1]}:{found[2]}"


def _learn_and_exit(
    batch: pa.RecordBatch,
    pieces: Sequence[_Piece],
    learn: Learn,
    seconds: int,
    write_end: int,
    trace: IO[bytes],
) -> NoReturn:
    """Be the child: hand back rows, and never return to what the parent was doing."""
    try:
        # in the kernel, which ends a child that hangs in native code or has lost its parent, too
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.enable(trace)
        _offer_to_the_memory_killer()
        with os.fdopen(write_end, "wb") as out:
            for piece in pieces:
                signal.alarm(seconds)
                kind, content = _answer(batch, piece, learn)
                out.write(_HEAD.pack(kind, len(content)) + content)
                out.flush()
                if kind != _ROWS:
                    break
    finally:
        os._exit(0)  # no clean-up: files and sockets are the parent's


def _answer(batch: pa.RecordBatch, piece: _Piece, learn: Learn) -> tuple[bytes, bytes]:
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


def _offer_to_the_memory_killer() -> None:
    """Let the kernel end this process, not the worker, if memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
