"""Shares of users: ratings are merged share by share, and no bucket is in two tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.tables.user_buckets import id_hashes


@dataclass(frozen=True)
class Shares:
    """The division of users into shares: a task has whole buckets, in order, and `each` shares.

    A worker unpacks one share at a time. With little to merge, a task has several buckets in one
    share; with much to merge, a bucket is several shares.
    """

    buckets: int
    tasks: int
    each: int

    @property
    def count(self) -> int:
        """Return the number of shares; the shares of a task have consecutive numbers."""
        return self.tasks * self.each

    def of(self, ids: pa.StringArray) -> NDArray[np.int64]:
        """Return the share of every user."""
        hashes = id_hashes(ids)
        task = hashes % self.buckets * self.tasks // self.buckets
        return task * self.each + hashes // self.buckets % self.each


def shares_for(buckets: int, parts: int) -> Shares:
    """Return a division into at least `parts` shares, and about as many."""
    tasks = min(buckets, parts)
    return Shares(buckets, tasks, -(-parts // tasks))
