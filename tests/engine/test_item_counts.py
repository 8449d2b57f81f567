"""Ratings of every item, counted from whole files of blocks: against counting one by one."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.engine import item_counts
from spark_rank.engine.item_counts import counted

SCHEMA = pa.schema([("items", pa.list_(pa.int32())), ("n_train", pa.int32())])
users = st.lists(st.integers(0, 12), max_size=6).flatmap(
    lambda items: st.tuples(st.just(items), st.integers(0, len(items)))
)


def as_file(rows: list[tuple[list[int], int]]) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist([{"items": i, "n_train": n} for i, n in rows], SCHEMA)
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


@given(st.lists(st.lists(users, max_size=9), max_size=3))
def test_counts_are_those_of_the_lists(files: list[list[tuple[list[int], int]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_counts, "_ROWS", 2)
        contents = pa.record_batch({"content": pa.array(map(as_file, files), pa.binary())})
        (made,) = counted(iter([contents]))
    flat = [user for file in files for user in file]
    every = Counter(item for items, _ in flat for item in items)
    train = Counter(item for items, n_train in flat for item in items[:n_train])
    assert made.to_pylist() == [
        {"item": item, "n_train": train[item], "n": every[item]} for item in sorted(every)
    ]
