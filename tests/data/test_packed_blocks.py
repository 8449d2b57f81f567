"""Packed users become sorted blocks without loss, for any order and division of the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from block_twins import Rating, short_number, spark_hash, split
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.config import PrepareConfig
from spark_rank.data.packed_blocks import NAMED_COLUMNS, BlockJob, arrange_blocks, pack_users
from spark_rank.data.splits import SplitKeys
from spark_rank.errors import ContractError
from spark_rank.session.sharing import Carried
from spark_rank.tables.contract import arrow_schema

ITEMS = 12
ROWS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, ITEMS - 1)),
    st.tuples(st.integers(1, 5), st.one_of(st.none(), st.integers(0, 3))),
    max_size=50,
)
CASES = [
    PrepareConfig(),
    PrepareConfig(timestamps=True),
    PrepareConfig(split="leave_last", leave_last=2),
    PrepareConfig(split="k_fold", folds=3, fold=2, timestamps=True),
    PrepareConfig(split="global", train_share=0.4),
]


def job(settings: PrepareConfig, seed: int) -> BlockJob:
    keys = np.array([spark_hash(f"i{item}".encode()) for item in range(ITEMS)])
    start = [spark_hash(short_number(seed), name) for name in (b"split", b"fold")]
    return BlockJob(settings, SplitKeys(*start), Carried(keys))


def batches(rows: list[Rating], size: int, *, with_time: bool) -> Iterator[pa.RecordBatch]:
    schema = {"user": pa.int32(), "item": pa.int32(), "rating": pa.float32()}
    if with_time:
        schema["timestamp"] = pa.int64()
    for start in range(0, len(rows), size):
        part = [dict(zip(schema, row, strict=False)) for row in rows[start : start + size]]
        yield pa.RecordBatch.from_pylist(part, schema=pa.schema(list(schema.items())))


def shuffled(packed: list[pa.RecordBatch], users: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield what Spark makes of them: with the known users' ids, in the order of the users."""
    rows = [row for batch in packed for row in batch.to_pylist()]
    for row in rows:
        name = f"u{row['user']}"
        if row["user"] < users:
            row |= {"user_id": name, "user_key": spark_hash(name.encode()), "bucket": 3}
    rows.sort(key=lambda row: row["user"])
    schema = arrow_schema(NAMED_COLUMNS)
    for start in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[start : start + size], schema=schema)


@given(
    given_rows=ROWS,
    case=st.sampled_from(CASES),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(1, 9)),
    data=st.data(),
)
def test_blocks_are_the_twins_splits(
    given_rows: dict[tuple[int, int], tuple[int, int | None]],
    case: PrepareConfig,
    sizes: tuple[int, int, int],
    data: st.DataObject,
) -> None:
    by_time = case.split == "leave_last"
    rows = [(*pair, float(r), t or 0 if by_time else t) for pair, (r, t) in given_rows.items()]
    rows = data.draw(st.permutations(rows))
    with_time = by_time or case.timestamps
    packed = list(pack_users(batches(rows, sizes[0], with_time=with_time), sizes[1]))
    made = arrange_blocks(shuffled(packed, 6, sizes[2]), job(case, 5))
    blocks = {row["user"]: row for batch in made for row in batch.to_pylist()}
    own: dict[int, list[Rating]] = defaultdict(list)
    for rating in rows:
        own[rating[0]].append(rating)
    assert blocks.keys() == own.keys()
    names = {item: f"i{item}" for item in range(ITEMS)}
    for user, row in blocks.items():
        train, held_out = split(own[user], f"u{user}", names, case, 5)
        both = train + held_out
        assert (row["items"], row["ratings"]) == ([r[1] for r in both], [r[2] for r in both])
        assert row["timestamps"] == ([r[3] for r in both] if case.timestamps else None)
        assert (row["n_train"], row["user_id"], row["bucket"]) == (len(train), f"u{user}", 3)


def test_a_user_without_an_id_is_named() -> None:
    rows: list[Rating] = [(user, 1, 3.0, None) for user in range(3)]
    packed = list(pack_users(batches(rows, 2, with_time=False)))
    with pytest.raises(ContractError, match="user 2 is not in the table users"):
        list(arrange_blocks(shuffled(packed, 2, 4), job(PrepareConfig(), 1)))
