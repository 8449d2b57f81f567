"""A user who crashes a child process gets a row that says so; other users are not affected."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rank.users import isolation
from spark_rank.users.isolation import Loss, learn_isolated
from spark_rank.users.specs import LearnerSpec

SPECS = tuple(LearnerSpec(name, "mprank", item_offset=True) for name in ("first", "second"))
SCHEMA = pa.schema([("user", pa.int64()), ("learner", pa.string()), ("said", pa.string())])

Poison = Callable[[], object]
Poisoned = dict[tuple[int, str], Poison]


def users(count: int) -> pa.RecordBatch:
    return pa.record_batch({"user": pa.array(range(count), pa.int64())})


def learner(poisoned: Poisoned) -> isolation.Learn:
    def learn(batch: pa.RecordBatch, specs: Sequence[LearnerSpec]) -> pa.RecordBatch:
        rows = []
        for user in batch.column("user").to_pylist():
            for spec in specs:
                poisoned.get((user, spec.label), lambda: None)()
                rows.append({"user": user, "learner": spec.label, "said": "learned"})
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    return learn


def give_up(user: pa.RecordBatch, spec: LearnerSpec, loss: Loss) -> pa.RecordBatch:
    (number,) = user.column("user").to_pylist()
    row = {"user": number, "learner": spec.label, "said": f"{loss.reason}: {loss.detail}"}
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def learned(count: int, poisoned: Poisoned, seconds: int = 30) -> list[tuple[int, str, str]]:
    made: Iterator[pa.RecordBatch] = learn_isolated(
        users(count), SPECS, learner(poisoned), give_up, seconds=seconds
    )
    return [(row["user"], row["learner"], row["said"]) for out in made for row in out.to_pylist()]


def leave(code: int) -> Poison:
    return lambda: os._exit(code)


def ask_for_too_much() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
    bytearray(2**40)


def kill(number: int) -> Poison:
    return lambda: os.kill(os.getpid(), number)


def expected(count: int, gone: dict[tuple[int, str], str]) -> list[tuple[int, str, str]]:
    pairs = [(user, spec.label) for user in range(count) for spec in SPECS]
    return [(*pair, gone.get(pair, "learned")) for pair in pairs]


def test_without_a_crash_the_rows_are_those_of_the_worker_itself() -> None:
    assert learned(70, {}) == expected(70, {})
    assert learned(0, {}) == []


def test_every_way_to_end_a_process_is_one_row() -> None:
    ways: dict[tuple[int, str], tuple[Poison, str]] = {
        (0, "first"): (leave(3), "crashed: the learning process exited with code 3"),
        (31, "second"): (leave(0), "crashed: the learning process exited with code 0"),
        (32, "first"): (sys.exit, "crashed: the learning process exited with code 0"),
        (33, "first"): (lambda: ctypes.string_at(0), "crashed: the learning process was "
                        "killed by SIGSEGV"),
        (33, "second"): (kill(signal.SIGKILL), "crashed: the learning process was killed by "
                         "SIGKILL"),
        (69, "second"): (ask_for_too_much, "out_of_memory: MemoryError: "),
    }  # fmt: skip
    rows = learned(70, {pair: poison for pair, (poison, _) in ways.items()})
    endings = {pair: f"{text}, 2 times" for pair, (_, text) in ways.items()}
    endings[33, "second"] += ": memory may be short"
    endings[69, "second"] = ways[69, "second"][1]
    assert rows == expected(70, endings)


def test_the_place_of_a_crash_is_known() -> None:
    seen = []

    def note(user: pa.RecordBatch, spec: LearnerSpec, loss: Loss) -> pa.RecordBatch:
        seen.append(loss.place)
        return give_up(user, spec, loss)

    poisoned = {(1, "first"): lambda: ctypes.string_at(0), (2, "first"): leave(1)}
    list(learn_isolated(users(3), SPECS, learner(poisoned), note))
    assert seen[0] is not None
    assert seen[0].startswith("string_at, ")
    assert seen[1] is None


def test_learning_without_end_is_ended() -> None:
    rows = learned(3, {(1, "second"): lambda: time.sleep(60)}, seconds=1)
    assert rows == expected(3, {(1, "second"): "crashed: learning took more than 1 s, 2 times"})


def test_who_crashes_now_and_then_is_learned(tmp_path: Path) -> None:
    def once_in_three() -> None:
        with (tmp_path / "tries").open("ab") as log:
            log.write(b".")
        if (tmp_path / "tries").stat().st_size < 4:
            os._exit(1)

    assert learned(5, {(2, "first"): once_in_three}) == expected(5, {})


def test_if_everybody_crashes_it_is_not_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_MAX_CRASHES", 6)
    everybody = {(user, spec.label): leave(1) for user in range(1000) for spec in SPECS}
    some = {pair: poison for pair, poison in everybody.items() if pair[0] < 3}
    assert [said[:7] for _, _, said in learned(40, some)].count("crashed") == 6
    with pytest.raises(
        isolation.TooManyCrashesError, match=r"more than 6 models .* batch of 1,000 users"
    ):
        learned(1000, everybody)


def test_an_error_of_the_program_is_no_crash() -> None:
    def broken() -> None:
        raise ZeroDivisionError("a mistake")

    with pytest.raises(RuntimeError, match="ZeroDivisionError: a mistake"):
        learned(5, {(2, "first"): broken})


def test_children_are_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    children = []
    fork = os.fork

    def noted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)
    learned(40, {(7, "first"): kill(signal.SIGKILL)})
    assert len(children) == 5  # many users, one, one learner, the same again, all that is left
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


@settings(max_examples=10)
@given(st.sets(st.tuples(st.integers(0, 39), st.sampled_from(["first", "second"])), max_size=3))
def test_whoever_crashes_the_others_are_there(crashing: set[tuple[int, str]]) -> None:
    rows = learned(40, {pair: leave(1) for pair in crashing})
    text = "crashed: the learning process exited with code 1, 2 times"
    assert rows == expected(40, dict.fromkeys(crashing, text))
