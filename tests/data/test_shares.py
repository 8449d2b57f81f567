"""Shares of users: tasks have whole buckets, and more to merge gives more shares."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.shares import shares_for
from spark_rank.tables.user_buckets import bucket_of

IDS = [str(number) for number in range(3_000)]
BUCKETS = st.integers(1, 60)


@given(BUCKETS, st.integers(1, 90))
def test_a_task_has_whole_buckets_in_order(buckets: int, parts: int) -> None:
    shares = shares_for(buckets, parts)
    tasks = shares.of(pa.array(IDS)) // shares.each
    task_of: dict[int, int] = {}
    for text, task in zip(IDS, tasks.tolist(), strict=True):
        assert task_of.setdefault(bucket_of(text, buckets), task) == task
    in_order = [task for _, task in sorted(task_of.items())]
    assert in_order == sorted(in_order)
    assert max(in_order) < shares.tasks <= buckets


@given(BUCKETS, st.integers(1, 90))
def test_shares_are_as_many_as_there_are_parts_and_even(buckets: int, parts: int) -> None:
    shares = shares_for(buckets, parts)
    sizes = np.bincount(shares.of(pa.array(IDS)), minlength=shares.count)
    assert parts <= shares.count == len(sizes)
    # a task has a bucket more than another, or the last of them a share more than there are parts
    assert shares.count < parts + shares.tasks
    assert sizes.max() < 3 * len(IDS) / shares.count + 30
