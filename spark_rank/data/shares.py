"""Shares of users: ratings are merged share by share, and no bucket is in two tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.tables.user_buckets import id_hashes


@dataclass(frozen=True)
class Shares:
    """How users are shared out: a task has whole buckets, in order, and merges `each` shares.

    A share is as much as a worker has unpacked at a time. Where there is little to merge, a task
    has several buckets and they are one share; where there is much, a bucket is several shares.
    """

    buckets: int
    tasks: int
    each: int

    @property
    def count(self) -> int:
        """Return the number of shares; those of a task follow each other."""
        return self.tasks * self.each

    def of(self, ids: pa.StringArray) -> NDArray[np.int64]:
        """Return the share of every user."""
        hashes = id_hashes(ids)
        task = hashes % self.buckets * self.tasks // self.buckets
        return task * self.each + hashes // self.buckets % self.each


def shares_for(buckets: int, parts: int) -> Shares:
    """Return the shares of users for so many buckets, about `parts` of them or more."""
    tasks = min(buckets, parts)
    return Shares(buckets, tasks, -(-parts // tasks))
