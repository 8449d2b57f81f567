"""Buckets of users: from `ingest` to `recommend`, the same function of the user id.

A user's bucket is the CRC-32 of the id as UTF-8, modulo the number of buckets (the setting
`prepare.buckets`): ``zlib.crc32(user_id.encode()) % buckets``. A reader that looks for a user in a
table with a column `bucket` can compute it without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:  # readers without Spark import this module too
    from pyspark.sql import Column


def bucket_of(user_id: str, buckets: int) -> int:
    """Return the bucket of a user."""
    return crc32(user_id.encode()) % buckets


def id_hashes(ids: pa.StringArray) -> NDArray[np.int64]:
    """Return the hash of every id; the bucket is this hash modulo the number of buckets."""
    texts = ids.cast(pa.binary()).to_numpy(zero_copy_only=False)
    return np.fromiter(map(crc32, texts), np.int64, len(ids))


def bucket_column(buckets: int, user_id: str = "user_id") -> Column:
    """Return a column with the bucket of each user id in the column `user_id`."""
    from pyspark.sql import functions as F

    hashed = F.crc32(F.col(user_id).cast("binary"))
    return F.pmod(hashed, F.lit(buckets)).cast("int")
